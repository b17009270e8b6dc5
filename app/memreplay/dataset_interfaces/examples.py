"""One test: its script, expected answers and waits, and the actions it requests from the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from memreplay.dataset_interfaces.evaluation import Evaluation, EvaluationFn, normalised_evaluation
from memreplay.dataset_interfaces.filler import count_tokens
from memreplay.errors import UsageError

if TYPE_CHECKING:
    from memreplay.dataset_interfaces.dataset import DatasetInterface


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
        """A wait without the arguments that are None."""
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


@dataclass
class TestExample:
    """A test with a fixed script.

    ``is_question`` and ``waits`` have an entry per line of ``script``; in a temporal test they have one more, for
    the question that ``create_question`` creates during the run. ``expected_responses`` is passed to the dataset's
    ``evaluate_correct``. Without ``waits`` the lines are spread evenly over 90 % of the memory span. With
    ``uses_callback`` (always set if the dataset has a callback) the test runs until the callback ends it.
    ``random`` is seeded with ``unique_id``. ``start_token`` is the number of tokens in the run when the test began.
    """

    __test__ = False

    dataset_generator: DatasetInterface = None  # type: ignore[assignment]  # generate_examples fills it in
    script: list[str] = field(default_factory=list)
    is_question: list[bool] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    expected_responses: Any = None
    can_be_interleaved: bool = True
    uses_callback: bool = False
    is_temporal: bool = False
    example_id: str = ""
    number_of_questions: int = 0
    finished: bool = False
    random: Random = field(default_factory=Random)
    start_token: int = 0

    def __post_init__(self) -> None:
        """Check the script, set default waits and seed ``random``."""
        self.default_waits()
        self._actions = self.action_iter()
        if self.dataset_generator is not None:
            self.identify(self.dataset_generator, self.example_id)

    @property
    def dataset_name(self) -> str:
        return self.dataset_generator.name

    @property
    def description(self) -> str:
        return self.dataset_generator.description

    @property
    def reset_message(self) -> str:
        """A message for the end of the test; empty for none."""
        return self.dataset_generator.reset_message

    @property
    def unique_id(self) -> str:
        """The test's id in logs: ``"{dataset name} - {example id}"``."""
        return f"{self.dataset_name} - {self.example_id}"

    @property
    def evaluation_fn(self) -> EvaluationFn:
        """Evaluates the test, with the score normalised to 0..1."""

        def evaluate(questions: list[str], responses: list[str], expected_answers: Any) -> Evaluation:
            score, maximum, reasons = self.dataset_generator.evaluate_correct(
                questions, responses, expected_answers
            )
            return normalised_evaluation(score, maximum, reasons)

        return evaluate

    def identify(self, dataset: DatasetInterface, example_id: str) -> None:
        """Set the dataset and id, before the test begins."""
        self.dataset_generator, self.example_id = dataset, example_id
        self.uses_callback = self.uses_callback or dataset.evaluates_continually
        self.random = Random(self.unique_id)

    def action_iter(self) -> Iterator[TestAction]:
        """The actions of the script: each message, followed by its wait."""
        for message, wait, is_question in zip(self.script, self.waits, self.is_question, strict=False):
            yield self._message(message, is_question)
            if wait:
                yield WaitAction(**wait)
        if self.is_temporal and len(self.is_question) == len(self.script) + 1:
            yield self._message("", self.is_question[-1])

    def _message(self, message: str, is_question: bool) -> SendMessageAction:
        kind = SendAndRegisterAction if self.uses_callback and is_question else SendMessageAction
        return kind(message, is_question=is_question)

    def step(self) -> TestAction | None:
        """The next action; None if there is none left, and then the test is finished.

        Only the callback finishes a test that has one: after the script the test waits for one more token each
        time.
        """
        action = next(self._actions, None)
        if action is None and self.uses_callback:
            return WaitAction(tokens=1)
        if action is None:
            self.finished = True
        return action

    def to_dict(self) -> dict[str, Any]:
        """The content of a definition file."""
        return {
            "script": self.script,
            "is_question": self.is_question,
            "waits": [WaitCreator.serialise(wait) for wait in self.waits],
            "expected_responses": self.expected_responses,
            "can_be_interleaved": self.can_be_interleaved,
            "is_temporal": self.is_temporal,
            "uses_callback": self.uses_callback,
        }

    def default_waits(self) -> None:
        """Spread the lines evenly over the memory span, unless there are waits already.

        Call it after changing the number of lines of ``script`` and ``is_question`` and clearing ``waits``.

        Raises:
            UsageError: script, ``is_question`` and waits do not match, or the script exceeds the memory span.
        """
        self.number_of_questions = sum(map(bool, self.is_question))
        lines = len(self.is_question)
        expected = {len(self.script), len(self.script) + 1} if self.is_temporal else {len(self.script)}
        if lines not in expected:
            raise UsageError(f"A test has {len(self.script)} lines and {lines} entries in is_question")
        if not self.number_of_questions:
            raise UsageError("A test asks no question: no entry of is_question is true")
        self.waits = self.waits or even_waits(lines)
        if len(self.waits) != lines:
            raise UsageError(f"A test has {lines} lines and {len(self.waits)} waits")
        span = self.dataset_generator.memory_span if self.dataset_generator is not None else 0
        tokens = sum(map(count_tokens, self.script)) if span else 0
        if span and tokens >= span:
            raise UsageError(f"A test's script has {tokens} tokens: too long for a memory span of {span}")


@dataclass
class CallBackTestExample(TestExample):
    """A test that is scored by a callback and depends on what is said after its script."""

    def __post_init__(self) -> None:
        """Set ``uses_callback``: nothing else could end the test."""
        self.uses_callback = True
        super().__post_init__()
