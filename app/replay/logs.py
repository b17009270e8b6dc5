"""The text of a Redis key that only grows: its pieces, and how many of them there were when."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from app.replay.lazily import Lazily
from app.replay.pointers import MISSING, Missing

Piece = tuple[int, str]
"""The position at which something was appended, and the text."""


class LogHistory:
    """The appended pieces of one log. They are kept whole: together they are as long as what was said."""

    def __init__(self) -> None:
        self._turns = array("I")
        self._ends = array("I")
        self._refs = array("q")
        self._pieces: list[str] = []
        self.size = 0

    def add(self, turn: int, ref: int, offset: int, text: str) -> None:
        """Take in the next append. A gap between offset and size would be a lost write.

        Raises:
            ValueError: the append does not start where the log ended.
        """
        if offset != self.size:
            raise ValueError(f"append at byte {offset} of a log of {self.size} bytes")
        self.size += len(text.encode())
        self._turns.append(turn)
        self._refs.append(ref)
        self._pieces.append(text)
        self._ends.append(self.size)

    def clear(self) -> None:
        """The key was removed."""
        self._turns, self._ends, self._refs = array("I"), array("I"), array("q")
        self._pieces, self.size = [], 0

    def changed_at(self, turn: int) -> bool:
        """Whether the log grew at exactly this position."""
        return bisect_right(self._turns, turn) > bisect_right(self._turns, turn - 1)

    def pieces_at(self, turn: int) -> Sequence[Piece]:
        """The appended pieces up to ``turn``: a view, whatever their number."""
        turns, pieces = self._turns, self._pieces
        return Lazily(range(bisect_right(turns, turn)), lambda place: (turns[place], pieces[place]))

    def value_at(self, turn: int) -> str | Missing:
        """The whole text; :data:`MISSING` where nothing was appended yet."""
        count = bisect_right(self._turns, turn)
        return "".join(self._pieces[:count]) if count else MISSING

    def size_at(self, turn: int) -> int:
        """Bytes of the text."""
        count = bisect_right(self._turns, turn)
        return self._ends[count - 1] if count else 0

    def writes_until(self, turn: int) -> Sequence[tuple[int, int, str]]:
        """Position, reference and text of the appends up to ``turn``, oldest first."""
        count = bisect_right(self._turns, turn)
        return list(zip(self._turns[:count], self._refs[:count], self._pieces[:count], strict=True))
