"""Open a recording: for reading, for one short change, or for the one process that records into it."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from errno import EDQUOT, EFBIG, ENOSPC
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout
from sqlite_utils import Database

from memory_backends.private_files import OWNERS_FILE, create_private_file, make_private_folder
from memreplay.errors import RecordingError, RecordingInUseError
from memreplay.recording.schema import (
    APPLICATION_ID,
    REDEFINES_EARLIER,
    SCHEMA_VERSION,
    VIEWS_OF_EARLIER_FORMATS,
    migrations,
)

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^\]]*\]|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|\w+|\S""", re.DOTALL
)

_QUOTED_NAME = re.compile(r"""["\[`]\w+["\]`]""")

_Definition = tuple[str, str, str, str]
"""Type, name and table of an object, and a digest of its SQL."""


def refuse_foreign_objects(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose schema has an object that memreplay does not write.

    This reads the schema alone, which runs nothing. A table that is missing is reported where it is read.

    Raises:
        RecordingError: it has one, or two objects that share their pages.
    """
    roots: dict[int, str] = {}
    for *definition, root in connection.execute(f"{_DEFINITIONS}, rootpage from sqlite_master"):
        kind, name, table, sql = definition
        if (kind, name, table, _digest(sql)) not in _known():
            if any(known[:2] == (kind, name) for known in _known()):
                raise _refusal(path, f"the {kind} {name!r} is not defined as memreplay defines it")
            raise _refusal(path, f"it holds the {kind} {name!r}, which memreplay does not write")
        if root and roots.setdefault(root, name) != name:
            raise _refusal(path, f"the {kind} {name!r} lies where {roots[root]!r} lies")


_DEFINITIONS = "select cast(type as text), cast(name as text), cast(tbl_name as text), cast(sql as text)"


def _refusal(path: Path, problem: str) -> RecordingError:
    return RecordingError(f"{path}: refused: {problem}; expected a recording as memreplay wrote it")


@cache
def _known() -> frozenset[_Definition]:
    """Return the objects of this format and of earlier ones."""
    known = {("view", name, name, digest) for name, digest in VIEWS_OF_EARLIER_FORMATS.items()}
    with closing(sqlite3.connect(":memory:")) as connection:
        for until in (REDEFINES_EARLIER, None):
            migrations.apply(Database(connection), stop_before=until)
            rows = connection.execute(f"{_DEFINITIONS} from sqlite_master").fetchall()
            known |= {(kind, name, table, _digest(sql)) for kind, name, table, sql in rows}
    return frozenset(known)


@lru_cache(maxsize=128)
def _digest(sql: str | None) -> str:
    """Return a digest of the tokens; names count without quotes, which versions of sqlite-utils write
    differently.
    """
    tokens = _TOKEN.findall(sql or "")
    plain = (token[1:-1] if _QUOTED_NAME.fullmatch(token) else token for token in tokens)
    return sha256("\0".join(plain).encode("utf-8", "surrogatepass")).hexdigest()


def connect(path: Path) -> Database:
    """Open a recording for writing; create it if it does not exist. WAL; a commit is on disk when it returns.

    Raises:
        RecordingError: the file is not a recording, or is of another format.
    """
    if path.exists() and not path.is_file():
        raise RecordingError(f"{path}: not a file; expected a recording, or a name for a new one")
    existed = path.exists() and path.stat().st_size > 0
    try:
        make_private_folder(path.parent)
        create_private_file(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        _distrust(connection)
        if existed:
            _refuse_foreign(connection, path)
            refuse_foreign_objects(connection, path)
        db = Database(connection)
        if not existed:
            # Before anything else: a file whose creation is interrupted must still be recognized as ours.
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        migrations.apply(db)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        if (full := full_disk(error)) is not None:
            raise RecordingError(
                f"{path}: cannot be written: {error}; make room, then run the same command"
            ) from full
        raise RecordingError(f"{path}: cannot be opened as a recording: {_in_words(error)}") from None
    return db


def _in_words(error: Exception) -> str:
    """SQLite's message quotes what is damaged, and Python cannot read the message if that is not UTF-8."""
    if isinstance(error, OSError):
        return str(error.strerror)
    return "a definition in it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


MOST_BYTES_OF_A_VALUE = 64 * 2**20
"""Longer values are neither written nor read. As Python objects, JSON takes up to twenty times its length."""


def _distrust(connection: sqlite3.Connection) -> None:
    """Set what SQLite's documentation recommends for files that others may have made."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES_OF_A_VALUE)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)


_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def full_disk(error: Exception) -> OSError | None:
    """Return the error of the file system behind one of SQLite's that says that no more can be written; else
    None.
    """
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        # The lower byte is the error; those above say where it happened.
        return OSError(ENOSPC, str(error)) if code is not None and code & 0xFF in _NO_ROOM else None
    return error if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT, EFBIG) else None


def connect_read_only(path: Path) -> Database:
    """Open a recording for reading, even in a folder that is not writable.

    Raises:
        RecordingError: the file is missing, is not a recording, is of another format, or holds no run yet.
    """
    if not path.is_file():
        raise RecordingError(
            f"{path}: {'not a file; expected a recording' if path.exists() else 'no such recording'}"
        )
    uri = path.resolve().as_uri()
    try:
        try:
            return _open_read_only(path, f"{uri}?mode=ro")
        except sqlite3.OperationalError as error:
            # Immutable is for a folder that is not writable. It ignores what a run has just recorded, so that it
            # must not stand in for a file that is locked for a moment.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return _open_read_only(path, f"{uri}?mode=ro")
            log = path.with_name(f"{path.name}-wal")
            if log.exists() and log.stat().st_size:
                raise RecordingError(
                    f"{path}: what was recorded last is in {log.name}, which cannot be read in a folder that is not"
                    " writable; copy both files into one that is"
                ) from None
            return _open_read_only(path, f"{uri}?mode=ro&immutable=1")
    except sqlite3.OperationalError as error:
        raise RecordingError(f"{path}: cannot be read as a recording: {error}") from None
    except (sqlite3.Error, UnicodeDecodeError) as error:
        is_damaged = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) == sqlite3.SQLITE_CORRUPT
        problem = "damaged" if is_damaged else "cannot be read as a recording"
        raise RecordingError(f"{path}: {problem}: {_in_words(error)}") from None


def _open_read_only(path: Path, uri: str) -> Database:
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    _distrust(connection)
    _refuse_foreign(connection, path)
    refuse_foreign_objects(connection, path)
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        raise RecordingError(f"{path}: no run in it; the program ended while it created the file")
    return Database(connection)


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        raise RecordingError(f"{path}: not a memreplay recording; it is empty")
    if application_id != APPLICATION_ID:
        raise RecordingError(f"{path}: not a memreplay recording; it is another program's SQLite file")
    if version < 0:
        raise RecordingError(f"{path}: not a memreplay recording; there is no format {version}")
    if version > SCHEMA_VERSION:
        raise RecordingError(
            f"{path}: written by a newer memreplay, or by one from before its first release"
            f" (format {version}, this one reads up to {SCHEMA_VERSION})"
        )


def leave_wal(db: Database) -> None:
    """Make the recording a single file again, which can be read in a folder that is not writable.

    SQLite refuses while another connection reads; the file then stays in WAL mode.
    """
    with suppress(sqlite3.OperationalError):
        db.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def open_briefly(path: Path) -> Iterator[Database]:
    """Open a recording for one change."""
    db = connect(path)
    try:
        yield db
        leave_wal(db)
    finally:
        db.close()


class WriterLock:
    """The right to record into a file. Reading needs none.

    The lock is on a small file beside the recording: SQLite's own locks come and go with every commit.
    """

    def __init__(self, lock: BaseFileLock) -> None:
        self._lock = lock

    @classmethod
    def take(cls, recording: Path) -> WriterLock:
        """Take the lock without waiting.

        Raises:
            RecordingError: another process holds it, or the folder is not writable.
        """
        beside = recording.with_name(f".{recording.name}.lock")
        lock = FileLock(beside, timeout=0, mode=OWNERS_FILE, thread_local=False)
        try:
            make_private_folder(recording.parent)
            lock.acquire()
        except Timeout:
            if not beside.exists():
                # Some folders, such as /proc, report a missing file where no file can be created.
                raise RecordingError(
                    f"{recording}: no file can be created in {recording.parent}; it has to be writable"
                ) from None
            raise RecordingInUseError(
                f"{recording}: another memreplay is writing to it; wait until it ends, or use another file"
            ) from None
        except OSError as error:
            raise RecordingError(
                f"{recording}: cannot be opened as a recording: {error.strerror}; it has to be writable"
            ) from None
        return cls(lock)

    def release(self) -> None:
        with suppress(OSError):
            # Before the release: nobody can hold a deleted file's lock, so the next process creates a new one.
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()


@contextmanager
def open_exclusively(path: Path) -> Iterator[tuple[Database, WriterLock]]:
    """Open a recording that no other process may write. Stays open after the block, unless the block fails."""
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
