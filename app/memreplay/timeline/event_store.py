"""The store of one conversation's events, and the summaries that the timeline is indexed by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from memory_backends.stores.trace import MemoryOperation
from memreplay.engine.events import (
    BackendEvent,
    ConversationOpened,
    FactsExtracted,
    ModelCalled,
    Observed,
    Perceived,
    PromotionDecided,
    QuestionAsked,
    ReplayEvent,
    StoreOperated,
)

_WRITES = frozenset({"write", "patch", "append", "remove", "upsert"})
"""Kinds of changes that modify a store."""

Read = Callable[[Any], Any]
"""Resolves a value of an event's JSON: a recording replaces long texts by references."""


class WriteSummary(NamedTuple):
    """The fields of a change to a store that an index needs. Which are set depends on its ``kind``.

    ``whole``: it holds the complete new value. ``pointers``: JSON pointers to the places of a state that it
    touched, the root for a complete value. ``ids``: points written or removed. ``offset`` and ``text``: what was
    appended.
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
    """The fields of a decision on a promotion candidate that an index needs."""

    decision: str
    sources: tuple[str, ...]
    superseded_id: str | None


class EventSummary(NamedTuple):
    """The fields of an event that an index needs; ``ref`` is its reference in the archive.

    ``write`` is set if the event changed a store, ``decision`` if it judged a candidate.
    """

    ref: int
    turn: int
    backend: str | None
    kind: str
    write: WriteSummary | None = None
    decision: DecisionSummary | None = None


class RankedItem(NamedTuple):
    """Something that a read path retrieved, or ranked below the cut (``missed``).

    ``turns`` are those that it holds verbatim, ``sources`` those that it was distilled from.
    """

    id: str
    turns: tuple[str, ...]
    sources: tuple[str, ...]
    rank: int
    missed: bool
    has_text: bool


class EventArchive(Protocol):
    """Stores the events of one conversation."""

    def keep(self, event: ReplayEvent) -> int:
        """Append an event and return its reference."""
        ...

    def event(self, ref: int) -> ReplayEvent:
        """Return the event with this reference."""
        ...

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Return all events of one backend at exactly this position, in order."""
        ...

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Return the store operations among them."""
        ...

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """Return the operations of a position that changed a store."""
        ...

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        """Return what one backend heard, decided and changed up to a position, with its opening, in order."""
        ...

    def candidates(self, ref: int) -> list[RankedItem]:
        """Return what the read path with this reference found; cheaper than loading the event."""
        ...

    def summaries(self) -> Iterator[EventSummary]:
        """Summaries of all events so far that a timeline indexes, by position and then in order."""
        ...


class MemoryArchive:
    """Keeps events in memory: for conversations of a few hundred turns, and for tests."""

    def __init__(self, events: Iterable[ReplayEvent] = ()) -> None:
        self._events: list[ReplayEvent] = []
        self._by_place: dict[tuple[str, int], list[ReplayEvent]] = defaultdict(list)
        for event in events:
            self.keep(event)

    def keep(self, event: ReplayEvent) -> int:
        self._events.append(event)
        if isinstance(event, BackendEvent):
            self._by_place[event.backend, event.turn].append(event)
        return len(self._events) - 1

    def event(self, ref: int) -> ReplayEvent:
        return self._events[ref]

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        return self._by_place.get((backend, turn), ())

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        return [event for event in self.at(backend, turn) if isinstance(event, StoreOperated)]

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        return [
            operation for operation in map(operation_of, self.operation_at(backend, turn)) if changes(operation)
        ]

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        at = (event for position in range(turn + 1) for event in self.at(backend, position))
        return (event for event in at if tells_what_is_kept(event))

    def candidates(self, ref: int) -> list[RankedItem]:
        return ranked_items_of(self._events[ref])

    def summaries(self) -> Iterator[EventSummary]:
        return (summarize(ref, event) for ref, event in enumerate(self._events))


VECTORS = "vectors"
"""The kind of the summary of a model's call that returns no text."""


def summarize(ref: int, event: ReplayEvent) -> EventSummary:
    backend = event.backend if isinstance(event, BackendEvent) else None
    summary = EventSummary(ref, event.turn, backend, event.kind)
    match event:
        case StoreOperated(operation=operation):
            return summary._replace(write=summarize_write(operation.model_dump(), _unchanged))
        case ModelCalled(call=call) if call.purpose != "chat":
            return summary._replace(kind=VECTORS)
        case PromotionDecided(decision=decision):
            return summary._replace(decision=summarize_decision(decision.model_dump(), _unchanged))
        case _:
            return summary


def summarize_write(operation: Mapping[str, Any], read: Read) -> WriteSummary | None:
    """Return what an operation in JSON form changed; None if it changed nothing, or that is unknown."""
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
    assert isinstance(event, StoreOperated)
    return event.operation


def changes(operation: MemoryOperation) -> bool:
    """Return whether an operation modified its store."""
    return operation.error is None and operation.change is not None and operation.change.kind in _WRITES


def tells_what_is_kept(event: ReplayEvent) -> bool:
    """Return whether an event tells what its backend stores, or why not: it heard, asked its writer, decided or
    changed something.
    """
    if isinstance(event, StoreOperated):
        return changes(event.operation)
    if isinstance(event, ModelCalled):
        return event.call.purpose == "chat"
    return isinstance(event, ConversationOpened | Observed | PromotionDecided | FactsExtracted)


def summarize_decision(decision: Mapping[str, Any], read: Read) -> DecisionSummary:
    """Return the summary of a decision in JSON form."""
    return DecisionSummary(
        decision["decision"],
        tuple(read(source) for source in decision["sources"]),
        read(decision["superseded_id"]),
    )


def _unchanged(value: Any) -> Any:
    return value


def ranked_items_of(event: ReplayEvent) -> list[RankedItem]:
    """Return what a read path found, best first; nothing if the event is no read path."""
    if not isinstance(event, Perceived | QuestionAsked):
        return []
    return [
        RankedItem(hit.id, hit.turns, hit.sources, hit.rank, is_missed, bool(hit.text))
        for is_missed, hits in ((False, event.hits), (True, event.missed))
        for hit in hits
    ]


_FIRST = 1 << 62
"""References of events kept in memory start above those of any file."""


class OverlayArchive:
    """A read-only archive with new events in memory: a recording, and the questions asked by hand beside it."""

    def __init__(self, below: EventArchive) -> None:
        self._below = below
        self._above = MemoryArchive()

    def keep(self, event: ReplayEvent) -> int:
        return _FIRST + self._above.keep(event)

    def event(self, ref: int) -> ReplayEvent:
        return self._above.event(ref - _FIRST) if ref >= _FIRST else self._below.event(ref)

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        below, above = self._below.at(backend, turn), self._above.at(backend, turn)
        return [*below, *above] if above else below

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        return self._below.operation_at(backend, turn)

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        return self._below.written_at(backend, turn)

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        return self._below.kept_until(backend, turn)

    def candidates(self, ref: int) -> list[RankedItem]:
        return self._below.candidates(ref)

    def summaries(self) -> Iterator[EventSummary]:
        return self._below.summaries()
