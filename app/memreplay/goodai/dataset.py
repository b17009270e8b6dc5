"""Datasets of tests, which authors subclass: with a script, a callback, or messages that depend on replies."""

from __future__ import annotations

import functools
import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Protocol

from memreplay.errors import DatasetError, UsageError
from memreplay.files import read_text
from memreplay.goodai.actions import (
    SendAndRegisterAction,
    SendMessageAction,
    TestAction,
    Wait,
    WaitAction,
    WaitCreator,
    even_waits,
)
from memreplay.goodai.evaluation import Evaluation, EvaluationFn, normalised_evaluation
from memreplay.goodai.language_model import DEFAULT_MODEL, LanguageModel, LLMRequest, judge_answers, reply_to
from memreplay.goodai.master_log import MasterLog, count_tokens

_NOT_IN_A_KEY = re.compile(r"[\W_]+")

SIMULATED_START = datetime(2024, 1, 1, 9, 0)
"""The default start of the simulated clock."""


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run: ``config`` in a ``config.yml``, and how to schedule the tests.

    ``incompatibilities`` are groups of datasets whose tests must not overlap. ``isolated`` runs each test alone,
    with a fresh memory. ``seed`` determines the filler; ``start`` is the initial time of the simulated clock.
    """

    run_name: str = "memreplay"
    debug: bool = False
    incompatibilities: tuple[frozenset[str], ...] = field(default=())
    isolated: bool = False
    seed: int = 0
    start: datetime = SIMULATED_START


def dataset_key(name: str) -> str:
    """Normalise a dataset's name: "Name List", "NameList" and "name_list" are the same dataset."""
    return _NOT_IN_A_KEY.sub("", name).casefold()


DEFAULT_EXAMPLES = 3
"""The default number of examples of a dataset."""


def reproducible(generate: Callable[..., list[TestExample]]) -> Callable[..., list[TestExample]]:
    """Wrap a subclass's ``generate_examples``, which may or may not take a count.

    Seeds ``random`` with the dataset's seed before the outermost call, so that repeated calls return equal
    examples. Examples without an id get their index: "0", "1", …
    """
    takes_count = len(inspect.signature(generate).parameters) > 1

    @functools.wraps(generate)
    def generate_examples(
        self: DatasetInterface, num_examples: int | None = None, **options: Any
    ) -> list[TestExample]:
        arguments = (DEFAULT_EXAMPLES if num_examples is None else num_examples,) if takes_count else ()
        if self.__dict__.get("_is_generating"):
            return generate(self, *arguments, **options)
        self.random = Random(self.seed)
        self.__dict__["_is_generating"] = True
        try:
            examples = list(generate(self, *arguments, **options))[:num_examples]
        finally:
            del self.__dict__["_is_generating"]
        for index, example in enumerate(examples):
            example.identify(self, example.example_id or str(index))
        return examples

    return generate_examples


class RunView(Protocol):
    """The part of a run that a callback can access besides its test: the log."""

    @property
    def master_log(self) -> MasterLog:
        """Return the events so far."""
        ...


