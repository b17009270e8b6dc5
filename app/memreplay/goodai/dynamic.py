"""Tests without a fixed script: each message may depend on the agent's earlier replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from memreplay.errors import UsageError
from memreplay.goodai.actions import SendMessageAction, TestAction, WaitAction
from memreplay.goodai.dataset import DatasetInterface, TestExample
from memreplay.goodai.evaluation import Evaluation, EvaluationFn, normalised_evaluation
from memreplay.goodai.language_model import DEFAULT_MODEL


@dataclass
class DynamicExample(TestExample, ABC):
    """A test that generates its messages while it runs. Set ``max_score`` and implement ``action_iter``.

    ``action`` is the last message sent; it has its ``reply`` when the generator resumes. The test itself updates
    ``score`` and ``reasoning``; the result is ``score / max_score``. ``expected_responses`` is only for reports.
    """

    expected_responses: list[str] = field(default_factory=list)
    score: float = 0
    max_score: float = 0
    reasoning: list[str] = field(default_factory=list)
    action: SendMessageAction = field(default_factory=lambda: SendMessageAction(""))

    wait: ClassVar[type[WaitAction]] = WaitAction

    def __post_init__(self) -> None:
        """Check ``max_score``; a class that is not a dataclass sets it in its body."""
        super().__post_init__()
        self.max_score = self.max_score or type(self).max_score
        if self.max_score <= 0:
            raise UsageError(f"{type(self).__name__} needs a max_score above 0")

    def default_waits(self) -> None:
        """There is no script to spread."""

    @property
    def evaluation_fn(self) -> EvaluationFn:
        """Returns the test's own score."""
        return self.evaluate

    def evaluate(self, *_arguments: Any, **_options: Any) -> Evaluation:
        """Return ``score / max_score``, 1, and the reasoning."""
        return normalised_evaluation(self.score, self.max_score, self.reasoning)

    @abstractmethod
    def action_iter(self) -> Iterator[TestAction]:
        """Yield the actions of the test, and update ``score`` along the way."""

    def say(self, message: str, question: bool = False) -> SendMessageAction:
        """Create a message to yield. A question is added to the script, and its reply to the test's responses."""
        self.action = SendMessageAction(message=message, is_question=question)
        if question:
            self.script.append(message)
        return self.action

    def ask_llm(self, context: Sequence[Mapping[str, str]], model: str = DEFAULT_MODEL, **kwargs: Any) -> str:
        """Call a model. A resumed run takes the reply from the log and does not pay twice."""
        return self.dataset_generator.ask_llm(context, model, **kwargs)


@dataclass
class DynamicDataset(DatasetInterface, ABC):
    """A dataset of dynamic tests: set ``example_cls``."""

    example_cls: type[DynamicExample] | None = None

    @property
    def evaluates_continually(self) -> bool:
        """Never: each test evaluates itself, and ends with its generator."""
        return False

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Create the requested number of tests."""
        return [self.create_example() for _ in range(num_examples)]

    def create_example(self, **kwargs: Any) -> DynamicExample:
        """Create an instance of ``example_cls``."""
        if self.example_cls is None:
            raise UsageError(f"The dataset {self.name} needs an example_cls")
        return self.example_cls(dataset_generator=self, **kwargs)

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: Any
    ) -> tuple[float, float, list[str]]:
        """Not used: each test evaluates itself."""
        raise NotImplementedError("A dynamic test evaluates itself")
