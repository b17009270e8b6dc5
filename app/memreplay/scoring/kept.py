"""What a memory had kept of each turn when it was asked: folded from its recorded store commands and decisions.

Nothing is guessed. A stored point comes from the turns that its ``sources`` name, a slot of a state from the turn
that it names, everything else from the turns that caused the write. When a memory is
opened it says which states have slots, which are working notes that keep nothing, and how a superseded point is
marked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from memory_backends.base import MemoryDescription, StoreInfo
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
from memreplay.timeline.timeline import Answer


class MemoryHistory(Protocol):
    """What attribution reads; :class:`memreplay.timeline.timeline.Timeline` is one, live or of a recording."""

    conversation: Conversation
    backends: list[str]

    def events_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        ...

    def answers(self) -> Iterator[Answer]:
        """All asks so far."""
        ...


@dataclass(frozen=True)
class Kept:
    """A stored thing and the turns that it came from.

    ``verbatim`` where it holds their words, else it was distilled from them. It may have been ``removed``, or be
    ``superseded``: then a later value took its place, and it may still be stored but no longer holds.
    """

    turns: frozenset[str]
    verbatim: bool
    value: str | None = None
    removed: bool = False
    superseded: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is still there and still current."""
        return not (self.removed or self.superseded)


@dataclass(frozen=True)
class Supersession:
    """A value that a later one took the place of: the turns that said the old one, and those that said the new."""

    old_value: str
    old_turns: frozenset[str]
    new_turns: frozenset[str]


class Provenance:
    """What one backend had kept after everything that happened up to a position."""

    def __init__(self, events: Iterable[ReplayEvent]) -> None:
        self.observed: set[str] = set()
        self.supersessions: list[Supersession] = []
        self._dropped: dict[str, list[PromotionDecision]] = defaultdict(list)
        self._kept: dict[tuple[str, str], Kept] = {}
        self._memory = MemoryDescription()
        for event in _openings_first(events):
            self._take(event)
        self._by_turn: dict[str, list[Kept]] = defaultdict(list)
        self._places_of_words: dict[str, set[str]] = defaultdict(set)
        for (place, _), kept in self._kept.items():
            for turn in kept.turns:
                self._by_turn[turn].append(kept)
                if kept.verbatim:
                    self._places_of_words[turn].add(place)

    @property
    def is_traced(self) -> bool:
        """Whether any write was traced; a memory with stores of its own may leave none."""
        return bool(self._kept)

    def kept_of(self, turn: str) -> Sequence[Kept]:
        """All that was ever stored from a turn, in the order of writing."""
        return self._by_turn.get(turn, ())

    def has_words_in(self, place: str, turn: str) -> bool:
        """Whether a turn was ever stored there word for word; ``place`` as a hit has it."""
        return place in self._places_of_words.get(turn, ())

    def dropped_of(self, turn: str) -> Sequence[PromotionDecision]:
        """The candidates from a turn that were judged not worth keeping."""
        return self._dropped.get(turn, ())

    def _take(self, event: ReplayEvent) -> None:
        match event:
            case ConversationOpened():
                self._memory = event.memory
            case Observed():
                self.observed.update(event.turns)
            case PromotionDecided():
                self._judge(event.decision)
            case StoreOperated() if event.operation.error is None:
                self._operate(event.operation)
            case _:
                pass

    def _judge(self, decision: PromotionDecision) -> None:
        if decision.decision == "DROP":
            for turn in decision.sources:
                self._dropped[turn].append(decision)
        if decision.superseded_id is None:
            return
        for place, kept in list(self._kept.items()):
            if place[1] == decision.superseded_id:
                self._kept[place] = replace(kept, superseded=True)
                if kept.value is not None:
                    self.supersessions.append(
                        Supersession(kept.value, kept.turns, frozenset(decision.sources) - kept.turns)
                    )

    def _operate(self, operation: MemoryOperation) -> None:
        key, turns = operation.key, frozenset(operation.turns)
        store = self._memory.store_of(key)
        match operation.change:
            case UpsertChange(points=points):
                for point in points:
                    self._kept[key, point.id] = _point(point, turns, self._kept.get((key, point.id)), store)
            case AppendChange(offset=offset) if turns:
                self._kept[key, str(offset)] = Kept(turns, verbatim=True)
            case RemoveChange(ids=ids):
                self._remove(key, ids)
            case WriteChange() | PatchChange() if store.is_scratch:
                pass
            case WriteChange(value=value) if store.slots is not None:
                self._write(key, _slots_with_turns("", value))
            case PatchChange(steps=steps) if store.slots is not None:
                for step in steps:
                    self._overwrite(key, step)
                for step in steps:
                    self._write(key, _slots_with_turns(step.path, step.value))
            case WriteChange() | PatchChange() if turns:
                before = self._kept.get((key, ""))
                is_text = isinstance(operation.change, WriteChange) and isinstance(operation.change.value, str)
                self._kept[key, ""] = Kept(turns | before.turns if before else turns, verbatim=is_text)
            case _:
                pass

    def _remove(self, key: str, ids: Sequence[str]) -> None:
        for place, kept in list(self._kept.items()):
            if place[0] == key and (not ids or place[1] in ids):
                self._kept[place] = replace(kept, removed=True)

    def _write(self, key: str, slots_with_turns: Iterable[tuple[str, str]]) -> None:
        for slot, turn in slots_with_turns:
            self._kept[key, f"{slot}@{turn}"] = Kept(frozenset([turn]), verbatim=False)

    def _overwrite(self, key: str, step: PatchStep) -> None:
        """A slot that is taken out is removed; one whose turn changes holds another value than it did."""
        slot = _slot(step.path)
        is_whole = step.path == slot
        if not is_whole and step.path != f"{slot}/turn":
            return
        for place, kept in list(self._kept.items()):
            if place[0] == key and place[1].rpartition("@")[0] == slot:
                gone = replace(kept, removed=True) if step.op == "remove" else replace(kept, superseded=True)
                self._kept[place] = gone


def _openings_first(events: Iterable[ReplayEvent]) -> list[ReplayEvent]:
    """What a memory does while it is opened precedes the event that describes it."""
    return sorted(events, key=lambda event: not isinstance(event, ConversationOpened))


def _point(point: StoredPoint, cause: frozenset[str], before: Kept | None, store: StoreInfo) -> Kept:
    payload = point.payload
    sources = payload.get("sources")
    value = payload.get("value")
    turns = cause | before.turns if before is not None and not before.removed else cause
    return Kept(
        turns=turns if sources is None else frozenset(sources),
        verbatim=sources is None,
        value=value if isinstance(value, str) else None,
        superseded=store.superseded_field is not None and payload.get(store.superseded_field) is not None,
    )


def _slots_with_turns(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The slots of a state that name a ``turn``, each with that turn."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from _slots_with_turns(f"{path}/{name}", inner)
        case list():
            for inner in value:
                yield from _slots_with_turns(path, inner)
        case str() if path.endswith("/turn"):
            yield _slot(path), value


def _slot(path: str) -> str:
    """``/field/deadline/value`` belongs to the slot ``/field/deadline``."""
    return "/".join(path.split("/")[:3])
