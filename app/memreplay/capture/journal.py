"""The journal of a recording: notes of what an agent did, in the order in which they were taken.

Taking a note is all that happens inside the agent, so that it costs a fraction of a millisecond. A note is one row,
committed before the call returns: it survives the death of the process. Several threads and processes may write at
once. Where the file is locked for a moment, notes wait in memory and are written by a thread.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, get_args

import orjson
from filelock import FileLock, Timeout
from pydantic import BaseModel

from memory_backends.private_files import OWNERS_FILE, make_private_folder
from memreplay.errors import RecordingError
from memreplay.llm.secrets import known_secrets
from memreplay.numbers import finite
from memreplay.recording.connection import connect, connect_read_only
from memreplay.recording.damage import reporting_damage

Source = Literal["message", "call", "span", "mcp", "mark", "lost", "redacted", "unreadable"]
"""The subject of a note: a message of the conversation, a call of a Python memory, an OpenTelemetry span, a tool
call of an MCP server, an answer that the user expected, notes that could not be written, the sign of a redacted
copy, or a damaged note."""

LATEST: Final = 253_402_300_799.0
"""The end of the year 9999, in seconds since 1970: no date lies after it."""

MOST_BYTES: Final = 2**20
"""Bytes of one value in a note, as JSON; of a longer one only its size is kept."""

_ROWS_BETWEEN_CHECKPOINTS = 2_000
_SECONDS_BETWEEN_TRIES = 0.05
_MOST_WAITING = 100_000
_LONGEST_CREATION = 10.0

_log = logging.getLogger("memreplay.capture")


@dataclass(frozen=True)
class Note:
    """A row of the journal. ``at`` is when it began, in seconds since 1970."""

    key: int
    source: Source
    at: float
    body: Mapping[str, Any]


class Journal:
    """Writes notes into one recording. No method raises, except the constructor.

    Raises:
        RecordingError: the file is not a recording, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_new = not path.exists()
        _create(path)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, float, bytes]] = deque()
        self._wanted = threading.Event()
        self._secrets = [(secret.encode(), b"[key]") for secret in known_secrets()]
        self._lost = 0
        self._since_checkpoint = 0
        self._open()
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._after_fork)

    def _open(self) -> None:
        self._connection: sqlite3.Connection | None = _connected(self.path)
        self._thread = threading.Thread(target=self._work, name="memreplay-journal", daemon=True)
        self._thread.start()

    def _after_fork(self) -> None:
        """Open the file anew: SQLite's connections must not cross a fork, and threads do not."""
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._waiting.clear()
        with suppress(Exception):
            self._open()

    def note(self, source: Source, at: float, body: Mapping[str, Any]) -> None:
        """Write a note. When this returns it is on disk, unless the file was locked."""
        try:
            self._write((source, at, self._encoded(body)))
        except Exception as error:
            self._failed(error)

    def _encoded(self, body: Mapping[str, Any]) -> bytes:
        written = {name: plain(value) for name, value in body.items()}
        encoded = orjson.dumps(written, option=orjson.OPT_NON_STR_KEYS)
        for secret, instead in self._secrets:
            encoded = encoded.replace(secret, instead)
        return encoded

    def _write(self, row: tuple[str, float, bytes]) -> None:
        with self._lock:
            if not self._waiting:
                try:
                    self._insert(row)
                    return
                except sqlite3.OperationalError as error:
                    if not _is_locked(error):
                        raise
            if len(self._waiting) >= _MOST_WAITING:
                self._lost += 1
                return
            self._waiting.append(row)
        self._wanted.set()

    def _insert(self, row: tuple[str, float, bytes]) -> None:
        if self._connection is None:
            raise RecordingError(f"{self.path}: the journal is closed")
        source, at, body = row
        self._connection.execute(
            "insert into captured (source, at, body) values (?, ?, ?)", (source, at, body.decode("utf-8"))
        )
        self._since_checkpoint += 1
        if self._since_checkpoint >= _ROWS_BETWEEN_CHECKPOINTS:
            self._since_checkpoint = 0
            self._wanted.set()

    def _work(self) -> None:
        """Write what waits, and move what was written from SQLite's log to the file, beside the agent's calls."""
        with suppress(sqlite3.Error), closing(_connected(self.path)) as own:
            while self._wanted.wait():
                self._wanted.clear()
                while not self._drain():
                    time.sleep(_SECONDS_BETWEEN_TRIES)
                if self._connection is None:
                    return
                with suppress(sqlite3.Error):
                    own.execute("pragma wal_checkpoint(passive)")

    def _drain(self) -> bool:
        """Write what waits; whether nothing waits any more."""
        with self._lock:
            try:
                while self._waiting:
                    self._insert(self._waiting[0])
                    self._waiting.popleft()
                if self._lost:
                    count, self._lost = self._lost, 0
                    self._insert(("lost", time.time(), orjson.dumps({"count": count})))
            except sqlite3.OperationalError as error:
                return not _is_locked(error)
            except Exception as error:
                self._waiting.clear()
                self._failed(error)
            return True

    def _failed(self, error: Exception) -> None:
        if not self._lost:
            _log.warning("not recorded in %s: %s: %s", self.path, type(error).__name__, error)
        self._lost += 1

    def close(self) -> None:
        """Write what waits, for a second at most, and close the file."""
        until = time.monotonic() + 1.0
        while not self._drain() and time.monotonic() < until:
            time.sleep(_SECONDS_BETWEEN_TRIES)
        with self._lock:
            connection, self._connection = self._connection, None
        self._wanted.set()
        if connection is not None:
            self._thread.join(1.0)
            with suppress(sqlite3.Error, OSError):
                connection.close()
                _lock_beside(self.path).unlink(missing_ok=True)

    def abandon(self) -> None:
        """Close the file, and remove it if this created it, nothing is noted in it, and nobody else has it open."""
        self.close()
        if not self._is_new:
            return
        with suppress(sqlite3.Error, OSError, Timeout), _locked(self.path):
            with closing(_connected(self.path)) as own:
                # SQLite changes the mode only where no other connection is open.
                (mode,) = own.execute("pragma journal_mode = delete").fetchone()
                (notes,) = own.execute("select count(*) from captured").fetchone()
            if mode == "delete" and not notes:
                self.path.unlink()
            _lock_beside(self.path).unlink(missing_ok=True)


