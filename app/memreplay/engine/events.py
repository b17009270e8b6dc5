"""Everything that happens in a replay, as frozen events. Panels, recorder and report read the same stream.

``turn`` is the cursor position of an event: 0 before the first turn, 1…N at that turn (questions asked after the
last turn have N), N + 1 when the conversation is closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter

from memory_backends.base import ClosingStatus, Cut, Hit, MemoryDescription, WhyEmpty
from memory_backends.stores.trace import (
    Extraction,
    MemoryOperation,
    ModelCall,
    Phase,
    PromotionDecision,
    TraceEntry,
)
from memreplay.conversations.models import Conversation, Frozen, Session, Turn
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
    in; None for a question of the dataset. It is not ``measured`` where the run was imported from results that
    somebody published: a 0 in its tokens and times is unknown then. It is not ``ranked`` where memory returns all
    that it has, so that recall at k does not apply.
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
    measured: bool = True
    ranked: bool = True


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
    """Return the event of an entry in a backend's trace."""
    match entry:
        case MemoryOperation():
            return StoreOperated(conversation=conversation, turn=turn, backend=backend, operation=entry)
        case PromotionDecision():
            return PromotionDecided(conversation=conversation, turn=turn, backend=backend, decision=entry)
        case Extraction():
            return FactsExtracted(conversation=conversation, turn=turn, backend=backend, extraction=entry)
        case ModelCall():
            return ModelCalled(conversation=conversation, turn=turn, backend=backend, call=entry)


WRITING: Final[frozenset[Phase]] = frozenset({"open", "observe", "consolidate"})


def call_in(event: ReplayEvent) -> ModelCall | Extraction | None:
    """Return the call of a writer in an event; None in any other."""
    match event:
        case FactsExtracted(extraction=extraction):
            return extraction
        case ModelCalled(call=call) if call.purpose == "chat" and call.phase in WRITING:
            return call
    return None


MessagePart = Literal["script", "question", "filler", "reply", "supplied"]
"""The part of a message in a run of tests: a test's line or question, filler, a reply of the agent or a supplied
one."""


class MessageSaid(BackendEvent):
    """A message was added to a conversation that grows while it is played; ``turn`` is the message's number.

    ``said_at`` is simulated time; ``test_id`` is None if the message belongs to no test. ``error`` says why a reply
    failed; its message is then empty.
    """

    kind: Literal["message_said"] = "message_said"
    message: Turn
    said_at: datetime
    part: MessagePart
    test_id: str | None
    error: str | None = None


class AgentReplied(BackendEvent):
    """The agent replied, or failed to. The event is recorded before the reply is used.

    ``prompt`` is empty if memory failed: then no model was asked. If the context is the whole log in Redis, its
    segment is empty: the trace already holds it. ``test_id`` is the test that the cost is charged to.
    """

    kind: Literal["agent_replied"] = "agent_replied"
    model: str
    test_id: str | None
    prompt: tuple[PromptMessage, ...]
    reply: Reply


class TestBegan(BackendEvent):
    """A test starts after the message at ``turn``."""

    __test__ = False

    kind: Literal["test_began"] = "test_began"
    test_id: str
    dataset: str
    description: str


class TestWaited(BackendEvent):
    """A test pauses until ``tokens`` more tokens were said and the simulated time ``until``, if any, is reached."""

    __test__ = False

    kind: Literal["test_waited"] = "test_waited"
    test_id: str
    tokens: int
    until: datetime | None


class ClockSet(BackendEvent):
    """The simulated clock was set forward, which starts a new session with the number ``session``."""

    kind: Literal["clock_set"] = "clock_set"
    before: datetime
    after: datetime
    session: int


class MemoryCleared(BackendEvent):
    """The agent's memory was cleared: an imported run started its next test from scratch."""

    kind: Literal["memory_cleared"] = "memory_cleared"


