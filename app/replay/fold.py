"""What a store held at a position of the cursor, folded from the changes that were traced.

Each history keeps the changes of one place in order of their position, and answers by bisection: a position far
into a long conversation costs what one near its start costs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonpatch

from memory_backends.operations import (
    AppendChange,
    PatchChange,
    RemoveChange,
    StoredPoint,
    UpsertChange,
    WriteChange,
)


class Missing:
    """The key does not exist at this position."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


class StateHistory:
    """The values of one Redis key that holds a JSON state."""

    def __init__(self) -> None:
        self._turns: list[int] = []
        self._changes: list[WriteChange | PatchChange | RemoveChange] = []
        self._latest: tuple[int, Any] = (-1, MISSING)

    def add(self, turn: int, change: WriteChange | PatchChange | RemoveChange) -> None:
        """Take in the next change; positions never go back."""
        self._turns.append(turn)
        self._changes.append(change)

    def changed_at(self, turn: int) -> bool:
        """Whether the key was written at exactly this position."""
        return bisect_right(self._turns, turn) > bisect_right(self._turns, turn - 1)

    def value_at(self, turn: int) -> Any:
        """The value after everything up to and including ``turn``; :data:`MISSING` where there is none."""
        index = bisect_right(self._turns, turn) - 1
        if index < 0:
            return MISSING
        known, value = self._latest
        if known != index:
            value = self._fold(index)
            self._latest = (index, value)
        return value

    def _fold(self, index: int) -> Any:
        start = index
        known, known_value = self._latest
        while start >= 0 and start != known and _whole_value(self._changes[start]) is None:
            start -= 1
        value = known_value if start == known else _whole_value(self._changes[start])
        for change in self._changes[start + 1 : index + 1]:
            assert isinstance(change, PatchChange)
            steps = [step.model_dump(include={"op", "path", "value"}) for step in change.steps]
            value = jsonpatch.apply_patch(value, steps)
        return value


def _whole_value(change: WriteChange | PatchChange | RemoveChange) -> Any | None:
    match change:
        case WriteChange():
            return change.value
        case PatchChange():
            return change.keyframe
        case RemoveChange():
            return MISSING


class LogHistory:
    """The text of one Redis key that grows by pieces, and now and then begins again."""

    def __init__(self) -> None:
        self._turns: list[int] = []
        self._pieces: list[str] = []
        self._ends: list[int] = []
        self._starts: list[int] = []
        self._start = 0
        self.size = 0

    def add(self, turn: int, change: AppendChange | RemoveChange) -> None:
        """Take in the next change. A gap between offset and size would be a lost write.

        Raises:
            ValueError: the append does not start where the log ended.
        """
        if isinstance(change, RemoveChange):
            # The entry of a removal begins a text that has no piece yet.
            self._start, self.size = len(self._turns) + 1, 0
            self._note(turn, "")
            return
        if change.offset != self.size:
            raise ValueError(f"append at byte {change.offset} of a log of {self.size} bytes")
        self.size += len(change.text.encode())
        self._note(turn, change.text)

    def _note(self, turn: int, piece: str) -> None:
        self._turns.append(turn)
        self._pieces.append(piece)
        self._ends.append(self.size)
        self._starts.append(self._start)

    def changed_at(self, turn: int) -> bool:
        """Whether the log was written at exactly this position."""
        return bisect_right(self._turns, turn) > bisect_right(self._turns, turn - 1)

    def pieces_at(self, turn: int) -> Sequence[tuple[int, str]]:
        """The pieces that the text has at ``turn``, each with the position at which it was appended."""
        there = self._there_at(turn)
        return list(zip(self._turns[there], self._pieces[there], strict=True))

    def value_at(self, turn: int) -> str | Missing:
        """The whole text; :data:`MISSING` where nothing was appended yet."""
        pieces = self._pieces[self._there_at(turn)]
        return "".join(pieces) if pieces else MISSING

    def size_at(self, turn: int) -> int:
        """Bytes of the text."""
        count = bisect_right(self._turns, turn)
        return self._ends[count - 1] if count else 0

    def _there_at(self, turn: int) -> slice:
        """Which pieces make up the text."""
        count = bisect_right(self._turns, turn)
        return slice(self._starts[count - 1] if count else 0, count)


class CollectionHistory:
    """The points of one Qdrant collection."""

    def __init__(self) -> None:
        self._turns: list[int] = []
        self._changes: list[StoredPoint | RemoveChange] = []
        self._counts: list[int] = []
        self._ids: set[str] = set()

    def add(self, turn: int, change: UpsertChange | RemoveChange) -> None:
        """Take in the next write."""
        if isinstance(change, RemoveChange):
            self._ids = self._ids - set(change.ids) if change.ids else set()
            self._note(turn, change)
            return
        for point in change.points:
            self._ids.add(point.id)
            self._note(turn, point)

    def _note(self, turn: int, change: StoredPoint | RemoveChange) -> None:
        self._turns.append(turn)
        self._changes.append(change)
        self._counts.append(len(self._ids))

    def count_at(self, turn: int) -> int:
        """How many points there are."""
        index = bisect_right(self._turns, turn)
        return self._counts[index - 1] if index else 0

    def written_at(self, turn: int) -> list[StoredPoint]:
        """The points written at exactly this position."""
        first, last = bisect_right(self._turns, turn - 1), bisect_right(self._turns, turn)
        return [change for change in self._changes[first:last] if isinstance(change, StoredPoint)]

    def points_at(self, turn: int) -> dict[str, Mapping[str, Any]]:
        """All points, each id to its payload. Costs what was ever written."""
        points: dict[str, Mapping[str, Any]] = {}
        for change in self._changes[: bisect_right(self._turns, turn)]:
            match change:
                case StoredPoint():
                    points[change.id] = change.payload
                case RemoveChange():
                    for point_id in change.ids or tuple(points):
                        points.pop(point_id, None)
        return points
