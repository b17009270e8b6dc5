"""Subjects of lines, such as a turn or a stored item, and the store command that wrote them."""

from __future__ import annotations

from dataclasses import dataclass

from memory_backends.base import Hit
from memory_backends.controls import DATASET
from memory_backends.stores.trace import PromotionDecision
from memreplay.debugger.provenance import Origin, hit_written_by, point_written_by, value_written_by
from memreplay.engine.events import StoreOperated
from memreplay.timeline.timeline import AskKey, Timeline
from memreplay.views.panels import short_key


@dataclass(frozen=True)
class TurnSubject:
    turn_id: str


@dataclass(frozen=True)
class PositionSubject:
    """A cursor position at which something happened in one architecture."""

    turn: int
    backend: str


@dataclass(frozen=True)
class CallSubject:
    """A call of a model that a memory made at position ``turn``, by its number there, from 1."""

    backend: str
    turn: int
    number: int


@dataclass(frozen=True)
class DecisionSubject:
    """The decision on a promotion candidate at ``turn``. ``knowledge_id`` is the point written, if any."""

    backend: str
    turn: int
    candidate_id: str
    knowledge_id: str | None

    @classmethod
    def of(cls, backend: str, turn: int, decision: PromotionDecision) -> DecisionSubject:
        return cls(backend, turn, decision.candidate_id, decision.knowledge_id)


@dataclass(frozen=True)
class ValueSubject:
    """A value in a JSON state: the keys and indexes that lead to it from the root."""

    backend: str
    key: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class WholeStateSubject:
    """A JSON state as a whole, which stands behind its facts."""

    backend: str
    key: str


@dataclass(frozen=True)
class PieceSubject:
    """An appended piece of a log, by its 0-based index."""

    backend: str
    key: str
    number: int


@dataclass(frozen=True)
class StoredSubject:
    """A stored item, by id and place: a point, a slot or a stretch of a log.

    ``turns`` are the turns that it holds verbatim. An empty ``place`` means any collection.
    """

    backend: str
    place: str
    id: str
    turns: tuple[str, ...]

    @classmethod
    def of_hit(cls, backend: str, hit: Hit) -> StoredSubject | TurnSubject:
        """Return the stored item of a hit; a hit of the dataset itself is a turn."""
        if hit.store == DATASET:
            return TurnSubject((*hit.turns, *hit.sources, "")[0])
        return cls(backend, hit.place, hit.id, hit.turns)

    def as_hit(self) -> Hit:
        """Return a hit on this item, with neither text nor a real rank."""
        return Hit(id=self.id, store="", place=self.place, rank=1, score=None, text="", turns=self.turns)


@dataclass(frozen=True)
class PromptSubject:
    """A line of the shown prompt that came from memory."""

    text: str


@dataclass(frozen=True)
class AnswerSubject:
    key: AskKey


WrittenSubject = ValueSubject | PieceSubject | StoredSubject
"""Something that a command wrote into a store."""


def origin_of(timeline: Timeline, subject: WrittenSubject, turn: int) -> Origin | None:
    """Return the last write to a subject at or before a position; None if none is recorded."""
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
    """Return the append that wrote a piece of a log, by its 0-based index."""
    appends = timeline.log(backend, key).writes_until(turn)
    if number >= len(appends):
        return None
    at, ref, _ = appends[number]
    event = timeline.archive.event(ref)
    return Origin(backend, at, ref, event.operation) if isinstance(event, StoreOperated) else None


def is_end(timeline: Timeline, position: int) -> bool:
    """Return whether a position comes after all turns, where a conversation is closed."""
    end = timeline.conversation.end
    return end is not None and position > end


def write_words(timeline: Timeline, position: int) -> str:
    """Return words for the turn and phase in which something was written."""
    if not position:
        return "before the first turn"
    return "when the conversation was closed" if is_end(timeline, position) else f"at turn {position}"


def origin_words(origin: Origin, timeline: Timeline | None = None) -> str:
    """Return a write as a sentence: when, actor, source turns, command, key and duration."""
    operation = origin.operation
    when = f"at turn {origin.turn}" if timeline is None else write_words(timeline, origin.turn)
    because = f" because of turn {', '.join(operation.turns)}" if operation.turns else ""
    actor, key = (
        name if timeline is None else short_key(name, timeline.conversation.id, origin.backend)
        for name in (operation.actor, operation.key)
    )
    return (
        f"written {when} by {actor}{because} · {operation.store} {operation.command}"
        f" {key} · {operation.ms:.1f} ms · ⌫ returns"
    )