class BenchmarkModelAsked(BackendEvent):
    """A dataset called a model, to judge or to play a role. The benchmark pays for it, not the agent.

    ``model`` and ``cost_usd`` are None if unknown. A call that was repeated later is not ``used``: only its cost
    still counts.
    """

    kind: Literal["benchmark_model_asked"] = "benchmark_model_asked"
    test_id: str
    model: str | None
    reply: str | None
    error: str | None
    cost_usd: float | None
    used: bool = True


class TestScored(BackendEvent):
    """A test ended. ``score`` is 0..1; None if it could not be graded, and ``ungraded`` says why.

    ``recorded_score`` is the score in an imported run. ``distance_tokens`` counts the tokens from the end of the
    test's first message to its last question. ``expected`` is meant for display.
    """

    __test__ = False

    kind: Literal["test_scored"] = "test_scored"
    model: str
    test_id: str
    dataset: str
    score: float | None
    max_score: float
    recorded_score: float | None = None
    reasoning: tuple[str, ...]
    ungraded: str | None
    questions: tuple[str, ...]
    responses: tuple[str, ...]
    expected: str
    distance_tokens: int


def extended(conversation: Conversation, event: MessageSaid | ClockSet) -> Conversation:
    """Return the conversation with one more message, or with the session that starts when the clock is set."""
    match event:
        case MessageSaid():
            return _with(conversation, turns=(*conversation.turns, event.message))
        case ClockSet():
            session = Session(number=event.session, id=str(event.session), date=event.after)
            return _with(conversation, sessions=(*conversation.sessions, session))


def _with(conversation: Conversation, **changed: Any) -> Conversation:
    """Return a copy without the cached properties of the old one. Its parts are valid, so they are not validated
    again.
    """
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    return Conversation.model_construct(**fields | changed)


def shown_expectation(expected: Any) -> str:
    """Return what a test expects, for display: a string as it is, strings one a line, anything else as JSON."""
    match expected:
        case None:
            return ""
        case str():
            return expected
        case list() if all(isinstance(entry, str) for entry in expected):
            return "\n".join(expected)
    return json.dumps(expected, ensure_ascii=False, default=str)


__all__ = [
    "ASK_KINDS",
    "REPLAY_EVENT",
    "AgentReplied",
    "AnswerJudged",
    "AnswerScored",
    "AskEvent",
    "BackendEvent",
    "BackendFailed",
    "BackgroundWorkSettled",
    "BenchmarkModelAsked",
    "ClockSet",
    "ConversationClosed",
    "ConversationOpened",
    "Event",
    "EventSink",
    "FactsExtracted",
    "MemoryCleared",
    "MessagePart",
    "MessageSaid",
    "ModelCalled",
    "Observed",
    "Perceived",
    "PromotionDecided",
    "QuestionAsked",
    "ReplayEvent",
    "ReplyReceived",
    "StoreOperated",
    "TestBegan",
    "TestScored",
    "TestWaited",
    "TurnPlayed",
    "event_of",
    "extended",
]

ReplayEvent = Annotated[
    ConversationOpened
    | TurnPlayed
    | Perceived
    | StoreOperated
    | PromotionDecided
    | FactsExtracted
    | ModelCalled
    | Observed
    | BackgroundWorkSettled
    | BackendFailed
    | QuestionAsked
    | ReplyReceived
    | AnswerJudged
    | AnswerScored
    | MessageSaid
    | AgentReplied
    | TestBegan
    | TestWaited
    | ClockSet
    | MemoryCleared
    | BenchmarkModelAsked
    | TestScored
    | ConversationClosed,
    Field(discriminator="kind"),
]

EventSink = Callable[[ReplayEvent], None]
"""Consumes an event. When it returns from a :class:`ReplyReceived`, the reply is on disk."""

REPLAY_EVENT: TypeAdapter[ReplayEvent] = TypeAdapter(ReplayEvent)
"""Validates an event in JSON form."""
