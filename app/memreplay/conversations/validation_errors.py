"""Errors in dataset files: where they are, what is wrong, what was expected; and who receives warnings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from memreplay.errors import DatasetError

M = TypeVar("M", bound=BaseModel)

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Place:
    """A place in a dataset file: ``line`` is set in JSON Lines, ``steps`` lead through the JSON value."""

    path: Path
    line: int | None = None
    steps: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> Place:
        """A place further inside."""
        return replace(self, steps=self.steps + steps)

    @property
    def pointer(self) -> str:
        """JSON pointer (RFC 6901), after the line number where there is one: ``line 3/choices``."""
        line = "" if self.line is None else f"line {self.line}"
        escaped = (printable(str(step)).replace("~", "~0").replace("/", "~1") for step in self.steps)
        return line + "".join(f"/{step}" for step in escaped)

    def error(self, problem: str, expected: str) -> DatasetError:
        """A fault at this place."""
        return DatasetError(self.path, self.pointer, problem, expected)


class DatasetErrors(DatasetError):
    """All the faults of one value. By itself it reads as the first of them."""

    def __init__(self, faults: Iterable[DatasetError]) -> None:
        self.faults = tuple(faults)
        first = self.faults[0]
        super().__init__(first.path, first.pointer, first.problem, first.expected)


def each_of(error: DatasetError) -> tuple[DatasetError, ...]:
    """The faults that an error stands for, one at least."""
    return error.faults if isinstance(error, DatasetErrors) else (error,)


class Gathering:
    """Faults gathered while reading goes on, to be refused together in the end."""

    def __init__(self) -> None:
        self.faults: list[DatasetError] = []

    def add(self, fault: DatasetError) -> None:
        """One more fault, or all that it stands for."""
        self.faults.extend(each_of(fault))

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Keep the fault that is raised inside; what comes after is done all the same."""
        try:
            yield
        except DatasetError as error:
            self.add(error)

    def refuse(self) -> None:
        """Raise what was gathered, if anything was."""
        if self.faults:
            raise DatasetErrors(self.faults)


def printable(text: str) -> str:
    """The text with control characters, bidi controls and line breaks as JSON escapes, safe for a terminal."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def shown(value: object) -> str:
    """A value in the terms of JSON, cut to fit in a sentence."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            cut = value if len(value) <= _SHOWN_CHARACTERS else value[: _SHOWN_CHARACTERS - 1] + "…"
            return '"' + printable(cut.replace("\n", " ")) + '"'
        case int() | float():
            return str(value)
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return "an object"
    return type(value).__name__


def _integer_to_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


TextOrInteger = Annotated[str, BeforeValidator(_integer_to_text)]
"""A text; an integer in its place is read as its digits."""

_EXPECTED_BY_TYPE = {
    "string_type": "text",
    "int_type": "an integer",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "string_too_short": "text that is not empty",
    "greater_than_equal": "a number that is not negative",
}


def entries(number: int) -> str:
    """So many entries of a list, in words."""
    return "1 entry" if number == 1 else f"{number} entries"


def _in_words(details: ErrorDetails) -> tuple[str, str]:
    kind, context = details["type"], details.get("ctx", {})
    match kind:
        case "missing":
            return "is missing", "this field"
        case "extra_forbidden":
            return "is not a field of this format", "no unknown fields"
        case "literal_error":
            return f"is {shown(details['input'])}", str(context["expected"])
        case "too_short":
            return f"has {entries(context['actual_length'])}", f"at least {context['min_length']}"
    if kind in _EXPECTED_BY_TYPE:
        return f"is {shown(details['input'])}", _EXPECTED_BY_TYPE[kind]
    return f"is {shown(details['input'])}", details["msg"]


def validated(model: type[M], data: Any, place: Place) -> M:
    """The data as that model.

    Raises:
        DatasetErrors: all that Pydantic found.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise DatasetErrors(place.at(*details["loc"]).error(*_in_words(details)) for details in found) from None


Warn = Callable[[str], None]
OnBytes = Callable[[int], None]
OnOpened = Callable[[Path], OnBytes]
"""Told of a file that is opened to be read to its end; what it returns is told of every stretch of bytes read."""


def _unheard(_: str | int) -> None:
    """Nobody listens."""


def _unwatched(_: Path) -> OnBytes:
    return _unheard


def refuse(fault: DatasetError) -> None:
    """A fault ends the reading."""
    raise fault


def pass_over(_: DatasetError) -> None:
    """A fault that was told before."""


@dataclass(frozen=True)
class Listener:
    """Warnings, repairs and faults of a file, and how far its reading has come.

    ``warn`` hears what a reader should know though the file loads, ``repaired`` of malformed evidence that was put
    right. ``fault`` either raises, or keeps the fault: then the reading goes on with the next part of the file.
    """

    warn: Warn = _unheard
    repaired: Warn = _unheard
    error: Callable[[DatasetError], None] = refuse
    opened: OnOpened = _unwatched


SILENT = Listener()