@dataclass
class DatasetInterface(ABC):
    """A family of tests. Implement ``generate_examples`` and ``evaluate_correct``.

    Subclasses are dataclasses with defaults for ``name`` and ``description``; their additional fields are arguments
    that a ``config.yml`` can set. ``memory_span`` is in tokens; if it is 0, percentages of it cause no wait.
    ``max_message_size`` limits the tokens of a filler message while a test of the dataset runs. ``random`` is
    seeded with ``seed`` before examples are generated. ``cost_callback`` receives US dollars.
    """

    name: str
    description: str
    question: str = ""
    memory_span: int = 0
    seed: int = 0
    cost_callback: Callable[[float], None] | None = None
    uses_callback: bool = False
    reset_message: str = ""
    max_message_size: int = 1024
    random: Random = field(default_factory=lambda: Random(0))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the subclass's ``generate_examples`` reproducible."""
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("generate_examples")
        if own is not None and not getattr(own, "__isabstractmethod__", False):
            cls.generate_examples = reproducible(own)  # type: ignore[method-assign]

    @abstractmethod
    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Generate the requested number of tests, by default three."""

    @abstractmethod
    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: Any
    ) -> tuple[float, float, list[str]]:
        """Score one test by its questions, the agent's responses and the example's ``expected_responses``.

        Returns the score, the maximum score and the reasons. Raises ``Ungraded`` if the test cannot be graded.
        """

    def evaluate_correct_gpt(
        self, questions: Sequence[str], provided_answer: Sequence[str], expected_answer: Sequence[Any]
    ) -> Evaluation:
        """Score one test with a model that fills in a checklist for each question; one point per question.

        Raises ``Ungraded`` if the reply is not the requested checklist.
        """
        return judge_answers(self.ask_llm, questions, provided_answer, expected_answer)

    def evaluation_fn(self) -> Callable[[list[str], list[str], Any], tuple[float, float, list[str]]]:
        """Return the evaluation function, as GoodAI's interface does."""
        return self.evaluate_correct

    def continual_evaluation_callback(
        self, scheduler: RunView, example: TestExample, task_log: list[str]
    ) -> tuple[float, float, list[str], bool]:
        """Score a test while it runs, instead of ``evaluate_correct``.

        Called after every exchange of the run from the test's question on. ``task_log`` has two entries per
        exchange, ``"Test (time): …"`` and ``"Agent (time): …"``, from the beginning of the run. Returns the score,
        the maximum score, the reasons, and whether the callback is done. To end the test, return True or set
        ``example.finished = True``. Only the result of the last call counts.
        """
        raise NotImplementedError(f"The dataset {self.name} has no callback: use evaluate_correct")

    @property
    def evaluates_continually(self) -> bool:
        """Return whether a callback scores the tests, instead of ``evaluate_correct``."""
        own = type(self).continual_evaluation_callback is not DatasetInterface.continual_evaluation_callback
        return own or self.uses_callback

    def create_question(self, example: TestExample, statement_times: list[datetime], time_now: datetime) -> str:
        """Create the question of a temporal test when it is due.

        ``statement_times`` are the times of the script's lines. All times are of the simulated clock.
        """
        raise NotImplementedError(f"The dataset {self.name} has no temporal questions")

    def create_example(self, **kwargs: Any) -> TestExample:
        """Create a test from the fields of a definition."""
        example_class = CallBackTestExample if kwargs.get("uses_callback") else TestExample
        return example_class(dataset_generator=self, **kwargs)

    def use_language_model(self, model: LanguageModel | None) -> None:
        """Set the model that ``ask_llm`` calls. The runner of the tests does this."""
        self.__dict__["_language_model"] = model

    def ask_llm(
        self,
        context: Sequence[Mapping[str, str]],
        model: str = DEFAULT_MODEL,
        temperature: float = 0,
        max_tokens: int = 256,
        **kwargs: Any,
    ) -> str:
        """Call a model. The cost is part of the benchmark's cost, not the agent's.

        Raises ``Ungraded`` if no model is set or the call fails.
        """
        return self.llm_reply(LLMRequest(tuple(context), model, temperature, max_tokens, kwargs))[0]

    def llm_reply(self, request: LLMRequest) -> tuple[str, bool]:
        """Call a model; returns its text, and whether that was given to an earlier run."""
        return reply_to(self.__dict__.get("_language_model"), request, self.cost_callback)

    def count_questions(self, is_question: Sequence[bool]) -> int:
        """Return the number of questions. Datasets that were written for GoodAI's benchmark call it."""
        return sum(map(bool, is_question))

    @property
    def data_path(self) -> Path:
        """Return the folder ``data`` next to the file of the dataset, or its subfolder with the dataset's name."""
        shared = Path(inspect.getfile(type(self))).resolve().parent / "data"
        own = shared / self.name
        return own if own.is_dir() else shared

    def load_file(self, path_or_name: str | Path) -> str:
        """Read a text file: an absolute path, or a name in :attr:`data_path`."""
        path = self.data_path / path_or_name
        try:
            return read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(path, "", f"cannot be read ({error})", f"a data file of {self.name}") from None

    def load_json(self, path_or_name: str | Path, **kwargs: Any) -> Any:
        """Read a JSON file like :meth:`load_file`; ``kwargs`` are passed to ``json.loads``."""
        try:
            return json.loads(self.load_file(path_or_name), **kwargs)
        except ValueError as error:
            raise DatasetError(self.data_path / path_or_name, "", f"is not JSON ({error})", "JSON") from None


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
        """Return a message for the end of the test; empty for none."""
        return self.dataset_generator.reset_message

    @property
    def unique_id(self) -> str:
        """Return the test's id in logs: ``"{dataset name} - {example id}"``."""
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
        """Yield the actions of the script: each message, followed by its wait."""
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
        """Return the next action; None if there is none left, and then the test is finished.

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
        """Return the content of a definition file."""
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
