"""Damage of a recording, in one sentence. Imports little: it is part of what a recorded agent loads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from pydantic import ValidationError

from memreplay.errors import DamagedEventError, RecordingError

UNREADABLE = (sqlite3.Error, orjson.JSONDecodeError, ValidationError)
"""Errors that a damaged recording causes."""

_INCONSISTENT = (LookupError, TypeError, AttributeError, ValueError, OverflowError, AssertionError, RecursionError)
"""Errors of code that reads a recording whose rows contradict each other, such as a score without its question."""


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Report damage that is found in this block in one sentence.

    Raises:
        RecordingError: something in the file is not what memreplay writes.
    """
    try:
        yield
    except DamagedEventError as error:
        raise RecordingError(f"{path}: {error}; expected what memreplay writes") from None
    except UNREADABLE as error:
        raise RecordingError(f"{path}: damaged: {_one_line(error)}; expected what memreplay writes") from None
    except _INCONSISTENT as error:
        what = f"{type(error).__name__}: {_one_line(error)}"
        raise RecordingError(
            f"{path}: damaged: its rows contradict each other ({what}); expected what memreplay writes"
        ) from error


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = "/".join(map(str, first["loc"]))
        return f"{place or 'a value'} cannot be used: {first['msg']}"
    return str(error).partition("\n")[0]


@contextmanager
def reporting_damaged_event() -> Iterator[None]:
    """Report an event's body that is not what memreplay writes as a :class:`DamagedEventError`."""
    try:
        yield
    except (*UNREADABLE, *_INCONSISTENT) as error:
        raise DamagedEventError(f"a damaged event cannot be read: {_one_line(error)}") from None
