"""Where a timeline's events rest: in memory, or in a recording from which they are read when they are looked at.

A timeline keeps an index of what happened and asks for the events themselves by a reference. What a reference is,
only the archive knows; references of later events are greater.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from app.replay.events import BackendEvent, Decided, Operated, ReplayEvent
from memory_backends.operations import (
    AppendChange,
    MemoryOperation,
    PatchChange,
    PromotionDecision,
    RemoveChange,
    UpsertChange,
    WriteChange,
)

WRITES = (AppendChange, PatchChange, RemoveChange, UpsertChange, WriteChange)
"""Changes that leave a store other than it was."""


class Note(NamedTuple):
    """What an index needs to know of an event.

    ``write`` is set where a store was changed, ``decision`` where a candidate was judged.
    """

    ref: int
    turn: int
    backend: str | None
    kind: str
    write: MemoryOperation | None = None
    decision: PromotionDecision | None = None


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

    def notes(self) -> Iterator[Note]:
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

    def notes(self) -> Iterator[Note]:
        """What there is to know of every event so far, in the order in which they were kept."""
        return (note_of(ref, event) for ref, event in enumerate(self._events))


def note_of(ref: int, event: ReplayEvent) -> Note:
    """What an index needs to know of an event."""
    backend = event.backend if isinstance(event, BackendEvent) else None
    match event:
        case Operated(operation=operation) if isinstance(operation.change, WRITES) and operation.error is None:
            return Note(ref, event.turn, backend, event.kind, write=operation)
        case Decided(decision=decision):
            return Note(ref, event.turn, backend, event.kind, decision=decision)
        case _:
            return Note(ref, event.turn, backend, event.kind)
