"""What a run of tests is played with: the model behind the agent, tests, judge, and what was paid for before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.answering.model import AnswerRequest, Reply
from app.dataset_interfaces.definitions import Benchmark
from app.dataset_interfaces.language_model import LLMReply, LLMRequest
from app.dataset_interfaces.master_log import EventType, LogEvent
from app.errors import UsageError
from app.replay.events import AgentReplied, BenchmarkModelAsked, ReplayEvent


class Agent(Protocol):
    """A port: the model behind the agent."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def request(self, message: str, context: str, now: datetime) -> AnswerRequest:
        """The call for the reply to a message, with what memory gave for it."""
        ...

    async def answer(self, request: AnswerRequest) -> Reply:
        """Make the call. A failure is a reply with an error."""
        ...

    def context_budget(self, message: str) -> int:
        """Most tokens of memory beside this message."""
        ...


class BenchmarkModel(Protocol):
    """A port: the model that datasets ask."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def answer(self, request: LLMRequest) -> LLMReply:
        """Ask once. A failure is a reply with an error."""
        ...


@dataclass(frozen=True)
class AgentPlan:
    """How a run of tests is played: its tests and schedule, the hits that memory may take, and who judges.

    ``benchmark`` makes the tests anew, and may ask a model for it; it is called in a thread. Without a ``judge``
    tests that need one are not graded.
    """

    run_id: str
    benchmark: Callable[[], Benchmark]
    top_k: int = 10
    judge: BenchmarkModel | None = None


class KnownReplies:
    """What an interrupted attempt at the same run has paid for."""

    def __init__(self, events: Iterable[ReplayEvent] = ()) -> None:
        self._agent: dict[int, AgentReplied] = {}
        self.judged: list[LogEvent] = []
        for event in events:
            match event:
                case AgentReplied():
                    self._agent[event.turn] = event
                case BenchmarkModelAsked():
                    data = {"response": event.reply, "cost_usd": event.cost_usd, "error": event.error}
                    self.judged.append(LogEvent(EventType.LLM_CALL, datetime.min, event.test_id, data))
                case _:
                    pass

    def reply(self, turn: int, message: str) -> AgentReplied | None:
        """The reply at a turn, if there is one.

        Raises:
            UsageError: it is one to another message, so that these are not the tests that were interrupted.
        """
        known = self._agent.get(turn)
        if known is not None and known.prompt and known.prompt[-1].content != message:
            raise UsageError(f"the run to go on with said something else at turn {turn}: these are other tests")
        return known
