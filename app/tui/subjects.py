"""What a line on the screen is about: what can be followed from it, to the turn and the command that wrote it."""

from __future__ import annotations

from dataclasses import dataclass

from app.replay.asks import AskKey
from memory_backends.base import Hit
from memory_backends.operations import PromotionDecision, Store


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
    store: Store
    place: str
    id: str
    turns: tuple[str, ...]

    @classmethod
    def of_hit(cls, backend: str, hit: Hit) -> StoredSubject | TurnSubject:
        """What a hit was found in; a hit of the dataset itself is a turn."""
        if hit.store == "dataset":
            return TurnSubject((*hit.turns, *hit.sources, "")[0])
        return cls(backend, hit.store, hit.place, hit.id, hit.turns)

    def as_hit(self) -> Hit:
        """A hit on it, without its text and rank."""
        return Hit(id=self.id, store=self.store, place=self.place, rank=1, score=None, text="", turns=self.turns)


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
