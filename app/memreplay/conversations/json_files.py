"""Read JSON from files, whole or one value at a time; every failure is a :class:`DatasetError`."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import ijson
import orjson
from ijson.common import JSONError

from memreplay.conversations.validation_errors import SILENT, Listener, OnBytes, Place
from memreplay.errors import DatasetError
from memreplay.files import NOT_REGULAR, is_irregular

DEEPEST = 1024
"""As deep as values are read that are parsed whole."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class NestingGuard:
    """Hears all that is read of a file, and says when it goes too deep."""

    def __init__(self) -> None:
        self._level = 0
        self._in_text = False
        self._escape = b""

    def too_deep(self, data: bytes) -> bool:
        """Whether, with this next piece, it goes deeper than :data:`DEEPEST`."""
        data = self._escape + data
        self._escape = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        piece = data[: len(data) - len(self._escape)]
        # A text that goes on from the piece before, or into the next, is given its other end.
        begun = b'"' if self._in_text else b""
        self._in_text ^= bool(_quotes(piece) % 2)
        structure = _TEXT.sub(b"", begun + piece + (b'"' if self._in_text else b"")).translate(None, _NO_BRACKETS)
        levels = list(accumulate(map(_STEPS.__getitem__, structure), initial=self._level))
        self._level = levels[-1]
        return max(levels) > DEEPEST


def _quotes(data: bytes) -> int:
    """How many quotes begin or end a text."""
    unambiguous = data.replace(b"\\\\", b"")
    return unambiguous.count(b'"') - unambiguous.count(b'\\"')


Entries = Generator[tuple[Place, Any], None, None]
"""Values with their places, one at a time; closing it closes the file."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SQLITE = b"SQLite format 3\0"
_BUFFER_BYTES = 1 << 18


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, at its first byte after a byte order mark."""
    place = Place(path)
    if is_irregular(path):
        raise place.error(NOT_REGULAR, "a file that can be read to its end")
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_SQLITE))
            if beginning == _SQLITE:
                raise place.error("is an SQLite file", "JSON; a recording is opened with --recording FILE")
            file.seek(len(_BYTE_ORDER_MARK) if beginning.startswith(_BYTE_ORDER_MARK) else 0)
            yield file
    except FileNotFoundError:
        raise place.error("does not exist", "a dataset file") from None
    except OSError as error:
        raise place.error(f"cannot be read ({error.strerror})", "a readable dataset file") from None


def _parsed(data: bytes, place: Place) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _not_json(data, error, place) from None


def _not_json(data: bytes, error: orjson.JSONDecodeError, place: Place) -> DatasetError:
    if not data.strip():
        return place.error("is empty", "JSON")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return place.error(f"is not UTF-8 (byte {wrong.start + 1})", "JSON in UTF-8")
    where = f"column {error.colno}" if place.line is not None else f"line {error.lineno}, column {error.colno}"
    return place.error(f"is not valid JSON ({where}: {error.msg})", "JSON")


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes that are not white space, at most ``count``."""
    with _opened(path) as file:
        while chunk := file.read(count):
            if stripped := chunk.lstrip():
                return stripped
    return b""


def read_json(path: Path) -> Any:
    """The one JSON value of a file."""
    with _opened(path) as file:
        return _parsed(file.read(), Place(path))


def read_lines(path: Path, listener: Listener = SILENT) -> Entries:
    """The values of a JSON Lines file, one at a time, with their places; blank lines are passed over.

    After a broken line the next one is read, if the listener lets it.
    """
    with _opened(path) as file:
        on_bytes = listener.opened(path)
        for number, line in enumerate(file, start=1):
            on_bytes(len(line))
            if not line.strip():
                continue
            place = Place(path, line=number)
            try:
                value = _parsed(line, place)
            except DatasetError as error:
                listener.error(error)
                continue
            yield place, value


class _TooDeepError(Exception):
    """A file is nested deeper than anybody would write it."""


class _Watched:
    """A file of which somebody hears how much of it was read."""

    def __init__(self, file: BinaryIO, on_bytes: OnBytes, nesting: NestingGuard) -> None:
        self._file, self._on_bytes, self._nesting = file, on_bytes, nesting

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes."""
        data = self._file.read(size)
        if self._nesting.too_deep(data):
            raise _TooDeepError
        self._on_bytes(len(data))
        return data


def read_array(path: Path, listener: Listener = SILENT) -> Entries:
    """The entries of a JSON array, one at a time, with their places, however long the array is.

    Where the array is broken it cannot be read further: that is the last fault.
    """
    with _opened(path) as file:
        watched = _Watched(file, listener.opened(path), NestingGuard())
        entries = enumerate(ijson.items(watched, "item", buf_size=_BUFFER_BYTES, use_float=True))
        number = -1
        while True:
            try:
                number, entry = next(entries)
            except StopIteration:
                return
            except _TooDeepError:
                listener.error(Place(path).error(f"is nested more than {DEEPEST:,} deep", "a list of a few levels"))
                return
            except JSONError as error:
                listener.error(_broken_array(error, Place(path).at(number + 1)))
                return
            yield Place(path).at(number), entry


def _broken_array(error: JSONError, place: Place) -> DatasetError:
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    first_line = text.partition("\n")[0]
    if "UTF8" in first_line:
        return place.error("is not UTF-8", "JSON in UTF-8")
    return place.error(f"is not valid JSON ({first_line})", "JSON")
