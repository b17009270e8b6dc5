"""A recording's events with what happens beside it now: questions asked by hand, which the file does not hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from memory_backends.stores.trace import MemoryOperation
from memreplay.engine.events import (
    BackendEvent,
    Perceived,
    PromotionDecided,
    QuestionAsked,
    ReplayEvent,
    StoreOperated,
)

_WRITES = frozenset({"write", "patch", "append", "remove", "upsert"})
"""Kinds of changes that leave a store other than it was."""

Read = Callable[[Any], Any]
"""A value of an event's JSON as it is meant: a recording keeps long texts elsewhere."""


class WriteSummary(NamedTuple):
    """What an index needs to know of a change to a store, by its ``kind``.

    ``whole``: the new value is in it. ``pointers``: the places that a state's change touched, the root for a whole
    value. ``ids``: points written or removed. ``offset`` and ``text`` of what was appended.
    """

    store: str
    key: str
    phase: str
    kind: str
    whole: bool = True
    pointers: tuple[str, ...] = ("",)
    ids: tuple[str, ...] = ()
    offset: int = 0
    text: str = ""


class DecisionSummary(NamedTuple):
    """What an index needs to know of a decision on a promotion candidate."""

    decision: str
    sources: tuple[str, ...]
    knowledge_id: str | None
    superseded_id: str | None


class EventSummary(NamedTuple):
    """What an index needs to know of an event.

    ``write`` is set where a store was changed, ``decision`` where a candidate was judged.
    """

    ref: int
    turn: int
    backend: str | None
    kind: str
    write: WriteSummary | None = None
    decision: DecisionSummary | None = None


class RankedItem(NamedTuple):
    """Something that a read path gave (``missed`` is False) or ranked below the cut.

    ``turns`` are those whose words it holds, ``sources`` those that it was distilled from.
    """

    id: str
    turns: tuple[str, ...]
    sources: tuple[str, ...]
    rank: int
    missed: bool
    has_text: bool


class EventArchive(Protocol):
    """Holds the events of one conversation."""

    def keep(self, event: ReplayEvent) -> int:
        """Take in what happened next; its reference."""
        ...

    def event(self, ref: int) -> ReplayEvent:
        """An event by its reference."""
        ...

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        ...

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """The store commands among it."""
        ...

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """The store commands of a position that changed a store."""
        ...

    def candidates(self, ref: int) -> list[RankedItem]:
        """What the read path of a reference found; cheaper than the event."""
        ...

    def summaries(self) -> Iterator[EventSummary]:
        """What there is to know of every event so far, by position and then in order."""
        ...


class MemoryArchive:
    """Events in memory: for a conversation of some hundred turns, and for tests."""

    def __init__(self, events: Iterable[ReplayEvent] = ()) -> None:
        self._events: list[ReplayEvent] = []
        self._by_place: dict[tuple[str, int], list[ReplayEvent]] = defaultdict(list)
        for event in events:
            self.keep(event)

    def keep(self, event: ReplayEvent) -> int:
        """Take in what happened next; its reference."""
        self._events.append(event)
        if isinstance(event, BackendEvent):
            self._by_place[event.backend, event.turn].append(event)
        return len(self._events) - 1

    def event(self, ref: int) -> ReplayEvent:
        """An event by its reference."""
        return self._events[ref]

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        return self._by_place.get((backend, turn), ())

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """The store commands among it."""
        return [event for event in self.at(backend, turn) if isinstance(event, StoreOperated)]

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """The store commands of a position that changed a store."""
        return [
            operation for operation in map(operation_of, self.operation_at(backend, turn)) if changes(operation)
        ]

    def candidates(self, ref: int) -> list[RankedItem]:
        """What the read path of a reference found."""
        return ranked_items_of(self._events[ref])

    def summaries(self) -> Iterator[EventSummary]:
        """What there is to know of every event so far, in the order in which they were kept."""
        return (summarize(ref, event) for ref, event in enumerate(self._events))


