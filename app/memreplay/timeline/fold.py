"""The content of a store at any position of the cursor, folded from its recorded changes."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast, overload

from memory_backends.storable import MOST_LEVELS, is_deeper
from memory_backends.stores.trace import (
    Change,
    PatchChange,
    PatchStep,
    RemoveChange,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.errors import DamagedEventError


class MissingValue:
    """The type of :data:`MISSING`: nothing exists at this place, or at this position."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = MissingValue()

Path = tuple[str, ...]
"""The way from the root of a value to a place in it: field names, and item indexes as strings."""


def parts_of(pointer: str) -> Path:
    """Return a JSON pointer (RFC 6901) as a path; ``""`` is the root."""
    if not pointer:
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def pointer_of(path: Sequence[str]) -> str:
    """Return a path as a JSON pointer."""
    return "".join(map(_pointed, path))


def _pointed(part: str) -> str:
    return "/" + part.replace("~", "~0").replace("/", "~1")


def value_in(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a place; :data:`MISSING` if the place does not exist."""
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def patched(value: Any, steps: Iterable[PatchStep]) -> Any:
    """Return the value after a patch. It shares the parts that the patch does not touch with the old value."""
    for step in steps:
        value = _stepped(value, parts_of(step.path), step)
    return value


def _stepped(value: Any, path: Path, step: PatchStep) -> Any:
    if not path:
        return MISSING if step.op == "remove" else step.value
    name, rest = path[0], path[1:]
    if isinstance(value, list):
        items = list(value)
        index = len(items) if name == "-" else int(name)
        if rest:
            items[index] = _stepped(items[index], rest, step)
        elif step.op == "remove":
            del items[index]
        elif step.op == "add":
            items.insert(index, step.value)
        else:
            items[index] = step.value
        return items
    fields = dict(value)
    if rest:
        fields[name] = _stepped(fields[name], rest, step)
    elif step.op == "remove":
        del fields[name]
    else:
        fields[name] = step.value
    return fields


ChangeLoader = Callable[[int], Change | None]
"""Loads the change of the event with this reference."""

StateChange = WriteChange | PatchChange | RemoveChange

_VALUES_KEPT = 256
"""Folded values that one history caches; they share unchanged parts."""


class StateHistory:
    """The values of one key that holds a JSON state, and which write touched which place in it."""

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
        """Append a change and the places that it touched; positions never decrease.

        A change is ``whole`` if it holds the complete new value.
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
        """Return whether the key was written at exactly this position."""
        return self.count_until(turn) > self.count_until(turn - 1)

    def count_until(self, turn: int) -> int:
        """Return the number of writes up to and including ``turn``."""
        return bisect_right(self.turns, turn)

    def value_at(self, turn: int) -> Any:
        """Return the value after all writes up to and including ``turn``; :data:`MISSING` if there is none."""
        return self.value_after(self.count_until(turn) - 1)

    def value_after(self, number: int) -> Any:
        """Return the value after the write with this 0-based number; :data:`MISSING` before the first.

        Raises:
            DamagedEventError: a recorded write does not fit the value that it changes.
        """
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
            try:
                value = patched(value, change.steps)
            except (LookupError, TypeError, ValueError) as error:
                raise DamagedEventError(
                    f"a change at turn {self.turns[later]} does not fit the value that it changes ({error!r})"
                ) from None
            self._remember(later, value)
        return value

    def change(self, number: int) -> StateChange:
        """Return the write with this 0-based number.

        Raises:
            DamagedEventError: it has values inside each other on more levels than memreplay records.
        """
        change = cast(StateChange, self._load(self.refs[number]))
        match change:
            case WriteChange(value=value):
                written = [("", value)]
            case PatchChange(keyframe=value, steps=steps):
                written = [("", value), *((step.path, step.value) for step in steps)]
            case RemoveChange():
                written = []
        if any(is_deeper(value, MOST_LEVELS - path.count("/")) for path, value in written):
            raise DamagedEventError(
                f"a change at turn {self.turns[number]} has more than {MOST_LEVELS} values inside each other"
            )
        return change

    def writes_around(self, path: Path) -> list[array[int]]:
        """Numbers of the writes that changed each of the values around this place, where any did."""
        around = list(accumulate(map(_pointed, path), initial=""))[:-1]
        return [self._at[pointer] for pointer in around if pointer in self._at]

    def writes_within(self, path: Path) -> array[int]:
        """Numbers of the writes that changed this place or one inside it."""
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


class HeldPoint(NamedTuple):
    """A point that a collection holds: its id, the positions of its first and its last write, and where the last
    one stands: the reference of the event, and the point's place in it."""

    id: str
    since: int
    turn: int
    ref: int
    place: int


class CollectionHistory:
    """The points of one collection."""

    def __init__(self, load: ChangeLoader) -> None:
        self._load = load
        self._turns = array("I")
        self._refs = array("q")
        self._places = array("i")
        self._counts = array("I")
        self._ids: set[str] = set()
        self._writes_of: dict[str, array[int]] = {}
        self._removals_of: dict[str, array[int]] = {}
        self._clearings = array("I")

    def add(self, turn: int, ref: int, ids: Sequence[str]) -> None:
        """Append an upsert of points, in this order."""
        for place, id_ in enumerate(ids):
            self._ids.add(id_)
            self._writes_of.setdefault(id_, array("I")).append(len(self._turns))
            self._note(turn, ref, place)

    def remove(self, turn: int, ref: int, ids: Sequence[str]) -> None:
        """Append a removal of points; without ids, of all points."""
        self._ids = self._ids - set(ids) if ids else set()
        for id_ in ids:
            self._removals_of.setdefault(id_, array("I")).append(len(self._turns))
        if not ids:
            self._clearings.append(len(self._turns))
        self._note(turn, ref, -1)

    def _note(self, turn: int, ref: int, place: int) -> None:
        self._turns.append(turn)
        self._refs.append(ref)
        self._places.append(place)
        self._counts.append(len(self._ids))

    def count_at(self, turn: int) -> int:
        """Return the number of points."""
        index = bisect_right(self._turns, turn)
        return self._counts[index - 1] if index else 0

    def written_at(self, turn: int) -> list[StoredPoint]:
        """Return the points written at exactly this position."""
        first, last = bisect_right(self._turns, turn - 1), bisect_right(self._turns, turn)
        return [self._point(number) for number in range(first, last) if self._places[number] >= 0]

    def removed_at(self, turn: int) -> list[StoredPoint]:
        """Return the points removed by their ids at exactly this position and not written again, as they were."""
        first, last = bisect_right(self._turns, turn - 1), bisect_right(self._turns, turn)
        removed = []
        for id_, removals in self._removals_of.items():
            if not any(first <= number < last for number in removals):
                continue
            number = bisect_right(self._writes_of.get(id_, ()), last - 1) - 1
            write = self._writes_of[id_][number] if number >= 0 else -1
            if 0 <= write < removals[bisect_right(removals, last - 1) - 1]:
                removed.append(self._point(write))
        return removed

    def held_at(self, turn: int) -> list[HeldPoint]:
        """Return all points, in the order in which they were first written. Loads none of them."""
        count = bisect_right(self._turns, turn)
        cleared = bisect_right(self._clearings, count - 1) if count else 0
        emptied = self._clearings[cleared - 1] if cleared else -1
        turns, refs, places, removals = self._turns, self._refs, self._places, self._removals_of
        held = []
        for id_, numbers in self._writes_of.items():
            last = bisect_right(numbers, count - 1) - 1 if count else -1
            if last < 0 or numbers[last] < emptied:
                continue
            gone = emptied
            if removals and id_ in removals:
                place = bisect_right(removals[id_], count - 1)
                gone = max(gone, removals[id_][place - 1] if place else -1)
                if numbers[last] < gone:
                    continue
            first = numbers[0] if gone < 0 else numbers[bisect_right(numbers, gone)]
            write = numbers[last]
            held.append(HeldPoint(id_, turns[first], turns[write], refs[write], places[write]))
        return held

    def points_at(self, turn: int) -> dict[str, Mapping[str, Any]]:
        """Return the payloads of all points by id. It loads everything that was ever written."""
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
        """Return every write of a point up to a position, oldest first: position, reference and the written
        point.
        """
        numbers = self._writes_of.get(point_id, array("I"))
        wanted = (number for number in numbers if self._turns[number] <= turn)
        return [(self._turns[number], self._refs[number], self._point(number)) for number in wanted]

    def _point(self, number: int) -> StoredPoint:
        change = self._load(self._refs[number])
        assert isinstance(change, UpsertChange)
        return change.points[self._places[number]]


Key = TypeVar("Key")
Item = TypeVar("Item")


class LazySequence(Sequence[Item], Generic[Key, Item]):
    """One item per key, created by ``make`` on each access. It equals any sequence of equal items."""

    def __init__(self, keys: Sequence[Key], make: Callable[[Key], Item]) -> None:
        self._keys, self._make = keys, make

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._make(key) for key in self._keys[index]]
        return self._make(self._keys[index])


