"""Cells and columns of the tables of results, and how numbers are written in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memreplay.scoring.results import BackendResults
from memreplay.text import UNKNOWN

Columns = Mapping[str, Mapping[str, str]]
"""The cell of each backend, by heading."""

Column = tuple[Callable[[BackendResults], str], str]
"""What makes a cell, and what the column means."""

ColumnsByHeading = Mapping[str, Column]

NOTHING = UNKNOWN

_LONGEST_TEXT = 120


def share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def share_of(value: float | None, n: int) -> str:
    return NOTHING if value is None else f"{share(value)} of {n}"


def number(value: float | None, decimals: int = 0) -> str:
    return NOTHING if value is None else f"{value:,.{decimals}f}"


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
