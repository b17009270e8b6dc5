"""One test: its script, expected answers, waits, and the actions it asks of the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from memreplay.dataset_interfaces.filler import count_tokens
from memreplay.errors import UsageError

if TYPE_CHECKING:
    from memreplay.dataset_interfaces.dataset import DatasetInterface


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


Wait = dict[str, Any]
"""Arguments of a ``WaitAction``; empty for no pause."""

_LAST_PAUSE_ENDS_AT = 90.0
"""Percent of the memory span at which the last line of a script is due, where its waits are not given."""


class WaitCreator:
    """Builds, writes and reads the waits of an example."""

    @classmethod
    def create_wait(
        cls, tokens: int | None = None, time: timedelta | None = None, percentage_finished: float | None = None
    ) -> Wait:
        """A pause; what is None is left out."""
        given = {"tokens": tokens, "time": time, "percentage_finished": percentage_finished}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def serialise(cls, w_dict: Mapping[str, Any]) -> Wait:
        """As JSON holds it: ``time`` in seconds, whole days included."""
        wait = dict(w_dict)
        if "time" in wait:
            wait["time"] = _seconds(wait["time"])
        return wait

    @classmethod
    def unserialise(cls, w_dict: Mapping[str, Any]) -> Wait:
        """Back from JSON."""
        wait = dict(w_dict)
        if "time" in wait:
            wait["time"] = timedelta(seconds=wait["time"])
        return wait


def even_waits(lines: int) -> list[Wait]:
    """Line *i* of *n* waits until ``(i + 1) · 90 / (n - 1)`` percent of the memory span; the last has no wait."""
    if lines < 2:
        return [{} for _ in range(lines)]
    share = _LAST_PAUSE_ENDS_AT / (lines - 1)
    return [{"percentage_finished": (line + 1) * share} for line in range(lines - 1)] + [{}]


def _seconds(time: timedelta) -> int | float:
    seconds = time.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


class Ungraded(Exception):
    """Raised where a test cannot be graded; ``str(error)`` says why in one sentence.

    A dataset lets it pass, or raises it itself; the scheduler ends the test without a score.
    """


Evaluation = tuple[float, float, list[str]]
"""The score, the most that it could have been, and why."""

EvaluationFn = Callable[[list[str], list[str], Any], Evaluation]
"""Questions, responses and expected answers of one test to its evaluation."""


@dataclass
class TestExample:
    """A test with a fixed script.

    ``is_question`` and ``waits`` have an entry a line; a temporal test has one more than ``script``, for the
    question that ``create_question`` makes while the test runs. ``expected_responses`` is what the dataset's
    ``evaluate_correct`` understands. Without ``waits`` the lines are spread evenly over 90 % of the memory span.
    With ``uses_callback``, as wherever the dataset has a callback, it goes on until the callback ends it.
    ``random`` is seeded with ``unique_id``; ``start_token`` is what had been said in the run when the test began.
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
        """Check the script, spread its lines and seed ``random``."""
        self.number_of_questions = sum(map(bool, self.is_question))
        self._check_script()
        self._actions = self.action_iter()
        if self.dataset_generator is not None:
            self.identify(self.dataset_generator, self.example_id)

    @property
    def dataset_name(self) -> str:
        """The dataset's name."""
        return self.dataset_generator.name

    @property
    def description(self) -> str:
        """What the dataset tests."""
        return self.dataset_generator.description

    @property
    def reset_message(self) -> str:
        """What is said when the test is over; empty for nothing."""
        return self.dataset_generator.reset_message

    @property
    def unique_id(self) -> str:
        """The test's name in logs: ``"{dataset name} - {example id}"``."""
        return f"{self.dataset_name} - {self.example_id}"

    @property
    def evaluation_fn(self) -> EvaluationFn:
        """Evaluates the test; the score is normalised to 0..1 and the maximum is 1."""

        def evaluate(questions: list[str], responses: list[str], expected_answers: Any) -> Evaluation:
            score, maximum, reasons = self.dataset_generator.evaluate_correct(
                questions, responses, expected_answers
            )
            return normalised(score, maximum, reasons)

        return evaluate

    def identify(self, dataset: DatasetInterface, example_id: str) -> None:
        """Give the test its dataset and id, before it begins."""
        self.dataset_generator, self.example_id = dataset, example_id
        self.uses_callback = self.uses_callback or dataset.evaluates_continually
        self.random = Random(self.unique_id)

    def action_iter(self) -> Iterator[TestAction]:
        """The script as actions: each message, then its wait where there is one."""
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
        """The next action; None when there is none left, and then the test is finished.

        Only its callback finishes a test that has one: after the script it waits for one more token, and again.
        """
        action = next(self._actions, None)
        if action is None and self.uses_callback:
            return WaitAction(tokens=1)
        if action is None:
            self.finished = True
        return action

    def to_dict(self) -> dict[str, Any]:
        """As a definition file holds it."""
        return {
            "script": self.script,
            "is_question": self.is_question,
            "waits": [WaitCreator.serialise(wait) for wait in self.waits],
            "expected_responses": self.expected_responses,
            "can_be_interleaved": self.can_be_interleaved,
            "is_temporal": self.is_temporal,
            "uses_callback": self.uses_callback,
        }

    def _check_script(self) -> None:
        lines = len(self.is_question)
        wanted = {len(self.script), len(self.script) + 1} if self.is_temporal else {len(self.script)}
        if lines not in wanted:
            raise UsageError(f"A test has {len(self.script)} lines and {lines} entries in is_question")
        if not self.number_of_questions:
            raise UsageError("A test asks no question: no entry of is_question is true")
        if not self.waits:
            self.waits = even_waits(lines)
        if len(self.waits) != lines:
            raise UsageError(f"A test has {lines} lines and {len(self.waits)} waits")
        span = self.dataset_generator.memory_span if self.dataset_generator is not None else 0
        said = sum(map(count_tokens, self.script)) if span else 0
        if span and said >= span:
            raise UsageError(f"A test's script has {said} tokens: too long for a memory span of {span}")


@dataclass
class CallBackTestExample(TestExample):
    """A test whose score depends on what is said after its script, whatever its dataset says."""

    def __post_init__(self) -> None:
        """Whatever was given, it uses a callback: nothing else could end it."""
        self.uses_callback = True
        super().__post_init__()


def normalised(score: float, maximum: float, reasons: list[str]) -> Evaluation:
    """The score as a share of its maximum."""
    if maximum <= 0:
        raise Ungraded("The dataset gives no points for this test: its maximum is 0")
    return score / maximum, 1, list(reasons)
