"""What a store held at a position of the cursor, folded from the changes that were traced.

Each history keeps where the changes of one place are, and answers by bisection: a position far into a long
conversation costs what one near its start costs. The changes themselves are loaded when they are needed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from app.replay.pointers import MISSING, Missing, Path, parts_of, patched, pointer_of
from memory_backends.operations import Change, PatchChange, RemoveChange, StoredPoint, UpsertChange, WriteChange

__all__ = ["MISSING", "ChangeLoader", "CollectionHistory", "Missing", "StateHistory"]

ChangeLoader = Callable[[int], Change | None]
"""The change that a reference stands for."""

StateChange = WriteChange | PatchChange | RemoveChange

_VALUES_KEPT = 256
"""Folded values that one history remembers; they share what is equal in them."""


class StateHistory:
    """The values of one Redis key that holds a JSON state, and which write touched which place in it."""

    def __init__(self, load: ChangeLoader) -> None:
        self.turns = array("I")
        self.refs = array("q")
        self._load = load
        self._whole = bytearray()
        self._values: OrderedDict[int, Any] = OrderedDict()
        self._at: dict[str, array[int]] = defaultdict(lambda: array("I"))
        self._within: dict[str, array[int]] = defaultdict(lambda: array("I"))

    def __len__(self) -> int:
        return len(self.turns)

    def add(self, turn: int, ref: int, pointers: Iterable[str], *, whole: bool) -> None:
        """Take in the next change and the places that it touched; positions never go back.

        It is ``whole`` where the new value can be read from it alone.
        """
        number = len(self.turns)
        self.turns.append(turn)
        self.refs.append(ref)
        self._whole.append(whole)
        for pointer in pointers:
            self._at[pointer].append(number)
            for place in _with_parents(pointer):
                touched = self._within[place]
                if not touched or touched[-1] != number:
                    touched.append(number)

    def changed_at(self, turn: int) -> bool:
        """Whether the key was written at exactly this position."""
        return self.count_until(turn) > self.count_until(turn - 1)

    def count_until(self, turn: int) -> int:
        """How many writes there were up to and including ``turn``."""
        return bisect_right(self.turns, turn)

    def value_at(self, turn: int) -> Any:
        """The value after everything up to and including ``turn``; :data:`MISSING` where there is none."""
        return self.value_after(self.count_until(turn) - 1)

    def value_after(self, number: int) -> Any:
        """The value after the write of this 0-based number; :data:`MISSING` before the first."""
        start = number
        while start >= 0 and start not in self._values and not self._whole[start]:
            start -= 1
        if start < 0:
            return MISSING
        value = self._values[start] if start in self._values else self._whole_value(start)
        self._remember(start, value)
        for later in range(start + 1, number + 1):
            change = self.change(later)
            assert isinstance(change, PatchChange)
            value = patched(value, change.steps)
            self._remember(later, value)
        return value

    def change(self, number: int) -> StateChange:
        """The write of this 0-based number."""
        return cast(StateChange, self._load(self.refs[number]))

    def writes_at(self, path: Path) -> array[int]:
        """Numbers of the writes that had a step for exactly this place; the root's are the whole values."""
        return self._at.get(pointer_of(path), array("I"))

    def writes_within(self, path: Path) -> array[int]:
        """Numbers of the writes that had a step for this place or one inside it."""
        return self._within.get(pointer_of(path), array("I"))

    def _whole_value(self, number: int) -> Any:
        match self.change(number):
            case WriteChange(value=value):
                return value
            case PatchChange(keyframe=value):
                return value
            case RemoveChange():
                return MISSING

    def _remember(self, number: int, value: Any) -> None:
        self._values[number] = value
        self._values.move_to_end(number)
        if len(self._values) > _VALUES_KEPT:
            self._values.popitem(last=False)


@lru_cache(maxsize=4096)
def _with_parents(pointer: str) -> tuple[str, ...]:
    path = parts_of(pointer)
    return tuple(pointer_of(path[:depth]) for depth in range(len(path) + 1))


class CollectionHistory:
    """The points of one Qdrant collection."""

    def __init__(self, load: ChangeLoader) -> None:
        self._load = load
        self._turns = array("I")
        self._refs = array("q")
        self._places = array("i")
        self._counts = array("I")
        self._ids: set[str] = set()
        self._writes_of: dict[str, array[int]] = {}

    def add(self, turn: int, ref: int, ids: Sequence[str]) -> None:
        """Points were written, in this order."""
        for place, id_ in enumerate(ids):
            self._ids.add(id_)
            self._writes_of.setdefault(id_, array("I")).append(len(self._turns))
            self._note(turn, ref, place)

    def remove(self, turn: int, ref: int, ids: Sequence[str]) -> None:
        """These points were removed; all of them, where none is named."""
        self._ids = self._ids - set(ids) if ids else set()
        self._note(turn, ref, -1)

    def _note(self, turn: int, ref: int, place: int) -> None:
        self._turns.append(turn)
        self._refs.append(ref)
        self._places.append(place)
        self._counts.append(len(self._ids))

    def count_at(self, turn: int) -> int:
        """How many points there are."""
        index = bisect_right(self._turns, turn)
        return self._counts[index - 1] if index else 0

    def written_at(self, turn: int) -> list[StoredPoint]:
        """The points written at exactly this position."""
        first, last = bisect_right(self._turns, turn - 1), bisect_right(self._turns, turn)
        return [self._point(number) for number in range(first, last) if self._places[number] >= 0]

    def points_at(self, turn: int) -> dict[str, Mapping[str, Any]]:
        """All points, each id to its payload. Costs what was ever written."""
        points: dict[str, Mapping[str, Any]] = {}
        for number in range(bisect_right(self._turns, turn)):
            change = self._load(self._refs[number])
            if isinstance(change, RemoveChange):
                for point_id in change.ids or tuple(points):
                    points.pop(point_id, None)
            else:
                point = self._point(number)
                points[point.id] = point.payload
        return points

    def writes_of(self, point_id: str, turn: int) -> list[tuple[int, int, StoredPoint]]:
        """Every write of a point up to a position, oldest first: position, reference, and the point as written."""
        numbers = self._writes_of.get(point_id, array("I"))
        wanted = (number for number in numbers if self._turns[number] <= turn)
        return [(self._turns[number], self._refs[number], self._point(number)) for number in wanted]

    def write_turns_of(self, point_id: str) -> list[int]:
        """The positions at which a point was written, without loading what was written."""
        return [self._turns[number] for number in self._writes_of.get(point_id, ())]

    def _point(self, number: int) -> StoredPoint:
        change = self._load(self._refs[number])
        assert isinstance(change, UpsertChange)
        return change.points[self._places[number]]
