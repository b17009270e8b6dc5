"""What a lines view shows: blocks of rows, laid out for a width only when they are looked at.

A document tells how high each block is, and gives the rows of a block. Heights may be asked for all blocks and are
kept; rows are asked for the visible ones only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Protocol

from app.tui.text import Line, Row, wrap


class Document(Protocol):
    """Blocks of rows. The height of a block depends on nothing but its index and the width."""

    def __len__(self) -> int:
        """How many blocks there are now."""
        ...

    def height(self, index: int, width: int) -> int:
        """Rows that a block takes."""
        ...

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a block, exactly as many as its height."""
        ...

    def subject(self, index: int) -> Hashable | None:
        """What can be followed from a block; None where there is nothing to follow."""
        ...


class LinesDocument:
    """Lines, each a block. They never change: new content is a new document. Equal lines are equal documents."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = tuple(lines)
        self._wrap = lru_cache(maxsize=None)(self._wrapped)

    def __len__(self) -> int:
        return len(self.lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinesDocument) and self.lines == other.lines

    __hash__ = None  # type: ignore[assignment]

    def height(self, index: int, width: int) -> int:
        """Rows that a line takes."""
        return len(self._wrap(index, width))

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a line."""
        return self._wrap(index, width)

    def subject(self, index: int) -> Hashable | None:
        """What a line is about."""
        return self.lines[index].about

    def _wrapped(self, index: int, width: int) -> tuple[Row, ...]:
        return tuple(wrap(self.lines[index], width))


class Layout:
    """Where the blocks of a document start at one width. It grows as the document grows."""

    def __init__(self, document: Document, width: int) -> None:
        self.document = document
        self.width = width
        self._starts = [0]

    @property
    def total(self) -> int:
        """Rows of all blocks there are now."""
        return self.start(len(self.document))

    def start(self, index: int) -> int:
        """The first row of a block; that of the block after the last is the number of rows."""
        for known in range(len(self._starts) - 1, index):
            self._starts.append(self._starts[-1] + self.document.height(known, self.width))
        return self._starts[index]

    def block_at(self, row: int) -> int | None:
        """The block that a row belongs to; None below the last."""
        if not 0 <= row < self.total:
            return None
        return bisect_right(self._starts, row, hi=len(self.document) + 1) - 1

    def rows_from(self, row: int, count: int) -> list[Row | None]:
        """So many rows from one on; None for those below the last."""
        block = self.block_at(row)
        rows: list[Row | None] = []
        if block is not None:
            skipped = row - self._starts[block]
            while len(rows) < count and block < len(self.document):
                rows += self.document.rows(block, self.width)[skipped : skipped + count - len(rows)]
                block, skipped = block + 1, 0
        return [*rows, *[None] * (count - len(rows))]
