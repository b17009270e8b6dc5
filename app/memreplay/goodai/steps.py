"""The steps of a run of tests, which the scheduler yields.

Only :class:`Say` expects an answer: the agent's reply. All times are of the simulated clock. ``test_id`` is None if
a step belongs to no test.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class AgentReply:
    """The agent's reply. If there is an ``error``, ``text`` is empty."""

    text: str
    error: str | None = None


@dataclass(frozen=True)
class FreshMemory:
    """The agent starts with an empty memory: the next test runs alone."""

    test_id: str


@dataclass(frozen=True)
class TestBegins:
    """A test begins after ``tokens`` were said in the run."""

    __test__ = False

    test_id: str
    dataset: str
    description: str
    tokens: int


@dataclass(frozen=True)
class Say:
    """A message to the agent; answer it by sending an :class:`AgentReply`.

    ``known`` is the reply from the log of an interrupted run: send it back without calling the agent.
    ``is_filling`` marks trivia that the agent has to answer because a callback watches its replies.
    """

    test_id: str | None
    message: str
    is_question: bool
    is_filling: bool
    sent_at: datetime
    known: AgentReply | None


@dataclass(frozen=True)
class Filler:
    """A message with a given reply: the agent observes both and is not called."""

    test_id: str | None
    message: str
    reply: str
    sent_at: datetime


@dataclass(frozen=True)
class TestWaits:
    """A test pauses until ``tokens`` more were said and the time ``until`` is reached, if there is one."""

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
    """From now on the test's callback sees every exchange."""

    test_id: str


@dataclass(frozen=True)
class CallbackDeregistered:
    """The test's callback is done."""

    test_id: str


@dataclass(frozen=True)
class LlmAsked:
    """A dataset called a model. The cost is part of the benchmark's, not of the agent's.

    ``reused``: the reply and its cost come from the log of an interrupted run.
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
