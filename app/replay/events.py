"""Everything that happens in a replay, as frozen events. Panels, recorder and report see this one stream.

``turn`` is the position of the cursor at which an event belongs: 0 before the first turn, 1…N at that turn (the
questions asked after the last turn stand at N), N + 1 when the conversation is closed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from app.answering.model import PromptMessage, Reply
from app.conversations.models import Frozen, Turn
from app.scoring.outcomes import RetrievalScore, Score
from memory_backends.base import ClosingStatus, Cut, Hit, WhyEmpty
from memory_backends.operations import Extraction, MemoryOperation, Phase, PromotionDecision, TraceEntry


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


class ConversationClosed(BackendEvent):
    """The memory is closed; ``turn`` is N + 1."""

    kind: Literal["conversation_closed"] = "conversation_closed"
    status: ClosingStatus


MessagePart = Literal["script", "question", "filler", "reply", "supplied"]
"""What a message is in a run of tests: a test's line, its question, filler; an agent's reply, or a supplied one."""


class MessageSaid(BackendEvent):
    """Something was said in a conversation that comes about while it is played; ``turn`` is the message's number.

    ``said_at`` is a simulated time; ``test_id`` is None where no test said it. ``error`` is why a reply did not
    come; the message is then empty.
    """

    kind: Literal["message_said"] = "message_said"
    message: Turn
    said_at: datetime
    part: MessagePart
    test_id: str | None
    error: str | None = None


class AgentReplied(BackendEvent):
    """The agent was asked for its next words, and what came of it; on disk before anything else happens with it.

    ``prompt`` is empty where memory failed: then no model was asked. Where memory gave the log in Redis as it
    stands, the context is an empty segment: the log is in the trace. ``test_id`` is the test that has the cost.
    """

    kind: Literal["agent_replied"] = "agent_replied"
    model: str
    test_id: str | None
    prompt: tuple[PromptMessage, ...]
    reply: Reply


class TestBegan(BackendEvent):
    """A test begins after the message at ``turn``."""

    __test__ = False

    kind: Literal["test_began"] = "test_began"
    test_id: str
    dataset: str
    description: str


class TestWaited(BackendEvent):
    """A test pauses until ``tokens`` more were said and ``until`` (simulated) is reached; None: no matter when."""

    __test__ = False

    kind: Literal["test_waited"] = "test_waited"
    test_id: str
    tokens: int
    until: datetime | None


class ClockSet(BackendEvent):
    """The simulated clock is set forward: what follows is another session, of number ``session``."""

    kind: Literal["clock_set"] = "clock_set"
    before: datetime
    after: datetime
    session: int


class MemoryCleared(BackendEvent):
    """The agent forgot everything: a foreign run began its next test afresh."""

    kind: Literal["memory_cleared"] = "memory_cleared"


class BenchmarkModelAsked(BackendEvent):
    """A dataset asked a model, to judge or to play a part: a cost of the benchmark, not of the agent.

    ``model`` is None where the run does not tell. ``cost_usd`` is None where it is unknown. A call that was made
    again since is not ``used``: all that is left of it is its cost.
    """

    kind: Literal["benchmark_model_asked"] = "benchmark_model_asked"
    test_id: str
    model: str | None
    reply: str | None
    error: str | None
    cost_usd: float | None
    used: bool = True


class TestScored(BackendEvent):
    """A test is over. ``score`` is 0..1; None where it could not be graded, and ``ungraded`` says why.

    ``recorded_score`` is that of a foreign run that was imported. ``distance_tokens`` were said from the end of the
    test's first message up to its last question. ``expected`` is for a reader.
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


ReplayEvent = Annotated[
    ConversationOpened
    | TurnPlayed
    | Perceived
    | Operated
    | Decided
    | Extracted
    | Observed
    | Settled
    | BackendFailed
    | QuestionAsked
    | ReplyReceived
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

REPLAY_EVENT: TypeAdapter[ReplayEvent] = TypeAdapter(ReplayEvent)
"""Reads an event back from its JSON form."""


def event_of(entry: TraceEntry, conversation: str, turn: int, backend: str) -> Operated | Decided | Extracted:
    """What a memory noted in its trace, as an event."""
    match entry:
        case MemoryOperation():
            return Operated(conversation=conversation, turn=turn, backend=backend, operation=entry)
        case PromotionDecision():
            return Decided(conversation=conversation, turn=turn, backend=backend, decision=entry)
        case Extraction():
            return Extracted(conversation=conversation, turn=turn, backend=backend, extraction=entry)
