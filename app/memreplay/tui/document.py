"""A list as a document: a block an item, one of which is pointed at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, Protocol

from memreplay.tui.text import Line, Row, Span, Tone, wrap, wrapped

_MEASURED_AT_ONCE = 100


class Document(Protocol):
    """Blocks of rows. The height of a block, and its guess, depend on nothing but its index and the width."""

    def __len__(self) -> int:
        """How many blocks there are now."""
        ...

    def height(self, index: int, width: int) -> int:
        """Rows that a block takes."""
        ...

    def guess(self, index: int, width: int) -> int:
        """About as many rows as a block takes, without laying it out."""
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

    def guess(self, index: int, width: int) -> int:
        """Exactly as many: lines are wrapped once, and few."""
        return self.height(index, width)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a line."""
        return self._wrap(index, width)

    def subject(self, index: int) -> Hashable | None:
        """What a line is about."""
        return self.lines[index].about

    def _wrapped(self, index: int, width: int) -> tuple[Row, ...]:
        return tuple(wrap(self.lines[index], width))


class MadeDocument:
    """Blocks of lines that are made when they are looked at: of what is slow to load, and much of it unseen.

    ``make`` gives the lines of a block by its index, ``guessed`` is about the rows of each.
    """

    def __init__(self, count: int, make: Callable[[int], Sequence[Line]], guessed: int) -> None:
        self._count = count
        self._guessed = guessed
        self._made = lru_cache(maxsize=512)(make)
        self._laid_out = lru_cache(maxsize=512)(self._lay_out)

    def __len__(self) -> int:
        return self._count

    def height(self, index: int, width: int) -> int:
        """Rows that a block takes."""
        return len(self._laid_out(index, width))

    def guess(self, index: int, width: int) -> int:
        """The same for all."""
        return self._guessed

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a block."""
        return self._laid_out(index, width)

    def subject(self, index: int) -> Hashable | None:
        """There is nothing to follow."""
        return None

    def _lay_out(self, index: int, width: int) -> tuple[Row, ...]:
        return tuple(wrapped(self._made(index), width))


class Layout:
    """Where the blocks of a document start at one width. It grows as the document grows.

    To lay out tens of thousands of blocks takes seconds. So the heights of all but the first are guessed until they
    are looked at, or :meth:`measure` is asked to make sure of them; then what comes after them moves.
    """

    def __init__(self, document: Document, width: int) -> None:
        self.document = document
        self.width = width
        self._heights = array("Q")
        self._is_exact = bytearray()
        self._starts = array("Q", [0])

    @property
    def total(self) -> int:
        """Rows of all blocks there are now."""
        return self.start(len(self.document))

    def start(self, index: int) -> int:
        """The first row of a block; that of the block after the last is the number of rows."""
        for block in range(len(self._heights), index):
            exact = block < _MEASURED_AT_ONCE
            take = self.document.height if exact else self.document.guess
            self._heights.append(take(block, self.width))
            self._is_exact.append(exact)
            self._starts.append(self._starts[-1] + self._heights[-1])
        return self._starts[index]

    def measure(self, block: int, *, before: int, after: int) -> None:
        """Make sure of the heights of a block and of those around it: so many rows before it and from it on."""
        count = len(self.document)
        self.start(count)
        lowest = len(self._heights)
        for places, rows in ((range(block, count), after), (range(block - 1, -1, -1), before)):
            seen = 0
            for place in places:
                if seen >= rows:
                    break
                if self._made_sure(place):
                    lowest = min(lowest, place)
                seen += self._heights[place]
        self._starts[lowest:] = array("Q", accumulate(self._heights[lowest:], initial=self._starts[lowest]))

    def _made_sure(self, block: int) -> bool:
        """Whether the height of a block is another than was guessed."""
        if self._is_exact[block]:
            return False
        guessed, self._heights[block] = self._heights[block], self.document.height(block, self.width)
        self._is_exact[block] = True
        return guessed != self._heights[block]

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
            self.measure(block, before=0, after=skipped + count)
            while len(rows) < count and block < len(self.document):
                rows += self.document.rows(block, self.width)[skipped : skipped + count - len(rows)]
                block, skipped = block + 1, 0
        return [*rows, *[None] * (count - len(rows))]


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
