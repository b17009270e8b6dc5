"""Events of a replay: turns, memory reads and writes, questions and their scores."""

from __future__ import annotations

from typing import Literal

from memory_backends.base import ClosingStatus, Cut, Hit, MemoryDescription, WhyEmpty
from memory_backends.stores.trace import Extraction, MemoryOperation, Phase, PromotionDecision, TraceEntry
from memreplay.conversations.models import Frozen
from memreplay.grading.score import RetrievalScore, Score
from memreplay.llm.model import PromptMessage, Reply


class Event(Frozen):
    """What all events carry."""

    conversation: str
    turn: int


class BackendEvent(Event):
    """An event of one memory architecture."""

    backend: str


class AskEvent(BackendEvent):
    """An event of one question put to one backend through one model.

    ``by_hand`` marks a question that the user asked at a position of the cursor, beside the scheduled ones.
    """

    model: str
    question_id: str
    repeat: int = 0
    by_hand: bool = False


ASK_KINDS = ("question_asked", "reply_received", "answer_scored")
"""The kinds of :class:`AskEvent`, in their order."""


class QuestionAsked(AskEvent):
    """A question is on its way: what memory gave for it, and the prompt as it is sent. ``recall_ms`` of wall time.

    ``prompt`` is empty where memory failed: then no model is asked. ``choice_order`` is set where the options were
    shown in another order than the dataset's: the dataset's index of each option, as they stood in the prompt.
    ``typed`` is the text of a question that the user typed in; None for one of the dataset's.
    """

    kind: Literal["question_asked"] = "question_asked"
    hits: tuple[Hit, ...]
    missed: tuple[Hit, ...] = ()
    why_empty: WhyEmpty | None = None
    cut: tuple[Cut, ...]
    context_tokens: int
    prompt: tuple[PromptMessage, ...]
    recall_ms: float
    choice_order: tuple[int, ...] = ()
    typed: str | None = None


class ReplyReceived(AskEvent):
    """The reply, as it came. It is on disk before anything else happens with it."""

    kind: Literal["reply_received"] = "reply_received"
    reply: Reply


class AnswerScored(AskEvent):
    """What the reply was worth."""

    kind: Literal["answer_scored"] = "answer_scored"
    score: Score
    retrieval: RetrievalScore


class ConversationOpened(BackendEvent):
    """A backend is open and empty. ``memory`` is what it says of its stores and panels."""

    kind: Literal["conversation_opened"] = "conversation_opened"
    memory: MemoryDescription = MemoryDescription()


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


class StoreOperated(BackendEvent):
    """A store command was carried out."""

    kind: Literal["store_operated"] = "store_operated"
    operation: MemoryOperation


class PromotionDecided(BackendEvent):
    """A promotion candidate was judged."""

    kind: Literal["promotion_decided"] = "promotion_decided"
    decision: PromotionDecision


class FactsExtracted(BackendEvent):
    """A model was asked for the facts of an exchange."""

    kind: Literal["facts_extracted"] = "facts_extracted"
    extraction: Extraction


class Observed(BackendEvent):
    """The write path of an exchange is done. ``turns`` are its turn ids; ``ms`` of wall time."""

    kind: Literal["observed"] = "observed"
    turns: tuple[str, ...]
    ms: float


class BackgroundWorkSettled(BackendEvent):
    """Background work is done. ``ms`` is the time waited for it, on nobody's critical path."""

    kind: Literal["background_work_settled"] = "background_work_settled"
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


def event_of(
    entry: TraceEntry, conversation: str, turn: int, backend: str
) -> StoreOperated | PromotionDecided | FactsExtracted:
    """What a memory noted in its trace, as an event."""
    match entry:
        case MemoryOperation():
            return StoreOperated(conversation=conversation, turn=turn, backend=backend, operation=entry)
        case PromotionDecision():
            return PromotionDecided(conversation=conversation, turn=turn, backend=backend, decision=entry)
        case Extraction():
            return FactsExtracted(conversation=conversation, turn=turn, backend=backend, extraction=entry)
