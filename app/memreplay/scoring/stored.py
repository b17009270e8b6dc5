"""What a memory held when it was asked: its items, folded from the recorded store commands and decisions.

An item is a Qdrant point, a stretch of a log, or a record inside a JSON state: whatever a memory stored as one
thing. Its text is every string and number in it, whatever the fields are called, so that memories of any make are
read alike. An item is linked to the turns that it names as its sources, else to the turns that were being observed
when it was written. Working state (an agent's scratchpad and staged candidates) is not memory and holds no items.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from memory_backends.base import MemoryDescription
from memory_backends.stores.trace import (
    AppendChange,
    MemoryOperation,
    PatchChange,
    PatchStep,
    PromotionDecision,
    RemoveChange,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.conversations.models import Conversation
from memreplay.engine.events import ConversationOpened, Observed, PromotionDecided, ReplayEvent, StoreOperated
from memreplay.timeline.fold import MISSING, parts_of, patched
from memreplay.timeline.timeline import Answer


class MemoryHistory(Protocol):
    """What attribution reads: a :class:`memreplay.timeline.timeline.Timeline`, or the events of a finished run."""

    conversation: Conversation
    backends: list[str]

    def events_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        ...

    def answers(self) -> Iterator[Answer]:
        """All answers so far."""
        ...


@dataclass(frozen=True)
class Item:
    """Something that a memory stored. ``turns`` are those it comes from.

    ``removed``: it is no longer there. ``superseded``: a later value took its place; it may still be stored.
    """

    text: str
    turns: frozenset[str]
    removed: bool = False
    superseded: bool = False

    @property
    def is_current(self) -> bool:
        """Whether it is still stored and still valid."""
        return not (self.removed or self.superseded)


@dataclass(frozen=True)
class Supersession:
    """A value that a later one replaced, by the memory's own account: the turns that said the old and the new
    one.
    """

    old_value: str
    old_turns: frozenset[str]
    new_turns: frozenset[str]


class StoredMemory:
    """What one backend held after all the events up to a position."""

    def __init__(self, events: Iterable[ReplayEvent]) -> None:
        self.observed: set[str] = set()
        self.supersessions: list[Supersession] = []
        self.is_recorded = False
        """Whether it was recorded what this memory heard; an imported run has only questions and answers."""
        self._dropped: list[PromotionDecision] = []
        self._points: dict[tuple[str, str], Item] = {}
        self._values: dict[tuple[str, str], str] = {}
        self._pieces: dict[str, list[Item]] = defaultdict(list)
        self._states: dict[str, _State] = {}
        self._memory = MemoryDescription()
        # What a memory does while it is opened precedes the event that describes it.
        for event in sorted(events, key=lambda event: not isinstance(event, ConversationOpened)):
            self._apply(event)
        self.items: tuple[Item, ...] = (
            *self._points.values(),
            *(piece for pieces in self._pieces.values() for piece in pieces),
            *(item for state in self._states.values() for item in state.items()),
        )

    @property
    def is_empty(self) -> bool:
        """Whether no write was ever recorded."""
        return not self.items

    def dropped_from(self, turn: str) -> Sequence[PromotionDecision]:
        """The candidates from a turn that were judged and not kept."""
        return [decision for decision in self._dropped if turn in decision.sources]

    def _apply(self, event: ReplayEvent) -> None:
        match event:
            case ConversationOpened():
                self._memory = event.memory
            case Observed():
                self.is_recorded = True
                self.observed.update(event.turns)
            case PromotionDecided():
                self._decide(event.decision)
            case StoreOperated() if event.operation.error is None:
                self.is_recorded = True
                self._operate(event.operation)
            case _:
                pass

    def _decide(self, decision: PromotionDecision) -> None:
        if decision.decision == "DROP":
            self._dropped.append(decision)
        for place, item in list(self._points.items()) if decision.superseded_id else ():
            if place[1] == decision.superseded_id:
                self._points[place] = replace(item, superseded=True)
                if value := self._values.get(place):
                    new = frozenset(decision.sources) - item.turns
                    self.supersessions.append(Supersession(value, item.turns, new))

    def _operate(self, operation: MemoryOperation) -> None:
        key, turns = operation.key, frozenset(operation.turns)
        match operation.change:
            case UpsertChange(points=points):
                for point in points:
                    self._write_point(key, point, turns)
            case AppendChange(text=text):
                self._pieces[key].append(Item(text, turns))
            case RemoveChange(ids=ids):
                self._remove(key, ids)
            case WriteChange() | PatchChange() if self._memory.store_of(key).is_scratch:
                pass
            case WriteChange(value=str(text)):
                self._pieces[key] = [Item(text, turns)]
            case WriteChange(value=value):
                self._states.setdefault(key, _State()).write(value, turns)
            case PatchChange(steps=steps):
                state = self._states.setdefault(key, _State())
                self.supersessions += state.patch(steps, turns)
            case _:
                pass

    def _write_point(self, key: str, point: StoredPoint, turns: frozenset[str]) -> None:
        payload, place = point.payload, (key, point.id)
        before = self._points.get(place)
        named = payload.get("sources")
        if isinstance(named, list):
            linked = frozenset(map(str, named))
        else:
            linked = turns | before.turns if before is not None and not before.removed else turns
        marked = self._memory.store_of(key).superseded_field
        value = payload.get("value")
        if isinstance(value, str):
            self._values[place] = value
        self._points[place] = Item(
            "\n".join(leaves_of(payload)), linked, superseded=marked is not None and payload.get(marked) is not None
        )

    def _remove(self, key: str, ids: Sequence[str]) -> None:
        for place, item in list(self._points.items()):
            if place[0] == key and (not ids or place[1] in ids):
                self._points[place] = replace(item, removed=True)
        if not ids:
            self._pieces[key] = [replace(piece, removed=True) for piece in self._pieces[key]]
            if key in self._states:
                self._states[key].clear()


class _State:
    """A JSON state: its records with the turns that last wrote them, and those that were overwritten."""

    def __init__(self) -> None:
        self._value: Any = MISSING
        self._writers: dict[tuple[str, ...], frozenset[str]] = {}
        self._gone: list[Item] = []

    def write(self, value: Any, turns: frozenset[str]) -> None:
        """Replace the whole value. Records that stay as they were keep their turns."""
        before = dict(records_of(self._value))
        after = dict(records_of(value))
        for path, text in before.items():
            if after.get(path) != text:
                self._gone.append(Item(text, self._writers.pop(path, frozenset()), superseded=path in after))
        for path, text in after.items():
            if before.get(path) != text:
                self._writers[path] = turns
        self._value = value

    def patch(self, steps: Sequence[PatchStep], turns: frozenset[str]) -> Iterator[Supersession]:
        """Apply a patch; yields each text value that it replaced by another."""
        before = self._writers.copy()
        for step in steps:
            if step.op == "replace" and isinstance(step.replaced, str) and isinstance(step.value, str):
                path = parts_of(step.path)
                old = next((before[p] for p in before if path[: len(p)] == p), frozenset())
                if turns - old:
                    yield Supersession(step.replaced, old, turns - old)
        try:
            value = patched(self._value if self._value is not MISSING else {}, steps)
        except (KeyError, IndexError, TypeError, ValueError):
            return  # a patch that does not fit what was recorded before: an incomplete recording
        self.write(value, turns)

    def clear(self) -> None:
        """The key was removed."""
        for path, text in records_of(self._value):
            self._gone.append(Item(text, self._writers.get(path, frozenset()), removed=True))
        self._value, self._writers = MISSING, {}

    def items(self) -> Iterator[Item]:
        """The records that are there, and those that were."""
        for path, text in records_of(self._value):
            yield Item(text, self._writers.get(path, frozenset()))
        yield from self._gone


def records_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The records in a JSON value, each with its path and text.

    A record is a text in a list, or an object that has plain values of its own; what is nested deeper is a record
    of its own. ``{"notes": ["a", "b"], "city": {"value": "Girona", "turn": "3"}}`` holds three.
    """
    match value:
        case Mapping():
            plain = [f"{name}: {inner}" for name, inner in value.items() if _is_plain(inner)]
            if plain:
                yield path, " \n".join(plain)
            for name, inner in value.items():
                if not _is_plain(inner):
                    yield from records_of(inner, (*path, str(name)))
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from records_of(inner, (*path, str(index)))
        case str() | int() | float() if not isinstance(value, bool):
            yield path, str(value)
        case _:
            pass


def leaves_of(value: Any) -> Iterator[str]:
    """Every text and number in a JSON value."""
    match value:
        case Mapping():
            for inner in value.values():
                yield from leaves_of(inner)
        case list() | tuple():
            for inner in value:
                yield from leaves_of(inner)
        case str() | int() | float() if not isinstance(value, bool):
            yield str(value)
        case _:
            pass


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
