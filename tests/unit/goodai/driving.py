"""Agents, datasets and a driver for tests of the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from memreplay.goodai.actions import AgentReply, Say, Step, TestEnded
from memreplay.goodai.dataset import RunConfig
from memreplay.goodai.interface import DatasetInterface, TestExample, WaitCreator
from memreplay.goodai.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.goodai.master_log import LogEvent
from memreplay.goodai.scheduler import Scheduler

Agent = Callable[[Say], str]


@dataclass
class Run:
    """What came of a run: its steps, the log events that were handed on, and what the agent was asked."""

    steps: list[Step]
    events: list[LogEvent]
    asked: list[str]
    scheduler: Scheduler

    def of(self, kind: type[Step]) -> list[Step]:
        """The steps of one kind."""
        return [step for step in self.steps if isinstance(step, kind)]

    @property
    def ended(self) -> dict[str, TestEnded]:
        """How each test ended."""
        return {step.test_id: step for step in self.steps if isinstance(step, TestEnded)}


def noting(say: Say) -> str:
    """An agent that takes note."""
    return "Noted."


def run(
    tests: Iterable[TestExample],
    agent: Agent = noting,
    config: RunConfig | None = None,
    model: LanguageModel | None = None,
    known: Iterable[LogEvent] = (),
    questions: int | None = None,
) -> Run:
    """Run tests to their end, or until the agent would have to answer one message more than ``questions``."""
    events: list[LogEvent] = []
    scheduler = Scheduler(tests, config, model, known, events.append)
    result = Run([], events, [], scheduler)
    steps = scheduler.steps()
    reply: AgentReply | None = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration:
            return result
        result.steps.append(step)
        reply = None
        if isinstance(step, Say):
            if step.known is None:
                if questions is not None and len(result.asked) >= questions:
                    return result
                result.asked.append(step.message)
            reply = step.known or AgentReply(agent(step))


def judge(reply: str, cost: float | None = None) -> LanguageModel:
    """A model that always says the same."""

    def ask(request: LLMRequest) -> LLMReply:
        return LLMReply(reply, cost)

    return ask


@dataclass
class Lines(DatasetInterface):
    """Tests of given lines; the last is a question whose answer must contain ``expected``."""

    name: str = "Lines"
    description: str = "Some lines."
    memory_span: int = 400
    lines: tuple[str, ...] = ("The code is 7.", "What is the code?")
    waits: tuple[tuple[int, int, float], ...] = ()
    can_be_interleaved: bool = True
    expected: str = "7"
    made: list[TestExample] = field(default_factory=list)

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        waits = [
            WaitCreator.create_wait(tokens or None, timedelta(seconds=seconds) or None, percent or None)
            for tokens, seconds, percent in self.waits
        ]
        return [
            TestExample(
                dataset_generator=self,
                script=list(self.lines),
                is_question=[False] * (len(self.lines) - 1) + [True],
                waits=list(waits),
                expected_responses=[self.expected],
                can_be_interleaved=self.can_be_interleaved,
            )
            for _ in range(num_examples)
        ]

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: list[str]
    ) -> tuple[int, int, list[str]]:
        return int(expected_answers[0] in responses[-1]), 1, ["Looked for the expected text."]
