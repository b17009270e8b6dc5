"""What a line on the screen is about: what can be followed from it, to the turn and the command that wrote it."""

from __future__ import annotations

from dataclasses import dataclass

from app.replay.timeline import AskKey
from memory_backends.base import Hit


@dataclass(frozen=True)
class TurnSubject:
    """A turn of the conversation."""

    turn_id: str


@dataclass(frozen=True)
class PositionSubject:
    """A position of the cursor at which something of one architecture happened."""

    turn: int
    backend: str


@dataclass(frozen=True)
class ValueSubject:
    """A place in a JSON state: the names and indexes that lead to it from the root."""

    backend: str
    key: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class PieceSubject:
    """A piece of a log that only grows, by its 0-based number."""

    backend: str
    key: str
    number: int


@dataclass(frozen=True)
class StoredSubject:
    """Something that was stored: a point of a collection, or a hit on it. ``turns`` are those it came from."""

    backend: str
    place: str
    id: str
    turns: tuple[str, ...]

    @classmethod
    def of_hit(cls, backend: str, hit: Hit) -> StoredSubject:
        """What a hit was found in."""
        return cls(backend, hit.place, hit.id, hit.turns or hit.sources)


@dataclass(frozen=True)
class AnswerSubject:
    """One answer of one architecture."""

    key: AskKey


Subject = TurnSubject | PositionSubject | ValueSubject | PieceSubject | StoredSubject | AnswerSubject
