"""Errors in dataset files: the place, the problem and what was expected; and callbacks for warnings and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.errors import DatasetError
from memreplay.printable import printable

M = TypeVar("M", bound=BaseModel)

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Place:
    """A place in a dataset file: the line in JSON Lines, and the keys and indexes that lead to a JSON value."""

    path: Path
    line: int | None = None
    steps: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> Place:
        """Return a place below this one."""
        return Place(self.path, self.line, self.steps + steps)

    @property
    def pointer(self) -> str:
        """JSON pointer (RFC 6901), after the line number where there is one: ``line 3/choices``."""
        line = "" if self.line is None else f"line {self.line}"
        escaped = (printable(str(step)).replace("~", "~0").replace("/", "~1") for step in self.steps)
        return line + "".join(f"/{step}" for step in escaped)

    def error(self, problem: str, expected: str) -> DatasetError:
        return DatasetError(self.path, self.pointer, problem, expected)


class DatasetErrors(DatasetError):
    """Several errors at once; ``str()`` shows the first."""

    def __init__(self, errors: Iterable[DatasetError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        super().__init__(first.path, first.pointer, first.problem, first.expected)


def individual_errors(error: DatasetError) -> tuple[DatasetError, ...]:
    """Return the errors that a :class:`DatasetErrors` holds, or the error itself."""
    return error.errors if isinstance(error, DatasetErrors) else (error,)


class ErrorCollector(list[DatasetError]):
    """Collects errors so that all of them can be raised together."""

    def add(self, error: DatasetError) -> None:
        self.extend(individual_errors(error))

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect the error that the block raises, and continue after the block."""
        try:
            yield
        except DatasetError as error:
            self.add(error)

    def raise_all(self) -> None:
        """Raise :class:`DatasetErrors` if there are any errors."""
        if self:
            raise DatasetErrors(self)


def shown(value: object) -> str:
    """Return a value as JSON would show it, shortened to fit into a sentence."""
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
"""A string; an integer is converted to its digits."""

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
    """``1 entry``, ``2 entries``."""
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
        case "string_too_long":
            return f"has {len(details['input']):,} characters", f"at most {context['max_length']:,}"
        case "too_short":
            return f"has {entries(context['actual_length'])}", f"at least {context['min_length']}"
    if kind in _EXPECTED_BY_TYPE:
        return f"is {shown(details['input'])}", _EXPECTED_BY_TYPE[kind]
    return f"is {shown(details['input'])}", details["msg"]


def validated(model: type[M], data: Any, place: Place) -> M:
    """Validate the data with a Pydantic model.

    Raises:
        DatasetErrors: every error that Pydantic found.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise DatasetErrors(place.at(*details["loc"]).error(*_in_words(details)) for details in found) from None


OnWarning = Callable[[str], None]
OnBytesRead = Callable[[int], None]
OnOpened = Callable[[Path], OnBytesRead]
"""Called with each file before it is read; the returned callback is called with the size of each chunk."""


def _ignore(_: str | int) -> None:
    pass


def _ignore_bytes_of(_: Path) -> OnBytesRead:
    return _ignore


def raise_error(error: DatasetError) -> None:
    """Stop reading at the first error."""
    raise error


def ignore_error(_: DatasetError) -> None:
    """Skip an error that was already reported."""


@dataclass(frozen=True)
class LoadCallbacks:
    """Functions that are called while a file is loaded, and what the user says about chat logs.

    ``on_warning`` receives problems that do not stop the file from loading, ``on_repair`` malformed evidence that
    was corrected. ``on_error`` either raises the error, or records it; then the loader continues with the next
    entry of the file.
    """

    on_warning: OnWarning = _ignore
    on_repair: OnWarning = _ignore
    on_error: Callable[[DatasetError], None] = raise_error
    on_opened: OnOpened = _ignore_bytes_of
    options: LogOptions = DEFAULT_LOG_OPTIONS


SILENT = LoadCallbacks()
