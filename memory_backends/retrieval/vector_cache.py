"""Vectors kept on disk by model and text, so that no run embeds again what another has embedded.

A SQLite file in WAL mode: processes may read and write it at the same time. It is a cache and no more: where it
cannot be used the texts are embedded as if it were not there.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import TextEmbedder

Vector = NDArray[np.float32]

LOCK_SECONDS = 10
"""How long to wait for another process that writes."""

_MOST_KEYS_A_QUERY = 500


class StoredEmbedder(TextEmbedder):
    """An embedder whose vectors are kept in the file at ``path``; safe to share by threads."""

    def __init__(self, inner: TextEmbedder, path: Path) -> None:
        self.name = inner.name
        self._inner = inner
        self._lock = threading.Lock()
        self._connection = _opened(path)

    @property
    def dimension(self) -> int:
        """That of the inner embedder."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of shape ``(len(texts), dimension)``; errors are the inner embedder's."""
        keys = [text_key(text) for text in texts]
        known = self._read(list(dict.fromkeys(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            fresh = dict(zip(missing, self._inner.embed(list(missing.values())), strict=True))
            self._write(fresh)
            known.update(fresh)
        return np.array([known[key] for key in keys], dtype=np.float32).reshape(len(keys), self.dimension)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        known: dict[bytes, Vector] = {}
        for start in range(0, len(keys), _MOST_KEYS_A_QUERY):
            some = keys[start : start + _MOST_KEYS_A_QUERY]
            marks = ", ".join("?" * len(some))
            query = f"select key, vector from vectors where model = ? and key in ({marks})"
            for key, blob in self._rows(query, [self.name, *some]):
                known[key] = np.frombuffer(blob, dtype="<f4")
        return {key: vector for key, vector in known.items() if len(vector) == self.dimension}

    def _rows(self, query: str, values: Sequence[object]) -> list[tuple[bytes, bytes]]:
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None:
                return self._connection.execute(query, values).fetchall()
        return []

    def _write(self, vectors: Mapping[bytes, Vector]) -> None:
        rows = [(self.name, key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None:
                with self._connection:
                    self._connection.executemany("insert or replace into vectors values (?, ?, ?)", rows)


def text_key(text: str) -> bytes:
    """A 16-byte key of a text, also of one that is not valid Unicode."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _opened(path: Path) -> sqlite3.Connection | None:
    """The file, created if missing; None if it cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "create table if not exists vectors"
            " (model text not null, key blob not null, vector blob not null, primary key (model, key))"
        )
        connection.commit()
    except (sqlite3.Error, OSError):
        return None
    return connection
