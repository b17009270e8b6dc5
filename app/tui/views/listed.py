"""A list as a document: a block an item, one of which is pointed at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from app.tui.text import Row, Span, Tone

SIGN: Final = 2
"""Cells at the left of every row, where the item that is pointed at has its sign."""


class ListedDocument(ABC):
    """What lists have in common. ``cursor`` is the place of the item that is pointed at, from 0."""

    def __init__(self) -> None:
        self.cursor = 0
        self._laid_out = lru_cache(maxsize=512)(self._with_sign)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        """The rows of an item, at least one, in so many cells; ``column`` is the part pointed at, if any is."""

    @property
    def column(self) -> int:
        """Which part of the item is pointed at."""
        return 0

    def height(self, index: int, width: int) -> int:
        """Rows that an item takes, with the empty one below it."""
        return len(self._laid_out(index, width, None))

    def guess(self, index: int, width: int) -> int:
        """Exactly as many."""
        return self.height(index, width)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of an item, with its sign where it is pointed at."""
        return self._laid_out(index, width, self.column if index == self.cursor else None)

    def subject(self, index: int) -> None:
        """Nothing: the screen moves through the list by keys of its own."""
        return

    def _with_sign(self, index: int, width: int, column: int | None) -> tuple[Row, ...]:
        here = column is not None
        first, *rest = self.lay_out(index, width - SIGN, column)
        fill: Tone | None = "current" if here else None
        return (
            Row((Span("▶ " if here else "  ", "accent"), *first.spans), fill),
            *(Row((Span("  "), *row.spans), fill) for row in rest),
            Row(),
        )
