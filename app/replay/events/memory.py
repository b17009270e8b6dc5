"""What the memories do while a conversation is played to them."""

from __future__ import annotations

from typing import Literal

from app.replay.events.base import BackendEvent, Event
from memory_backends.base import ClosingStatus, Cut, Hit, WhyEmpty
from memory_backends.operations import Extraction, MemoryOperation, Phase, PromotionDecision, TraceEntry


class ConversationOpened(BackendEvent):
    """A backend is open and empty."""

    kind: Literal["conversation_opened"] = "conversation_opened"


class TurnPlayed(Event):
    """A turn was said. It belongs to no backend: every one of them heard it."""

    kind: Literal["turn_played"] = "turn_played"


class Perceived(BackendEvent):
    """The read path of a user turn is done: what memory would have given the agent. ``ms`` of wall time."""

    kind: Literal["perceived"] = "perceived"
    hits: tuple[Hit, ...]
    missed: tuple[Hit, ...] = ()
    why_empty: WhyEmpty | None = None
    cut: tuple[Cut, ...]
    tokens: int
    ms: float


class Operated(BackendEvent):
    """A store command was carried out."""

    kind: Literal["operated"] = "operated"
    operation: MemoryOperation


class Decided(BackendEvent):
    """A promotion candidate was judged."""

    kind: Literal["decided"] = "decided"
    decision: PromotionDecision


class Extracted(BackendEvent):
    """A model was asked for the facts of an exchange."""

    kind: Literal["extracted"] = "extracted"
    extraction: Extraction


class Observed(BackendEvent):
    """The write path of an exchange is done. ``turns`` are its turn ids; ``ms`` of wall time."""

    kind: Literal["observed"] = "observed"
    turns: tuple[str, ...]
    ms: float


class Settled(BackendEvent):
    """Background work is done. ``ms`` is the time waited for it, on nobody's critical path."""

    kind: Literal["settled"] = "settled"
    ms: float


class BackendFailed(BackendEvent):
    """A memory could not do what it was asked. The replay goes on with the others."""

    kind: Literal["backend_failed"] = "backend_failed"
    phase: Phase
    error: str


class ConversationClosed(BackendEvent):
    """The memory is closed; ``turn`` is N + 1."""

    kind: Literal["conversation_closed"] = "conversation_closed"
    status: ClosingStatus


def event_of(entry: TraceEntry, conversation: str, turn: int, backend: str) -> Operated | Decided | Extracted:
    """What a memory noted in its trace, as an event."""
    match entry:
        case MemoryOperation():
            return Operated(conversation=conversation, turn=turn, backend=backend, operation=entry)
        case PromotionDecision():
            return Decided(conversation=conversation, turn=turn, backend=backend, decision=entry)
        case Extraction():
            return Extracted(conversation=conversation, turn=turn, backend=backend, extraction=entry)
