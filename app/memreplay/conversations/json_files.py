"""Read JSON files, whole or value by value. Every failure is a :class:`DatasetError`."""

from __future__ import annotations

import ast
import csv
import json
import re
import tokenize
import warnings
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import StringIO
from itertools import accumulate, pairwise
from math import isinf
from pathlib import Path
from typing import Any, BinaryIO, Literal

import ijson
import orjson
from ijson.common import JSONError

from memreplay.conversations.validation_errors import (
    SILENT,
    LoadCallbacks,
    OnBytesRead,
    OnWarning,
    Place,
    shown,
)
from memreplay.errors import DatasetError
from memreplay.files import NOT_REGULAR, is_irregular

DEEPEST = 1024
"""The deepest nesting that orjson parses; ijson has no limit of its own."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class NestingGuard:
    """Tracks the nesting depth of JSON that is read in chunks."""

    def __init__(self) -> None:
        self._level = 0
        self._in_text = False
        self._escape = b""

    def too_deep(self, data: bytes) -> bool:
        """Return whether the next chunk nests deeper than :data:`DEEPEST`."""
        data = self._escape + data
        self._escape = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        piece = data[: len(data) - len(self._escape)]
        # Close the strings that continue from the previous chunk or into the next one.
        begun = b'"' if self._in_text else b""
        self._in_text ^= bool(_quotes(piece) % 2)
        structure = _TEXT.sub(b"", begun + piece + (b'"' if self._in_text else b"")).translate(None, _NO_BRACKETS)
        levels = list(accumulate(map(_STEPS.__getitem__, structure), initial=self._level))
        self._level = levels[-1]
        return max(levels) > DEEPEST


def _quotes(data: bytes) -> int:
    """Return the number of unescaped quotes."""
    unambiguous = data.replace(b"\\\\", b"")
    return unambiguous.count(b'"') - unambiguous.count(b'\\"')


Entries = Generator[tuple[Place, Any], None, None]
"""Yields each value with its place. Closing the generator closes the file."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SQLITE = b"SQLite format 3\0"
_BUFFER_BYTES = 1 << 18


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open the file and skip a byte order mark."""
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


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_REPLACEMENT_CHARACTER = rb"\ufffd"


def parsed_json(data: bytes) -> Any:
    """Return a JSON value. Half a character, as of an emoji that was cut in two, is the replacement character.

    Raises:
        orjson.JSONDecodeError: it is no JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        whole = _with_whole_characters(data)
        if whole == data:
            raise
    return orjson.loads(whole)


def _with_whole_characters(data: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: _REPLACEMENT_CHARACTER if found["half"] else found[0], data)


def _parsed(data: bytes, place: Place, on_warning: OnWarning, parse: Callable[[bytes], Any] = parsed_json) -> Any:
    try:
        return parse(data)
    except orjson.JSONDecodeError as error:
        odd = _with_odd_numbers(_with_whole_characters(data))
        if odd is None:
            raise _not_json(data, error, place) from None
    on_warning(f"{place.path}: {place.pointer or '/'}: {_ODD_NUMBERS}")
    return odd.value


_ODD_NUMBERS = "holds NaN, infinity or a number of too many digits: it is read as null or rounded"
_LARGEST_READ_AGAIN = 64 << 20
"""Bytes of JSON that are read again, by a slower parser, if they are no strict JSON."""


@dataclass(frozen=True)
class _Odd:
    """Parsed JSON whose numbers may be outside the standard (NaN, Infinity)."""

    value: Any


def _with_odd_numbers(data: bytes) -> _Odd | None:
    """Return the value of JSON with numbers that other parsers refuse; None if something else is wrong with it."""
    found = 0

    def finite(text: str) -> float | None:
        nonlocal found
        found += 1
        return None if isinf(number := float(text)) else number

    def constant(_name: str) -> None:
        nonlocal found
        found += 1

    try:
        value = json.loads(
            data[:_LARGEST_READ_AGAIN].decode("utf-8-sig"),
            parse_int=lambda text: int(text) if len(text) <= _DIGITS else finite(text),
            parse_float=lambda text: finite(text) if isinf(float(text)) else float(text),
            parse_constant=constant,
        )
    except (ValueError, RecursionError):
        return None
    return _Odd(value) if found else None


_DIGITS = 18
"""Digits of an integer that every parser reads exactly."""


def _not_json(data: bytes, error: orjson.JSONDecodeError, place: Place) -> DatasetError:
    if not data.strip():
        return place.error("is empty", "JSON")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return place.error(f"is not UTF-8 (byte {wrong.start + 1})", "JSON in UTF-8")
    where = f"column {error.colno}" if place.line is not None else f"line {error.lineno}, column {error.colno}"
    expected = "one value, or one a line" if "after document" in error.msg else "JSON"
    return place.error(f"is not valid JSON ({where}: {error.msg})", expected)


