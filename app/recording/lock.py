"""One writer a recording: a lock of the operating system, which ends with its process however that ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from app.errors import RecordingError


class WriterLock:
    """The right to write a recording. Reading needs none.

    The lock lies on a small file of its own: SQLite's locks on the recording itself come and go with every commit.
    """

    def __init__(self, lock: BaseFileLock) -> None:
        self._lock = lock

    @classmethod
    def take(cls, recording: Path) -> WriterLock:
        """Take it, or be refused at once.

        Raises:
            RecordingError: another process writes this recording, or its folder cannot be written.
        """
        beside = recording.with_name(f".{recording.name}.lock")
        lock = FileLock(beside, timeout=0, thread_local=False)
        try:
            recording.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            if not beside.exists():
                # Some folders, such as /proc, say of a file that it is not there where they mean that none can be.
                raise RecordingError(
                    f"{recording}: no file can be made in {recording.parent}; --recording names another place"
                ) from None
            raise RecordingError(
                f"{recording}: another memreplay is writing to it; wait for its end, or name another --recording"
            ) from None
        except OSError as error:
            raise RecordingError(
                f"{recording}: cannot be opened as a recording: {error.strerror}; --recording names another place"
            ) from None
        return cls(lock)

    def release(self) -> None:
        """Let the next one write."""
        with suppress(OSError):
            # Before the release: a file that is gone is nobody's lock, so that whoever opened it starts afresh.
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()
