"""What a test asks of the scheduler, one action at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta


class TestAction:
    """Anything that a test can yield."""

    __test__ = False


class TestFinishedAction(TestAction):
    """The test is over, however much of its script is left."""


@dataclass
class SendMessageAction(TestAction):
    """A message to the agent.

    The scheduler fills in ``reply`` and both times (of the simulated clock) before the test goes on. A message with
    a ``filler_response`` is answered by that text: the agent is not asked.
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
    """A question from which on the test's ``continual_evaluation_callback`` sees every exchange."""


@dataclass
class WaitAction(TestAction):
    """The test pauses until all that is given holds.

    ``tokens`` more have been said, ``time`` has passed on the simulated clock, and ``percentage_finished`` percent
    of the memory span have been said since the test began.
    """

    tokens: int = 0
    time: timedelta = field(default_factory=timedelta)
    percentage_finished: float = 0.0