Piece = tuple[int, str]
"""The position of an append, and its text."""


class LogHistory:
    """The pieces appended to one log. They stay in memory: together they are as long as the conversation."""

    def __init__(self) -> None:
        self._turns = array("I")
        self._ends = array("I")
        self._refs = array("q")
        self._pieces: list[str] = []
        self._starts = array("I")
        self._start = 0
        self.size = 0

    def add(self, turn: int, ref: int, offset: int, text: str) -> None:
        """Append a piece.

        Raises:
            ValueError: the offset is not the size of the log, so a write was lost.
        """
        if offset != self.size:
            raise ValueError(f"append at byte {offset} of a log of {self.size} bytes")
        self.size += len(text.encode())
        self._note(turn, ref, text)

    def clear(self, turn: int, ref: int) -> None:
        """Append the removal of the key: later pieces start a new text."""
        # The entry of the removal itself holds no piece of the new text.
        self._start, self.size = len(self._turns) + 1, 0
        self._note(turn, ref, "")

    def _note(self, turn: int, ref: int, piece: str) -> None:
        self._turns.append(turn)
        self._refs.append(ref)
        self._pieces.append(piece)
        self._ends.append(self.size)
        self._starts.append(self._start)

    def changed_at(self, turn: int) -> bool:
        """Return whether the log grew at exactly this position."""
        return bisect_right(self._turns, turn) > bisect_right(self._turns, turn - 1)

    def pieces_at(self, turn: int) -> Sequence[Piece]:
        """Return the pieces of the text at ``turn``, as a view that copies nothing."""
        turns, pieces = self._turns, self._pieces
        return LazySequence(self._there_at(turn), lambda place: (turns[place], pieces[place]))

    def value_at(self, turn: int) -> str | MissingValue:
        """Return the whole text; :data:`MISSING` if nothing was appended yet."""
        there = self._there_at(turn)
        return "".join(self._pieces[there.start : there.stop]) if there else MISSING

    def latest(self, turn: int) -> tuple[int, int] | None:
        """Position and reference of the last append in the text at ``turn``."""
        there = self._there_at(turn)
        return (self._turns[there[-1]], self._refs[there[-1]]) if there else None

    def size_at(self, turn: int) -> int:
        """Return the size of the text in bytes."""
        count = bisect_right(self._turns, turn)
        return self._ends[count - 1] if count else 0

    def writes_until(self, turn: int) -> Sequence[tuple[int, int, str]]:
        """Position, reference and text of each append in the text at ``turn``, oldest first."""
        return [(self._turns[at], self._refs[at], self._pieces[at]) for at in self._there_at(turn)]

    def _there_at(self, turn: int) -> range:
        """Indexes of the pieces in the text at ``turn``."""
        count = bisect_right(self._turns, turn)
        return range(self._starts[count - 1] if count else 0, count)
