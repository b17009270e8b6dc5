"""Write a run: every event as it happens, every reply before it is used; one writer at a time."""

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import orjson
from filelock import BaseFileLock, FileLock, Timeout
from sqlite_utils import Database

from memreplay.conversations.models import Conversation
from memreplay.engine.events import (
    AgentReplied,
    AskEvent,
    BenchmarkModelAsked,
    ConversationClosed,
    ReplayEvent,
    ReplyReceived,
)
from memreplay.errors import RecordingError
from memreplay.recording.annotations import RecordedAnnotations, live_annotations
from memreplay.recording.event_store import LiveArchive
from memreplay.recording.reader import UNFINISHED, Recording, RunStatus
from memreplay.recording.run_tables import PaidByTests, RunTables, insert_run
from memreplay.recording.schema import connect


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


_MOST_PENDING_EVENTS = 256
_LONGEST_PENDING_SECONDS = 1.0


def fingerprint(settings: dict[str, Any]) -> str:
    """Equal for equal settings, whatever their order."""
    return sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()


class RunRecorder:
    """Records one run in a file, a new run or one that is taken up again.

    Events are committed together every so often; a reply is committed, with all that came before it, before
    :meth:`record` returns. A full disk is a :class:`~memreplay.errors.RecordingError`.
    """

    def __init__(self, db: Database, path: Path, tables: RunTables, lock: WriterLock) -> None:
        self._db = db
        self._tables = tables
        self._lock = lock
        self.path = path
        self.run_id = tables.run_id
        self._pending: list[ReplayEvent] = []
        self._last_flush = monotonic()
        self._keys: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self._live: dict[str, LiveArchive] = {}

    @classmethod
    def start(cls, path: Path, settings: dict[str, Any], datasets: Sequence[str], identity: str) -> RunRecorder:
        """Begin a new run. ``settings`` must hold no secrets; ``identity`` is their :func:`fingerprint`.

        Raises:
            RecordingError: the file is not a recording, of a newer version, in use, or cannot be written.
        """
        with _opened_alone(path) as (db, lock):
            return cls(db, path, insert_run(db, path, settings, datasets, identity), lock)

    @classmethod
    def resume(cls, path: Path, identity: str, statuses: Collection[RunStatus] = UNFINISHED) -> RunRecorder:
        """Take up the newest run of equal settings that has one of these statuses.

        Raises:
            RecordingError: there is no such run, or the file is in use.
        """
        Recording.open(path).close()
        with _opened_alone(path) as (db, lock):
            runs = [run for run in Recording(db, path).runs() if run.fingerprint == identity]
            fit = [run for run in runs if run.status in statuses]
            if not fit:
                wanted = "unfinished run" if statuses == UNFINISHED else "run"
                hint = "; it is finished, and --retry-errors asks again what ended in an error" if runs else ""
                raise RecordingError(f"{path}: no {wanted} of these settings to resume{hint}")
            tables = RunTables(db, path, fit[-1].id)
            tables.set_status("running")
            return cls(db, path, tables, lock)

    def add_conversation(self, conversation: Conversation) -> None:
        """Keep the conversation itself, so that the file alone can show it. Adding it again changes nothing."""
        self._tables.add_conversation(conversation)

    def record(self, event: ReplayEvent) -> None:
        """Take an event in. When this returns from a reply, the reply is on disk."""
        self._pending.append(event)
        urgent = isinstance(event, ReplyReceived | AgentReplied | BenchmarkModelAsked | ConversationClosed)
        if urgent or len(self._pending) >= _MOST_PENDING_EVENTS or self._overdue():
            self.flush()

    def flush(self) -> None:
        """Commit what is pending. What could not be committed stays pending."""
        self._last_flush = monotonic()
        if not self._pending:
            return
        keys = self._tables.insert(self._pending)
        for event, key in zip(self._pending, keys, strict=True):
            self._keys[event.conversation].append(key)
        self._pending = []

    def key_of(self, conversation_id: str, number: int) -> int:
        """The key of the ``number``-th event (0-based) that was recorded of a conversation, on disk by then."""
        if number >= len(self._keys[conversation_id]):
            self.flush()
        return self._keys[conversation_id][number]

    def live_archive(self, conversation_id: str) -> LiveArchive:
        """Where a timeline of a conversation that is being recorded may let its events rest.

        It must be made before the first event, and be given every event after it was recorded. It can be read
        after the run is over.
        """
        recorded = Recording(self._db, self.path).archive(self.run_id, conversation_id)
        self._live[conversation_id] = LiveArchive(self, conversation_id, recorded)
        return self._live[conversation_id]

    def annotations(self, conversation_id: str) -> RecordedAnnotations:
        """Bookmarks and watches of a conversation, saved with it as they are made."""
        return live_annotations(self._db, self._tables.key_of(conversation_id), self.path)

    def forget_ingestion(self, conversation_id: str, backends: Sequence[str]) -> None:
        """Remove what these backends did with a conversation, but not what was asked of them.

        Their stores are gone with the process that held them; they take the conversation in anew.
        """
        self._tables.forget_ingestion(conversation_id, backends)

    def forget_asks(self, conversation_id: str, asks: Collection[AskEvent]) -> None:
        """Remove every trace of these asks: they are asked again."""
        self._tables.forget_asks(conversation_id, asks)

    def replace(self, event: PaidByTests, other: PaidByTests | None) -> None:
        """Put another event, of the same conversation and kind, in the place of one on record; or remove it."""
        self.flush()
        self._tables.replace(event, other)

    def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run and let go of the file, also where the end cannot be written any more.

        Raises:
            RecordingError: it cannot; whatever was recorded before can be read.
        """
        try:
            self.flush()
            self._tables.set_status(status)
            with suppress(sqlite3.OperationalError):
                # One file, readable from a folder that cannot be written; refused while somebody else reads.
                self._db.execute("PRAGMA journal_mode = DELETE")
        finally:
            self._db.close()
            self._lock.release()
        for conversation_id, archive in self._live.items():
            archive.read_from(Recording.open(self.path).archive(self.run_id, conversation_id))

    def reader(self) -> Recording:
        """The same file, for reading, with everything recorded so far."""
        self.flush()
        return Recording.open(self.path)

    def _overdue(self) -> bool:
        return monotonic() - self._last_flush > _LONGEST_PENDING_SECONDS


@contextmanager
def _opened_alone(path: Path) -> Iterator[tuple[Database, WriterLock]]:
    """The file, open for writing by nobody else; let go of again where the block fails."""
    lock = WriterLock.take(path)
    db: Database | None = None
    try:
        db = connect(path)
        yield db, lock
    except BaseException:
        if db is not None:
            db.close()
        lock.release()
        raise
