"""Counts tokens, and says how many of them memory may fill. Offline: the tokenizers come with LiteLLM."""

from __future__ import annotations

import atexit
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from memory_backends.private_files import create_private_file, make_private_folder
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import litellm_folder, model_facts
from memreplay.llm.prompts import longest_reply
from memreplay.paths import cache_folder

if TYPE_CHECKING:
    from tiktoken import Encoding

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
        """Return the count of a line, by ``count()`` if it is not kept."""
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


TokenCounter = Callable[[str], int]

UNKNOWN_WINDOW_BUDGET = 8192
"""Tokens of memory in a prompt where the model's window is unknown, or where it has none."""

UNLIMITED = 2**31 - 1
"""The budget of a memory that nothing has to limit."""

PROMPT_RESERVE = 1024
"""Tokens kept free for question, options and instructions."""

_SMALLEST_BUDGET = 256

_O200K = re.compile(r"(?:^|/)(?:gpt-(?:4o|4\.1|4\.5|5|oss)|chatgpt-4o|o[1-9])", re.IGNORECASE)

_LINE_STARTS = re.compile(r"(?<=\n)(?![\s/])")
"""Places at which a text can be taken apart without changing its tokens: no table has one that goes on after a line
break, but for white space and, in o200k, slashes.
"""

_LINES_KEPT = 32768

_LONGEST_LINE_KEPT = 2000

_loading = Lock()


@dataclass(frozen=True)
class _TableCounter:
    """Counts with one table of tiktoken. It can be sent to another process."""

    table: str

    def __call__(self, text: str) -> int:
        return sum(
            (_count_once if len(line) <= _LONGEST_LINE_KEPT else _count)(self.table, line)
            for line in _LINE_STARTS.split(text)
        )


def _count(table: str, text: str) -> int:
    return len(_encoding(table).encode_ordinary(text))


@lru_cache(maxsize=_LINES_KEPT)
def _count_once(table: str, line: str) -> int:
    """Contexts of one conversation consist of the same lines again and again, and so do runs."""
    return _kept_counts(table).of(line, lambda: _count(table, line))


@lru_cache(maxsize=2)
def _kept_counts(table: str) -> KeptCounts:
    return KeptCounts(cache_folder() / f"{table}.counts")


def token_counter(model: str) -> TokenCounter:
    """Counts the tokens of a text: with their own tokenizer for OpenAI's models, with cl100k for all others.

    The first line that is not kept from earlier runs loads the tokenizer's table, which takes 0.15 s of CPU;
    20,000 tokens then take some 10 ms.
    """
    return _TableCounter("o200k_base" if _O200K.search(model) else "cl100k_base")


def context_window(model: str) -> int | None:
    """Tokens in the model's context window; None where unknown."""
    return model_facts(model).context_window


def context_budget(model: str, asked: int | None, limited_by_top_k: bool = True) -> int:
    """Tokens of memory that a prompt may hold: ``asked``, within the model's window.

    Without ``asked``, all that question and reply leave of the window, or 8,192 where the window is unknown. The
    embedded reader is known to have no window. There a memory that returns at most top-k hits is limited by these,
    and 8,192 is only a safeguard; one that returns all it has (not ``limited_by_top_k``) is not limited at all,
    since any number that nobody chose would decide how well it does.
    """
    window = context_window(model)
    if window is None:
        has_no_limit = model == EXTRACTIVE_MODEL and not limited_by_top_k
        default = UNLIMITED if has_no_limit else UNKNOWN_WINDOW_BUDGET
        return default if asked is None else asked
    room = max(window - PROMPT_RESERVE - longest_reply(model), _SMALLEST_BUDGET)
    return room if asked is None else min(asked, room)


@lru_cache(maxsize=2)
def _encoding(name: str) -> Encoding:
    import tiktoken

    with _loading, _bundled_tables():
        return tiktoken.get_encoding(name)


@contextmanager
def _bundled_tables() -> Iterator[None]:
    """Point tiktoken at the tables in LiteLLM's folder while it loads one, or it would download it."""
    folder = litellm_folder()
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    if folder is not None:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder / "litellm_core_utils" / "tokenizers")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("TIKTOKEN_CACHE_DIR", None)
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
