"""Actions that a test asks of the scheduler, and the steps of a run of tests, which the scheduler yields.

Of the steps only :class:`Say` expects an answer: the agent's reply. All times are of the simulated clock.
``test_id`` is None if a step belongs to no test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any


class TestAction:
    """An action that a test yields to the scheduler."""

    __test__ = False


class TestFinishedAction(TestAction):
    """Ends the test, even if lines of its script are left."""


@dataclass
class SendMessageAction(TestAction):
    """A message to the agent.

    The scheduler sets ``reply`` and both times (of the simulated clock) before the test continues. If there is a
    ``filler_response``, it is the reply and the agent is not called.
    """

    message: str
    reply: str | None = None
    reply_ts: datetime | None = None
    sent_ts: datetime | None = None
    is_question: bool = False
    is_filling: bool = False
    filler_response: str | None = None


@dataclass
class SendAndRegisterAction(SendMessageAction):
    """A question after which the test's ``continual_evaluation_callback`` sees every exchange."""


@dataclass
class WaitAction(TestAction):
    """Pauses the test until all of the given conditions hold.

    ``tokens`` more tokens were said, ``time`` has passed on the simulated clock, and ``percentage_finished``
    percent of the memory span were said since the test began.
    """

    tokens: int = 0
    time: timedelta = field(default_factory=timedelta)
    percentage_finished: float = 0.0


Wait = dict[str, Any]
"""The arguments of a ``WaitAction``; empty for no pause."""

_LAST_PAUSE_ENDS_AT = 90.0
"""The percentage of the memory span at which the last line is due by default."""


class WaitCreator:
    """Creates, serialises and deserialises waits."""

    @classmethod
    def create_wait(
        cls, tokens: int | None = None, time: timedelta | None = None, percentage_finished: float | None = None
    ) -> Wait:
        """Return a wait without the arguments that are None."""
        given = {"tokens": tokens, "time": time, "percentage_finished": percentage_finished}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def serialise(cls, w_dict: Mapping[str, Any]) -> Wait:
        """Convert to JSON: ``time`` in seconds, whole days included."""
        wait = dict(w_dict)
        if "time" in wait:
            wait["time"] = _seconds(wait["time"])
        return wait

    @classmethod
    def unserialise(cls, w_dict: Mapping[str, Any]) -> Wait:
        """Convert from JSON."""
        wait = dict(w_dict)
        if "time" in wait:
            wait["time"] = timedelta(seconds=wait["time"])
        return wait


def even_waits(lines: int) -> list[Wait]:
    """Line *i* of *n* waits until ``(i + 1) · 90 / (n - 1)`` percent of the memory span; the last does not wait."""
    if lines < 2:
        return [{} for _ in range(lines)]
    share = _LAST_PAUSE_ENDS_AT / (lines - 1)
    return [{"percentage_finished": (line + 1) * share} for line in range(lines - 1)] + [{}]


def _seconds(time: timedelta) -> int | float:
    seconds = time.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


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
    """A step after which the test's callback sees every exchange."""

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
