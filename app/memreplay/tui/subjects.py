"""From a line on the screen to the command that wrote what it shows. It knows no screen."""

from __future__ import annotations

from dataclasses import dataclass

from memory_backends.base import DATASET, Hit
from memory_backends.stores.trace import PromotionDecision
from memreplay.debugger.provenance import Origin, hit_written_by, point_written_by, value_written_by
from memreplay.engine.events import StoreOperated
from memreplay.timeline.timeline import AskKey, Timeline


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
class DecisionSubject:
    """What became of a promotion candidate at ``turn``. ``knowledge_id`` is the point it went to, if it did."""

    backend: str
    turn: int
    candidate_id: str
    knowledge_id: str | None

    @classmethod
    def of(cls, backend: str, turn: int, decision: PromotionDecision) -> DecisionSubject:
        """The subject of a decision."""
        return cls(backend, turn, decision.candidate_id, decision.knowledge_id)


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
    """Something that was stored, by its id and place: a point, a slot, a stretch of a log.

    ``turns`` are those whose words stand in it. ``place`` is empty where it is a point of any collection.
    """

    backend: str
    place: str
    id: str
    turns: tuple[str, ...]

    @classmethod
    def of_hit(cls, backend: str, hit: Hit) -> StoredSubject | TurnSubject:
        """What a hit was found in; a hit of the dataset itself is a turn."""
        if hit.store == DATASET:
            return TurnSubject((*hit.turns, *hit.sources, "")[0])
        return cls(backend, hit.place, hit.id, hit.turns)

    def as_hit(self) -> Hit:
        """A hit on it, without its text and rank."""
        return Hit(id=self.id, store="", place=self.place, rank=1, score=None, text="", turns=self.turns)


@dataclass(frozen=True)
class PromptSubject:
    """A line of the prompt that is looked at, which memory gave."""

    text: str


@dataclass(frozen=True)
class AnswerSubject:
    """One answer of one architecture."""

    key: AskKey


WrittenSubject = ValueSubject | PieceSubject | StoredSubject
"""What some command wrote into a store."""


def origin_of(timeline: Timeline, subject: WrittenSubject, turn: int) -> Origin | None:
    """The last write at or before a position that made a thing what it is there; None where none is on record."""
    match subject:
        case ValueSubject(backend, key, path):
            return value_written_by(timeline, backend, key, path, turn)
        case PieceSubject(backend, key, number):
            return _append_of(timeline, backend, key, number, turn)
        case StoredSubject(backend, "", point_id):
            written = [
                origin
                for name in timeline.collections(backend)
                for origin in point_written_by(timeline, backend, name, point_id, turn)
            ]
        case StoredSubject(backend):
            written = hit_written_by(timeline, backend, subject.as_hit(), turn)
    return written[-1] if written else None


def _append_of(timeline: Timeline, backend: str, key: str, number: int, turn: int) -> Origin | None:
    """The append that a piece of a log is, by its 0-based number."""
    appends = timeline.log(backend, key).writes_until(turn)
    if number >= len(appends):
        return None
    at, ref, _ = appends[number]
    event = timeline.archive.event(ref)
    return Origin(backend, at, ref, event.operation) if isinstance(event, StoreOperated) else None


def origin_words(origin: Origin) -> str:
    """A write in one line: turn, command, place, who did it, on account of which turns, and how long it took."""
    operation = origin.operation
    because = f" because of turn {', '.join(operation.turns)}" if operation.turns else ""
    return (
        f"written at turn {origin.turn} by {operation.actor}{because} · {operation.store} {operation.command}"
        f" {operation.key} · {operation.ms:.1f} ms · ⌫ returns"
    )
