"""Events of a replay: turns, memory reads and writes, questions and their scores."""

from __future__ import annotations

from typing import Literal

from memory_backends.base import ClosingStatus, Cut, Hit, MemoryDescription, WhyEmpty
from memory_backends.stores.trace import (
    Extraction,
    MemoryOperation,
    ModelCall,
    Phase,
    PromotionDecision,
    TraceEntry,
)
from memreplay.conversations.models import Frozen
from memreplay.grading import RetrievalScore, Score
from memreplay.llm.judging import Judgement
from memreplay.llm.model import PromptMessage, Reply


class Event(Frozen):
    """The base of all events."""

    conversation: str
    turn: int


class BackendEvent(Event):
    """An event of one memory architecture."""

    backend: str


class AskEvent(BackendEvent):
    """An event of one question put to one backend through one model.

    ``by_hand`` marks a question that the user asked at the cursor, in addition to the scheduled ones.
    """

    model: str
    question_id: str
    repeat: int = 0
    by_hand: bool = False


ASK_KINDS = ("question_asked", "reply_received", "answer_judged", "answer_scored")
"""The kinds of :class:`AskEvent`, in the order in which they happen."""


class QuestionAsked(AskEvent):
    """A question is about to be asked: what memory recalled, and the prompt. ``recall_ms`` is wall time.

    ``prompt`` is empty if memory failed: then no model is asked. ``choice_order`` holds the dataset's index of each
    option in the order of the prompt, if that was shuffled. ``typed`` is the text of a question that the user typed
    in; None for a question of the dataset.
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
    """The reply as it was received. It is recorded before it is used."""

    kind: Literal["reply_received"] = "reply_received"
    reply: Reply


class AnswerJudged(AskEvent):
    """A judge was asked about the reply. It is recorded before it is used; a later one replaces it."""

    kind: Literal["answer_judged"] = "answer_judged"
    judgement: Judgement


class AnswerScored(AskEvent):
    """The reply was graded, and the retrieval scored."""

    kind: Literal["answer_scored"] = "answer_scored"
    score: Score
    retrieval: RetrievalScore


class ConversationOpened(BackendEvent):
    """A backend is open and empty. ``memory`` is what it says of its stores and panels."""

    kind: Literal["conversation_opened"] = "conversation_opened"
    memory: MemoryDescription = MemoryDescription()


class TurnPlayed(Event):
    """A turn was played to all backends."""

    kind: Literal["turn_played"] = "turn_played"


class Perceived(BackendEvent):
    """The read path of a user turn ran: what memory would have given the agent. ``ms`` is wall time."""

    kind: Literal["perceived"] = "perceived"
    hits: tuple[Hit, ...]
    missed: tuple[Hit, ...] = ()
    why_empty: WhyEmpty | None = None
    cut: tuple[Cut, ...]
    tokens: int
    ms: float


class StoreOperated(BackendEvent):
    """A backend performed an operation on one of its stores, successful or not."""

    kind: Literal["store_operated"] = "store_operated"
    operation: MemoryOperation


class PromotionDecided(BackendEvent):
    """The consolidation agent decided whether to promote a candidate to long-term memory."""

    kind: Literal["promotion_decided"] = "promotion_decided"
    decision: PromotionDecision


class FactsExtracted(BackendEvent):
    """A model extracted the facts of an exchange, or failed to."""

    kind: Literal["facts_extracted"] = "facts_extracted"
    extraction: Extraction


class ModelCalled(BackendEvent):
    """A memory called a model by itself: to extract, rewrite or embed."""

    kind: Literal["model_called"] = "model_called"
    call: ModelCall


class Observed(BackendEvent):
    """The write path of an exchange ran. ``turns`` are its turn ids; ``ms`` is wall time.

    ``reused``: it ran in an earlier run, whose filled memory this run uses. So did everything that memory did then.
    """

    kind: Literal["observed"] = "observed"
    turns: tuple[str, ...]
    ms: float
    reused: bool = False


class BackgroundWorkSettled(BackendEvent):
    """The backend's background work, such as consolidation, has finished. ``ms`` is the time waited for it."""

    kind: Literal["background_work_settled"] = "background_work_settled"
    ms: float


class BackendFailed(BackendEvent):
    """A backend failed in one phase. The replay continues with the others."""

    kind: Literal["backend_failed"] = "backend_failed"
    phase: Phase
    error: str


class ConversationClosed(BackendEvent):
    """A backend was closed; ``turn`` is N + 1."""

    kind: Literal["conversation_closed"] = "conversation_closed"
    status: ClosingStatus


def event_of(
    entry: TraceEntry, conversation: str, turn: int, backend: str
) -> StoreOperated | PromotionDecided | FactsExtracted | ModelCalled:
    """The event of an entry in a backend's trace."""
    match entry:
        case MemoryOperation():
            return StoreOperated(conversation=conversation, turn=turn, backend=backend, operation=entry)
        case PromotionDecision():
            return PromotionDecided(conversation=conversation, turn=turn, backend=backend, decision=entry)
        case Extraction():
            return FactsExtracted(conversation=conversation, turn=turn, backend=backend, extraction=entry)
        case ModelCall():
            return ModelCalled(conversation=conversation, turn=turn, backend=backend, call=entry)
