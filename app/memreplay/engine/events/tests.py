"""What happens where the agent really converses, with tests."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from memreplay.conversations.models import Turn
from memreplay.engine.events.replay import BackendEvent
from memreplay.llm.model import PromptMessage, Reply

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