def first_bytes(path: Path, count: int) -> bytes:
    """At most ``count`` bytes from the start of the file, without leading white space."""
    with _opened(path) as file:
        while chunk := file.read(count):
            if stripped := chunk.lstrip():
                return stripped
    return b""


def read_json(path: Path) -> Any:
    """Read a file that holds one JSON value, and refuse half a character in it."""
    with _opened(path) as file:
        return _parsed(file.read(), Place(path), SILENT.on_warning, orjson.loads)


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, with line breaks as \\n."""
    with _opened(path) as file:
        data = file.read()
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as wrong:
        raise Place(path).error(f"is not UTF-8 (byte {wrong.start + 1})", "text in UTF-8") from None


def read_lines(path: Path, callbacks: LoadCallbacks = SILENT) -> Entries:
    """Yield the values of a JSON Lines file with their places; skip blank lines.

    Continues after a broken line unless ``callbacks.on_error`` raises.
    """
    with _opened(path) as file:
        on_bytes = callbacks.on_opened(path)
        for number, line in enumerate(file, start=1):
            on_bytes(len(line))
            if not line.strip():
                continue
            place = Place(path, line=number)
            try:
                value = _parsed(line, place, callbacks.on_warning)
            except DatasetError as error:
                callbacks.on_error(error)
                continue
            for duplicate in _duplicates_of(line, place) if len(line) <= _LARGEST_CHECKED else ():
                callbacks.on_error(duplicate)
            yield place, value


_LARGEST_CHECKED = 1_000_000
"""Bytes of a file, or of a line, whose keys are checked; what is larger is read in constant memory."""


class _Pairs(list[tuple[str, Any]]):
    """The key-value pairs of an object, duplicates included."""


def duplicate_keys(path: Path) -> list[DatasetError]:
    """Return an error for each key that occurs twice in its object, in a file that can be parsed and is not too
    large.

    JSON parsers silently drop all values of a duplicate key but the last.
    """
    return _duplicates_of(path.read_bytes(), Place(path)) if path.stat().st_size <= _LARGEST_CHECKED else []


def _duplicates_of(data: bytes, place: Place) -> list[DatasetError]:
    try:
        text = data.decode("utf-8-sig")
        # Keep integers as strings: Python refuses to convert very long ones.
        try:
            json.loads(text, object_pairs_hook=_refuse_duplicates, parse_int=str)
        except _DuplicateKeyError:
            written = json.loads(text, object_pairs_hook=_Pairs, parse_int=str)
            return list(_duplicates_in(written, place))
    except RecursionError:
        return [place.error("is nested too deeply", "a conversation of turns and questions")]
    except ValueError:
        pass  # reported where it is read
    return []


class _DuplicateKeyError(Exception):
    """A key occurs twice in its object. Where, is found out in a second reading, which few files need."""


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _DuplicateKeyError


def _duplicates_in(value: object, place: Place) -> Iterator[DatasetError]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, inside in value:
            if key in seen:
                yield place.at(key).error("occurs twice in its object", "every field once")
            seen.add(key)
            yield from _duplicates_in(inside, place.at(key))
    elif isinstance(value, list):
        for index, inside in enumerate(value):
            yield from _duplicates_in(inside, place.at(index))


class _TooDeepError(Exception):
    """Nested deeper than :data:`DEEPEST`."""


class _MonitoredFile:
    """Reports how many bytes were read, and stops at excessive nesting."""

    def __init__(self, file: BinaryIO, on_bytes: OnBytesRead) -> None:
        self._file, self._on_bytes, self._nesting = file, on_bytes, NestingGuard()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if self._nesting.too_deep(data):
            raise _TooDeepError
        self._on_bytes(len(data))
        return data


def read_array(path: Path, callbacks: LoadCallbacks = SILENT) -> Entries:
    """Yield the entries of a JSON array with their places, in constant memory.

    A syntax error ends the iteration after it was reported to ``callbacks.on_error``.
    """
    with _opened(path) as file:
        monitored = _MonitoredFile(file, callbacks.on_opened(path))
        entries = enumerate(ijson.items(monitored, "item", buf_size=_BUFFER_BYTES, use_float=True))
        number = -1
        while True:
            try:
                number, entry = next(entries)
            except StopIteration:
                return
            except _TooDeepError:
                callbacks.on_error(
                    Place(path).error(f"is nested more than {DEEPEST:,} deep", "a list of a few levels")
                )
                return
            except JSONError as error:
                broken = Place(path).at(number + 1)
                odd = _with_odd_numbers(_whole(path)) if path.stat().st_size <= _LARGEST_READ_AGAIN else None
                if odd is None or not isinstance(odd.value, list):
                    callbacks.on_error(_broken_array(error, broken))
                    return
                callbacks.on_warning(f"{path}: {broken.pointer}: {_ODD_NUMBERS}")
                yield from ((Place(path).at(at), odd.value[at]) for at in range(number + 1, len(odd.value)))
                return
            yield Place(path).at(number), entry


def _whole(path: Path) -> bytes:
    with _opened(path) as file:
        return file.read()


def _broken_array(error: JSONError, place: Place) -> DatasetError:
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    first_line = text.partition("\n")[0]
    if "UTF8" in first_line:
        return place.error("is not UTF-8", "JSON in UTF-8")
    return place.error(f"is not valid JSON ({first_line})", "JSON")


def read_table(path: Path, callbacks: LoadCallbacks = SILENT) -> Entries:
    """Yield the rows of a CSV file as objects with the names of the columns, with the lines on which they end.

    An empty cell is null.
    """
    csv.field_size_limit(_LARGEST_CELL)
    with _opened(path) as file:
        on_bytes = callbacks.on_opened(path)

        def lines() -> Iterator[str]:
            for line in file:
                on_bytes(len(line))
                yield line.decode("utf-8")

        rows = csv.DictReader(lines(), strict=True)
        while True:
            try:
                row = next(rows, None)
            except UnicodeDecodeError as wrong:
                raise Place(path).error(
                    f"is not UTF-8 (byte {wrong.start + 1} of a line)", "CSV in UTF-8"
                ) from None
            except csv.Error as error:
                callbacks.on_error(Place(path, line=rows.line_num).error(f"is not valid CSV ({error})", "CSV"))
                return
            if row is None:
                return
            place = Place(path, line=rows.line_num)
            if surplus := row.pop(None, None):
                callbacks.on_error(
                    place.error(f"has {len(surplus) + len(row)} cells", f"{len(row)}, one for each column")
                )
                continue
            yield place, {name: cell or None for name, cell in row.items()}


_LARGEST_CELL = 1 << 28


def literal(text: str) -> Any:
    """Return the value that a text holds as JSON, or as Python prints it. Nothing in it is run.

    Raises:
        ValueError: it is neither; or it is a list that NumPy printed, which Python would read as one text.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    if _BESIDE.search(text) and _has_texts_side_by_side(text):
        raise ValueError("is a list without commas, as NumPy prints it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            value = ast.literal_eval(text)
        # Of what Python can write, only what JSON can hold too.
        return orjson.loads(orjson.dumps(value))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"is {shown(text)}") from None


