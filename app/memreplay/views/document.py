"""Documents made of blocks of rows, and their layout at one width. No screen is needed for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, Protocol

from memreplay.views.text import Line, Row, Span, Tone, wrap, wrapped

_MEASURED_AT_ONCE = 100


class Document(Protocol):
    """Blocks of rows. The height of a block, and the guess of it, depend only on its index and the width."""

    def __len__(self) -> int:
        """Return the current number of blocks."""
        ...

    def height(self, index: int, width: int) -> int:
        """Return the exact number of rows of a block."""
        ...

    def guess(self, index: int, width: int) -> int:
        """Return an estimate of the height that needs no layout."""
        ...

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """Return the rows of a block, as many as its height."""
        ...

    def subject(self, index: int) -> Hashable | None:
        """Return the subject that a block leads to; None if it leads nowhere."""
        ...


class LinesDocument:
    """Lines, each a block. Immutable: new content is a new document, and equal lines make equal documents."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = tuple(lines)
        self._wrap = lru_cache(maxsize=None)(self._wrapped)

    def __len__(self) -> int:
        return len(self.lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinesDocument) and self.lines == other.lines

    __hash__ = None  # type: ignore[assignment]

    def height(self, index: int, width: int) -> int:
        return len(self._wrap(index, width))

    def guess(self, index: int, width: int) -> int:
        """Return the exact height: there are few lines, and each is wrapped once."""
        return self.height(index, width)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        return self._wrap(index, width)

    def subject(self, index: int) -> Hashable | None:
        return self.lines[index].about

    def _wrapped(self, index: int, width: int) -> tuple[Row, ...]:
        return tuple(wrap(self.lines[index], width))


class LazyDocument:
    """Blocks of lines that are made when they are first shown: for content that is slow to load.

    ``make`` returns the lines of a block by its index, ``guessed`` is the typical height of a block.
    """

    def __init__(self, count: int, make: Callable[[int], Sequence[Line]], guessed: int) -> None:
        self._count = count
        self._guessed = guessed
        self._made = lru_cache(maxsize=512)(make)
        self._laid_out = lru_cache(maxsize=512)(self._lay_out)

    def __len__(self) -> int:
        return self._count

    def height(self, index: int, width: int) -> int:
        return len(self._laid_out(index, width))

    def guess(self, index: int, width: int) -> int:
        return self._guessed

    def rows(self, index: int, width: int) -> Sequence[Row]:
        return self._laid_out(index, width)

    def subject(self, index: int) -> Hashable | None:
        return None

    def _lay_out(self, index: int, width: int) -> tuple[Row, ...]:
        return tuple(wrapped(self._made(index), width))


class Layout:
    """The starts of a document's blocks at one width. It grows with the document.

    Laying out tens of thousands of blocks takes seconds. So all heights but the first hundred are guesses until
    :meth:`measure` replaces them with exact ones; then the blocks below move.
    """

    def __init__(self, document: Document, width: int) -> None:
        self.document = document
        self.width = width
        self._heights = array("Q")
        self._is_exact = bytearray()
        self._starts = array("Q", [0])

    @property
    def total(self) -> int:
        """Return the number of rows of all blocks."""
        return self.start(len(self.document))

    def start(self, index: int) -> int:
        """Return the first row of a block. For the block after the last it is the number of rows."""
        for block in range(len(self._heights), index):
            exact = block < _MEASURED_AT_ONCE
            take = self.document.height if exact else self.document.guess
            self._heights.append(take(block, self.width))
            self._is_exact.append(exact)
            self._starts.append(self._starts[-1] + self._heights[-1])
        return self._starts[index]

    def measure(self, block: int, *, before: int, after: int) -> None:
        """Measure the blocks that cover ``before`` rows above a block and ``after`` rows from its top."""
        count = len(self.document)
        self.start(count)
        lowest = len(self._heights)
        for places, rows in ((range(block, count), after), (range(block - 1, -1, -1), before)):
            seen = 0
            for place in places:
                if seen >= rows:
                    break
                if self._is_remeasured(place):
                    lowest = min(lowest, place)
                seen += self._heights[place]
        self._starts[lowest:] = array("Q", accumulate(self._heights[lowest:], initial=self._starts[lowest]))

    def _is_remeasured(self, block: int) -> bool:
        """Measure a block, and report whether its height differs from the guess."""
        if self._is_exact[block]:
            return False
        guessed, self._heights[block] = self._heights[block], self.document.height(block, self.width)
        self._is_exact[block] = True
        return guessed != self._heights[block]

    def block_at(self, row: int) -> int | None:
        """Return the block that a row belongs to; None below the last row."""
        if not 0 <= row < self.total:
            return None
        return bisect_right(self._starts, row, hi=len(self.document) + 1) - 1

    def rows_from(self, row: int, count: int) -> list[Row | None]:
        """``count`` rows starting at ``row``; None below the last row."""
        block = self.block_at(row)
        rows: list[Row | None] = []
        if block is not None:
            skipped = row - self._starts[block]
            self.measure(block, before=0, after=skipped + count)
            while len(rows) < count and block < len(self.document):
                rows += self.document.rows(block, self.width)[skipped : skipped + count - len(rows)]
                block, skipped = block + 1, 0
        return [*rows, *[None] * (count - len(rows))]


class Selectable(ABC):
    """A document with a selected block: ``cursor``, counted from 0. A block has one row, if not said otherwise."""

    def __init__(self) -> None:
        self.cursor = 0

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def rows(self, index: int, width: int) -> Sequence[Row]: ...

    def height(self, index: int, width: int) -> int:
        return 1

    def guess(self, index: int, width: int) -> int:
        return self.height(index, width)

    def subject(self, index: int) -> None:
        """None: a screen with a selected block has keys of its own."""
        return


_MARGIN: Final = 2
"""Cells at the left of every row; the selected item has its sign there."""


class ListDocument(Selectable):
    """A list, one block per item."""

    def __init__(self) -> None:
        super().__init__()
        self._laid_out = lru_cache(maxsize=512)(self._with_sign)

    @abstractmethod
    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        """Return the rows of an item, at least one; ``column`` is the selected part, None if the item is not
        selected.
        """

    @property
    def column(self) -> int:
        """Return the selected part of the selected item."""
        return 0

    def height(self, index: int, width: int) -> int:
        return len(self._laid_out(index, width, None))

    def rows(self, index: int, width: int) -> Sequence[Row]:
        return self._laid_out(index, width, self.column if index == self.cursor else None)

    def _with_sign(self, index: int, width: int, column: int | None) -> tuple[Row, ...]:
        here = column is not None
        first, *rest = self.lay_out(index, width - _MARGIN, column)
        fill: Tone | None = "current" if here else None
        return (
            Row((Span("▶ " if here else "  ", "accent"), *first.spans), fill),
            *(Row((Span("  "), *row.spans), fill) for row in rest),
            Row(),
        )
