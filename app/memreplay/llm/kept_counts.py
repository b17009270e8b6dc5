"""Token counts of the lines that were counted last, on disk: a run of known lines loads no tokenizer."""

from __future__ import annotations

import atexit
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from threading import Lock

from memory_backends.private_files import create_private_file, make_private_folder

MOST_LINES = 20_000
"""Lines kept, 0.4 MB. A run of more lines takes so long that loading a tokenizer does not matter."""

_ENTRY = struct.Struct("<16sI")


class KeptCounts:
    """Counts by line. They are read at once, and written when the process ends: a cache, which may be missing.

    Of several processes that end together, the last one's file stays.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._used: dict[bytes, int] = {}
        self._has_new = False
        self._lock = Lock()
        self._known = _read(path)
        atexit.register(self.write)

    def of(self, line: str, count: Callable[[], int]) -> int:
        """The count of a line, by ``count()`` if it is not kept."""
        key = blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(key)
        tokens = count() if known is None else known
        with self._lock:
            if len(self._used) < MOST_LINES:
                self._used[key] = tokens
                self._has_new = self._has_new or known is None
        return tokens

    def write(self) -> None:
        """Keep the lines of this process, and of earlier ones as many as there is room for."""
        with self._lock:
            if not self._has_new:
                return
            entries = {**self._used, **{key: n for key, n in self._known.items() if key not in self._used}}
            self._has_new = False
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            make_private_folder(self._path.parent)
            try:
                create_private_file(unfinished)
                unfinished.write_bytes(b"".join(_ENTRY.pack(*each) for each in islice(entries.items(), MOST_LINES)))
                unfinished.replace(self._path)
            finally:
                unfinished.unlink(missing_ok=True)


def _read(path: Path) -> dict[bytes, int]:
    with suppress(OSError, struct.error):
        return dict(_ENTRY.iter_unpack(path.read_bytes()))
    return {}