_BESIDE = re.compile(r"""['"]\s*['"]""")


def _has_texts_side_by_side(text: str) -> bool:
    try:
        kinds = [each.type for each in tokenize.generate_tokens(StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return False
    told = [kind for kind in kinds if kind not in (tokenize.NL, tokenize.NEWLINE)]
    return (tokenize.STRING, tokenize.STRING) in pairwise(told)


def _with_values(rows: Entries, structured: Collection[str], callbacks: LoadCallbacks) -> Entries:
    """Yield the rows of a table with the values that the cells of these columns hold."""
    for place, row in rows:
        try:
            for name in structured:
                if isinstance(cell := row.get(name), str):
                    row[name] = _value_of(cell, place.at(name))
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        yield place, row


def _value_of(cell: str, place: Place) -> Any:
    try:
        value = literal(cell)
    except ValueError as wrong:
        raise place.error(
            str(wrong), "a number, a list or an object, as JSON or Python writes it: or save the rows as JSON Lines"
        ) from None
    # A column of integers that has empty cells is written as 6.0.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_wrapped(value: Any) -> bool:
    """Return whether a value is a page of Hugging Face's API, or an entry of one."""
    if not isinstance(value, dict):
        return False
    if isinstance(rows := value.get("rows"), list):
        return all(isinstance(each, dict) and "row" in each for each in rows[:1])
    return "row_idx" in value and "row" in value


def _entries_of(value: Any, place: Place) -> list[tuple[Place, Any]]:
    """Return the entries of a page with their places; of another value, the value."""
    if isinstance(value, dict) and isinstance(rows := value.get("rows"), list):
        return [(place.at("rows", index), each) for index, each in enumerate(rows)]
    return [(place, value)]


def _rows(values: Entries, path: Path, callbacks: LoadCallbacks) -> Entries:
    """Yield the rows of pages, or of entries; warn if their dataset has more."""
    found, total = 0, 0
    for page_place, page in values:
        if isinstance(page, dict) and isinstance(number := page.get("num_rows_total"), int):
            total = max(total, number)
        for place, entry in _entries_of(page, page_place):
            if not isinstance(entry, dict) or "row" not in entry:
                said = entry.get("error", entry) if isinstance(entry, dict) else entry
                callbacks.on_error(place.error(f"is {shown(said)}", "a page of rows, or one row: fetch it again"))
                continue
            found += 1
            if cut := entry.get("truncated_cells"):
                names = ", ".join(map(str, cut)) if isinstance(cut, list) else cut
                callbacks.on_error(
                    place.error(f"was cut short in {shown(names)}", "whole cells: fetch it from /rows")
                )
                continue
            yield place.at("row"), entry["row"]
    if found < total:
        callbacks.on_warning(f"{path}: holds {found:,} of the {total:,} rows of its dataset")


JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")

Container = Literal["object", "lines", "array", "rows", "table", "text"]


@dataclass(frozen=True)
class DatasetFile:
    """A file whose beginning was read: how it holds its JSON values, and the fields of the first one; or text.

    A row of a table (CSV) is an object of texts. ``rows`` are those that Hugging Face's API gives, in pages.
    """

    path: Path
    container: Container
    fields: frozenset[str]
    is_empty: bool = False
    first: Any = None
    """The first value; of a file that holds one object, all of it."""
    warnings: tuple[str, ...] = ()
    """Warnings on a file that holds one object."""
    pages: DatasetFile | None = None
    """The file as it holds its pages, if it holds rows in pages."""

    @property
    def dataset(self) -> str:
        """Return the dataset's id: the file's stem."""
        return self.path.stem

    @property
    def is_one_object(self) -> bool:
        return self.container == "object"

    def values(self, callbacks: LoadCallbacks, structured: Collection[str] = ()) -> Entries:
        """Return the values of a JSON array, of JSON Lines, of a table or of pages; or the one value of the file.

        A duplicate key is an error. ``structured`` are the columns of a table whose cells are not text: what they
        hold is read as JSON, or as Python prints it.
        """
        if self.container in ("array", "object"):
            for error in duplicate_keys(self.path):
                callbacks.on_error(error)
        match self.container:
            case "object":
                for warning in self.warnings:
                    callbacks.on_warning(warning)
                yield Place(self.path), self.first
            case "array":
                yield from read_array(self.path, callbacks)
            case "rows":
                assert self.pages is not None
                yield from _rows(self.pages.values(callbacks), self.path, callbacks)
            case "table":
                yield from _with_values(read_table(self.path, callbacks), structured, callbacks)
            case _:
                yield from read_lines(self.path, callbacks)


def open_dataset_file(path: Path) -> DatasetFile:
    """Find out how a file holds its values. Reads only the beginning of arrays, JSON Lines and tables.

    Text that is neither is a file of the container ``text``.
    """
    beginning = first_bytes(path, 64)
    is_json = beginning[:1] in (b"[", b"{") and not _TIME_IN_BRACKETS.match(beginning)
    if beginning and not is_json and path.suffix.lower() not in JSON_SUFFIXES:
        return _table_or_text(path)
    said: list[str] = []
    container, first = _first_value(path, beginning, said.append)
    file = DatasetFile(
        path, container, _fields_of(first), is_empty=first is None, first=first, warnings=tuple(said)
    )
    if not _is_wrapped(first):
        return file
    row = next((entry["row"] for _, entry in _entries_of(first, Place(path))), None)
    return DatasetFile(path, "rows", _fields_of(row), is_empty=row is None, first=row, pages=file)


def _fields_of(value: Any) -> frozenset[str]:
    return frozenset(value) if isinstance(value, dict) else frozenset()


_TIME_IN_BRACKETS = re.compile(rb"\[\d{1,4}[-/.:]\d")
_COLUMNS = re.compile(rb'"?\w+"?(,"?[\w. ]+"?)+\r?\n')


def _table_or_text(path: Path) -> DatasetFile:
    if path.suffix.lower() == ".csv" or _COLUMNS.match(first_bytes(path, 4096)):
        with closing(read_table(path)) as rows:
            first = next(rows, None)
        if first is not None:
            return DatasetFile(path, "table", frozenset(first[1]), first=first[1])
    return DatasetFile(path, "text", frozenset())


def _first_value(path: Path, beginning: bytes, on_warning: OnWarning) -> tuple[Container, Any]:
    if beginning.startswith(b"["):
        return "array", _first_of(read_array(path))
    try:
        return "lines", _first_of(read_lines(path))
    except DatasetError:
        pass
    try:
        return "object", _parsed(_whole(path), Place(path), on_warning)
    except DatasetError:
        second = _object_in_second_line(path)
        if second is None:
            raise
        return "lines", second


def _object_in_second_line(path: Path) -> dict[str, Any] | None:
    """Return the object in the line after the first one, which is half a line in a log that was rotated."""
    with _opened(path) as file:
        file.readline()
        try:
            value = parsed_json(file.readline())
        except orjson.JSONDecodeError:
            return None
    return value if isinstance(value, dict) else None


def _first_of(values: Entries) -> Any:
    with closing(values):
        first = next(values, None)
    return first[1] if first else None
