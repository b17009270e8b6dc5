"""Results of models on disk, by model and key: a text is paid for once.

The file is SQLite in WAL mode: processes may read and write it at the same time. It is a cache and no more: where
it cannot be used, nothing is found in it and nothing is kept.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from memory_backends.private_files import create_private_file, make_private_folder

LOCK_SECONDS = 10
"""Seconds to wait for another process that writes."""

_MOST_KEYS_A_QUERY = 500


class DiskCache:
    """Safe to share by threads. ``what`` names a value, and with it the table and its column.

    One that ``writes`` nothing to the file remembers values in this process alone.
    """

    def __init__(self, path: Path, what: str, *, writes: bool = True) -> None:
        self._what = what
        self._unwritten: dict[tuple[str, bytes], bytes] | None = None if writes else {}
        self._lock = threading.Lock()
        self._connection = _opened(path, what)

    def read(self, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values that are there."""
        found: dict[bytes, bytes] = {}
        if self._unwritten is not None:
            found = {key: self._unwritten[model, key] for key in keys if (model, key) in self._unwritten}
        for start in range(0, len(keys), _MOST_KEYS_A_QUERY):
            some = keys[start : start + _MOST_KEYS_A_QUERY]
            marks = ", ".join("?" * len(some))
            query = f"select key, {self._what} from {self._what}s where model = ? and key in ({marks})"
            with self._lock, suppress(sqlite3.Error):
                if self._connection is not None:
                    found.update(self._connection.execute(query, [model, *some]).fetchall())
        return found

    def write(self, model: str, values: Mapping[bytes, bytes]) -> None:
        """Keep values; they are on disk when this returns."""
        if self._unwritten is not None:
            self._unwritten |= {(model, key): value for key, value in values.items()}
            return
        rows = [(model, key, value) for key, value in values.items()]
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None:
                with self._connection:
                    self._connection.executemany(f"insert or replace into {self._what}s values (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def text_key(text: str) -> bytes:
    """Return a 16-byte key of a text, also of one that is not valid Unicode."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _opened(path: Path, what: str) -> sqlite3.Connection | None:
    """Return the file, created if missing; None if it cannot be used."""
    try:
        make_private_folder(path.parent)
        create_private_file(path)
        connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            f"create table if not exists {what}s"
            f" (model text not null, key blob not null, {what} blob not null, primary key (model, key))"
        )
        connection.commit()
    except (sqlite3.Error, OSError):
        return None
    return connection
