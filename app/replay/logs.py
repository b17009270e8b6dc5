"""The text of a Redis key that grows by pieces, and now and then begins again."""

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
        self._starts = array("I")
        self._start = 0
        self.size = 0

    def add(self, turn: int, ref: int, offset: int, text: str) -> None:
        """Take in the next append. A gap between offset and size would be a lost write.

        Raises:
            ValueError: the append does not start where the log ended.
        """
        if offset != self.size:
            raise ValueError(f"append at byte {offset} of a log of {self.size} bytes")
        self.size += len(text.encode())
        self._note(turn, ref, text)

    def clear(self, turn: int, ref: int) -> None:
        """The key was removed: what is appended from now on begins a new text."""
        # The entry of a removal begins a text that has no piece yet.
        self._start, self.size = len(self._turns) + 1, 0
        self._note(turn, ref, "")

    def _note(self, turn: int, ref: int, piece: str) -> None:
        self._turns.append(turn)
        self._refs.append(ref)
        self._pieces.append(piece)
        self._ends.append(self.size)
        self._starts.append(self._start)

    def changed_at(self, turn: int) -> bool:
        """Whether the log grew at exactly this position."""
        return bisect_right(self._turns, turn) > bisect_right(self._turns, turn - 1)

    def pieces_at(self, turn: int) -> Sequence[Piece]:
        """The pieces that the text has at ``turn``: a view, whatever their number."""
        turns, pieces = self._turns, self._pieces
        return Lazily(self._there_at(turn), lambda place: (turns[place], pieces[place]))

    def value_at(self, turn: int) -> str | Missing:
        """The whole text; :data:`MISSING` where nothing was appended yet."""
        there = self._there_at(turn)
        return "".join(self._pieces[there.start : there.stop]) if there else MISSING

    def size_at(self, turn: int) -> int:
        """Bytes of the text."""
        count = bisect_right(self._turns, turn)
        return self._ends[count - 1] if count else 0

    def writes_until(self, turn: int) -> Sequence[tuple[int, int, str]]:
        """Position, reference and text of the appends that make up the text at ``turn``, oldest first."""
        return [(self._turns[at], self._refs[at], self._pieces[at]) for at in self._there_at(turn)]

    def _there_at(self, turn: int) -> range:
        """Which pieces make up the text."""
        count = bisect_right(self._turns, turn)
        return range(self._starts[count - 1] if count else 0, count)