def summarize(ref: int, event: ReplayEvent) -> EventSummary:
    """What an index needs to know of an event."""
    backend = event.backend if isinstance(event, BackendEvent) else None
    match event:
        case StoreOperated(operation=operation):
            write = summarize_write(operation.model_dump(), _as_it_is)
            return EventSummary(ref, event.turn, backend, event.kind, write=write)
        case PromotionDecided(decision=decision):
            return EventSummary(
                ref, event.turn, backend, event.kind, decision=summarize_decision(decision.model_dump(), _as_it_is)
            )
        case _:
            return EventSummary(ref, event.turn, backend, event.kind)


def summarize_write(operation: Mapping[str, Any], read: Read) -> WriteSummary | None:
    """What the JSON form of an operation changed; None where that is nothing, or is not known."""
    change = operation["change"]
    if change is None or change["kind"] not in _WRITES or operation["error"] is not None:
        return None
    write = WriteSummary(operation["store"], read(operation["key"]), operation["phase"], change["kind"])
    match write.kind:
        case "patch":
            pointers = tuple(dict.fromkeys(read(step["path"]) for step in change["steps"]))
            return write._replace(whole=change["keyframe"] is not None, pointers=pointers)
        case "append":
            return write._replace(offset=change["offset"], text=read(change["text"]))
        case "upsert":
            return write._replace(ids=tuple(read(point["id"]) for point in change["points"]))
        case "remove":
            return write._replace(ids=tuple(read(id_) for id_ in change["ids"]))
        case _:
            return write


def operation_of(event: ReplayEvent) -> MemoryOperation:
    """The store command that an event is about."""
    assert isinstance(event, StoreOperated)
    return event.operation


def changes(operation: MemoryOperation) -> bool:
    """Whether a store command left a store other than it was."""
    return operation.error is None and operation.change is not None and operation.change.kind in _WRITES


def summarize_decision(decision: Mapping[str, Any], read: Read) -> DecisionSummary:
    """What the JSON form of a decision says."""
    return DecisionSummary(
        decision["decision"],
        tuple(read(source) for source in decision["sources"]),
        read(decision["knowledge_id"]),
        read(decision["superseded_id"]),
    )


def _as_it_is(value: Any) -> Any:
    return value


def ranked_items_of(event: ReplayEvent) -> list[RankedItem]:
    """What a read path found, best first; nothing where the event is none."""
    if not isinstance(event, Perceived | QuestionAsked):
        return []
    return [
        RankedItem(hit.id, hit.turns, hit.sources, hit.rank, is_missed, bool(hit.text))
        for is_missed, hits in ((False, event.hits), (True, event.missed))
        for hit in hits
    ]


_FIRST = 1 << 62
"""References of what is kept here begin above those of any file."""


class OverlayArchive:
    """Reads from an archive that takes in nothing more, and keeps what comes on top of it in memory."""

    def __init__(self, below: EventArchive) -> None:
        self._below = below
        self._above = MemoryArchive()

    def keep(self, event: ReplayEvent) -> int:
        """Take in what happened next; its reference."""
        return _FIRST + self._above.keep(event)

    def event(self, ref: int) -> ReplayEvent:
        """An event by its reference."""
        return self._above.event(ref - _FIRST) if ref >= _FIRST else self._below.event(ref)

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        below, above = self._below.at(backend, turn), self._above.at(backend, turn)
        return [*below, *above] if above else below

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """The store commands among it: asking leaves none."""
        return self._below.operation_at(backend, turn)

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """The store commands of a position that changed a store."""
        return self._below.written_at(backend, turn)

    def candidates(self, ref: int) -> list[RankedItem]:
        """What the read path of a reference found."""
        return self._below.candidates(ref)

    def summaries(self) -> Iterator[EventSummary]:
        """What there is to know of every event of the archive below."""
        return self._below.summaries()
