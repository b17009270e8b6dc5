"""A recording's events with what happens beside it now: questions asked by hand, which the file does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.replay.archive import Candidate, EventArchive, MemoryArchive, Note
from app.replay.events import ReplayEvent
from memory_backends.operations import MemoryOperation

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

    def operated_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """The store commands among it: asking leaves none."""
        return self._below.operated_at(backend, turn)

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """The store commands of a position that changed a store."""
        return self._below.written_at(backend, turn)

    def candidates(self, ref: int) -> list[Candidate]:
        """What the read path of a reference found."""
        return self._below.candidates(ref)

    def notes(self) -> Iterator[Note]:
        """What there is to know of every event of the archive below."""
        return self._below.notes()
