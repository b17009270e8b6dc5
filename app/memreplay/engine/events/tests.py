"""Events of a run of tests, in which the agent really converses."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal

from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.engine.events.replay import BackendEvent
from memreplay.llm.model import PromptMessage, Reply

MessagePart = Literal["script", "question", "filler", "reply", "supplied"]
"""What a message is in a run of tests: a test's line or question, filler, a reply of the agent or a supplied
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
    """The conversation with one more message, or with the session that starts when the clock is set."""
    match event:
        case MessageSaid():
            return _with(conversation, turns=(*conversation.turns, event.message))
        case ClockSet():
            session = Session(number=event.session, id=str(event.session), date=event.after)
            return _with(conversation, sessions=(*conversation.sessions, session))


def _with(conversation: Conversation, **changed: Any) -> Conversation:
    """A copy without the cached properties of the old one. Its parts are valid, so they are not validated again."""
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    return Conversation.model_construct(**fields | changed)


def shown_expectation(expected: Any) -> str:
    """What a test expects, for display: a string as it is, strings one a line, anything else as JSON."""
    match expected:
        case None:
            return ""
        case str():
            return expected
        case list() if all(isinstance(entry, str) for entry in expected):
            return "\n".join(expected)
    return json.dumps(expected, ensure_ascii=False, default=str)
