"""Tables of cases: one test for each table, which lists the rows that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def failing(rows: Iterable[Any], check: Callable[..., None]) -> list[Any]:
    """Return the rows for which ``check`` fails; it gets the values of a tuple as arguments."""
    failed = []
    for row in rows:
        try:
            check(*(row if isinstance(row, tuple) else (row,)))
        except AssertionError:
            failed.append(row)
    return failed
