"""What a run of tests is played with: the model behind the agent, the tests, and who judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.answering.model import AnswerRequest, Reply
from app.dataset_interfaces.definitions import Benchmark
from app.dataset_interfaces.language_model import LLMReply, LLMRequest


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
