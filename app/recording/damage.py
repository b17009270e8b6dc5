"""A recording that opens but cannot be read on: a page went bad, a table or a value is not what was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from pydantic import ValidationError

from app.errors import RecordingError

UNREADABLE = (sqlite3.Error, orjson.JSONDecodeError, ValidationError)
"""What reading a damaged recording ends in."""


class DamagedEventError(RecordingError):
    """An event cannot be read; of which file, whoever reads it knows."""


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Read a recording in this block, and have damage told in one sentence.

    Raises:
        RecordingError: something in the file is not what memreplay writes.
    """
    try:
        yield
    except DamagedEventError as error:
        raise RecordingError(f"{path}: {error}; expected what memreplay writes") from None
    except UNREADABLE as error:
        raise RecordingError(f"{path}: damaged: {in_short(error)}; expected what memreplay writes") from None


def in_short(error: Exception) -> str:
    """What is wrong, on one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = "/".join(map(str, first["loc"]))
        return f"{place or 'a value'} cannot be used: {first['msg']}"
    return str(error).partition("\n")[0]