def _create(path: Path) -> None:
    """Create the recording unless it exists. Processes that begin together take turns.

    Raises:
        RecordingError: it is not a recording, or cannot be written.
    """
    try:
        make_private_folder(path.parent)
        with _locked(path):
            connect(path).close()
    except (OSError, Timeout) as error:
        raise RecordingError(f"{path}: cannot be opened as a recording: {error}") from None


def _locked(path: Path) -> FileLock:
    """Return the lock of what creates or removes a recording."""
    return FileLock(_lock_beside(path), timeout=_LONGEST_CREATION, mode=OWNERS_FILE)


def _lock_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.journal.lock")


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    # A commit survives the death of the process, not that of the machine: waiting for the disk takes milliseconds.
    connection.execute("pragma synchronous = off")
    connection.execute("pragma wal_autocheckpoint = 0")
    connection.execute("pragma busy_timeout = 0")
    return connection


def _is_locked(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


_VECTOR = re.compile(r"(?:.*_)?(?:embeddings?|vectors?)")
_DEEPEST = 24


def plain(value: Any) -> Any:
    """Return a value of a call as plain JSON: models and objects as their fields, without vectors.

    A value of more than :data:`MOST_BYTES` is replaced by its size, what cannot be written by its type.
    """
    try:
        encoded = orjson.dumps(
            _without_vectors(value), default=_fields_of, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
        )
        if len(encoded) <= MOST_BYTES:
            return orjson.Fragment(encoded)
        return {"left_out": f"{len(encoded):,} bytes"}
    except Exception as error:
        return {"left_out": f"{type(value).__name__}: {str(error)[:200]}"}


def _without_vectors(value: Any, depth: int = 0) -> Any:
    """Return a value without the fields that hold vectors: a call of a few facts would have 100,000 numbers."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, dict):
        return {
            name: _without_vectors(each, depth + 1) if isinstance(each, dict | list | tuple) else each
            for name, each in value.items()
            if not (isinstance(name, str) and _is_vector(name, each))
        }
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict | list | tuple):
        return [_without_vectors(each, depth + 1) for each in value]
    return value


def _is_vector(name: str, value: Any) -> bool:
    return not isinstance(value, str | dict | bool | int | float | None) and _is_name_of_vector(name)


@lru_cache(maxsize=1024)
def _is_name_of_vector(name: str) -> bool:
    return _VECTOR.fullmatch(name) is not None


def _fields_of(value: Any) -> Any:
    """Return what JSON can express of an object."""
    if isinstance(value, BaseModel):
        # Libraries fill their models without validation, and Pydantic would warn of that in the agent's output.
        return _without_vectors(value.model_dump(warnings=False))
    dump: Callable[[], Any] | None = getattr(value, "model_dump", None) or getattr(value, "dict", None)
    if callable(dump) and not isinstance(value, type):
        return _without_vectors(dump())
    if isinstance(value, set | frozenset | deque):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return {"left_out": f"{len(value):,} bytes"}
    if hasattr(value, "__slots__") and not hasattr(value, "__dict__"):
        return {name: getattr(value, name) for name in _slots_of(value) if hasattr(value, name)}
    if isinstance(value, Iterator):
        return {"left_out": type(value).__name__}
    fields = getattr(value, "__dict__", None)
    if fields and not callable(value):
        return _without_vectors({name: each for name, each in fields.items() if not name.startswith("_")})
    return str(value)[:1000]


def _slots_of(value: Any) -> list[str]:
    slots = (getattr(each, "__slots__", ()) for each in type(value).__mro__)
    return [name for names in slots for name in ([names] if isinstance(names, str) else names) if name[0] != "_"]


class JournalReader:
    """Reads the notes of a recording, those after a key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = connect_read_only(path)
        try:
            with reporting_damage(path):
                self._has_journal = self._db.table("captured").exists()
        except RecordingError:
            self._db.close()
            raise

    def after(self, key: int = 0, most: int | None = None) -> list[Note]:
        """Return the notes after this one, in the order in which they were taken."""
        if not self._has_journal:
            return []
        query = "select key, source, at, body from captured where key > ? order by key"
        with reporting_damage(self._path):
            return [_note(*row) for row in islice(self._db.conn.execute(query, [key]), most)]

    @property
    def last(self) -> int:
        """Return the key of the newest note; 0 if there is none."""
        if not self._has_journal:
            return 0
        with reporting_damage(self._path):
            return int(self._db.conn.execute("select coalesce(max(key), 0) from captured").fetchone()[0])

    def close(self) -> None:
        self._db.close()


def _note(key: int, source: Any, at: Any, body: Any) -> Note:
    try:
        fields = orjson.loads(body)
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        began = finite(at, 0, LATEST)
        if source not in get_args(Source) or began is None:
            raise ValueError("its source or its time is none")
        return Note(key, source, began, fields)
    except (TypeError, ValueError):
        return Note(key, "unreadable", 0.0, {})
