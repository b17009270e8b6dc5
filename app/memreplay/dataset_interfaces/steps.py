"""What happens in a run of tests, one step at a time; the scheduler yields these.

Only :class:`Say` asks for something: the agent's reply. All times are of the simulated clock; ``test_id`` is None
where a step belongs to no test.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class AgentReply:
    """What the agent said; on ``error`` it said nothing, and ``text`` is empty."""

    text: str
    error: str | None = None


@dataclass(frozen=True)
class FreshMemory:
    """The agent starts with an empty memory: the next test runs alone."""

    test_id: str


@dataclass(frozen=True)
class TestBegins:
    """A test starts, after ``tokens`` had been said in the run."""

    __test__ = False

    test_id: str
    dataset: str
    description: str
    tokens: int


@dataclass(frozen=True)
class Say:
    """A message to the agent, which must be answered by sending an :class:`AgentReply`.

    ``known`` is the reply in the log of an interrupted run: it is to be sent back, and the agent not asked.
    ``is_filling`` marks trivia that the agent has to answer because a test watches its replies.
    """

    test_id: str | None
    message: str
    is_question: bool
    is_filling: bool
    sent_at: datetime
    known: AgentReply | None


@dataclass(frozen=True)
class Filler:
    """A message whose reply is supplied: the agent hears both and is not asked."""

    test_id: str | None
    message: str
    reply: str
    sent_at: datetime


@dataclass(frozen=True)
class TestWaits:
    """A test pauses until ``tokens`` more were said and ``until`` is reached (None: no matter when)."""

    __test__ = False

    test_id: str
    tokens: int
    until: datetime | None


@dataclass(frozen=True)
class TimeJumps:
    """The simulated clock is set forward."""

    before: datetime
    after: datetime


@dataclass(frozen=True)
class CallbackRegistered:
    """From now on a test sees every exchange."""

    test_id: str


@dataclass(frozen=True)
class CallbackDeregistered:
    """The test has seen enough."""

    test_id: str


@dataclass(frozen=True)
class LlmAsked:
    """A dataset asked a model: a cost of the benchmark, not of the agent.

    ``reused`` says that the reply, and its cost, are from the log of an interrupted run.
    """

    test_id: str
    model: str
    reply: str | None
    error: str | None
    cost_usd: float | None
    reused: bool


@dataclass(frozen=True)
class TestEnded:
    """A test is over. ``score`` is 0..1, or None where it could not be graded, and ``ungraded`` says why.

    ``tokens`` and ``characters`` were said from the end of the test's first message up to its last question.
    """

    __test__ = False

    test_id: str
    dataset: str
    score: float | None
    max_score: float
    reasoning: tuple[str, ...]
    ungraded: str | None
    questions: tuple[str, ...]
    responses: tuple[str, ...]
    expected_responses: Any
    tokens: int
    characters: int


Step = (
    FreshMemory
    | TestBegins
    | Say
    | Filler
    | TestWaits
    | TimeJumps
    | CallbackRegistered
    | CallbackDeregistered
    | LlmAsked
    | TestEnded
)
