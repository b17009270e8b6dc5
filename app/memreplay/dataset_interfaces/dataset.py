"""The interface that a dataset implements."""

from __future__ import annotations

import functools
import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from memreplay.dataset_interfaces.evaluation import judge_answers
from memreplay.dataset_interfaces.examples import CallBackTestExample, Evaluation, TestExample
from memreplay.dataset_interfaces.language_model import DEFAULT_MODEL, LanguageModel, LLMRequest, reply_text
from memreplay.dataset_interfaces.master_log import MasterLog
from memreplay.errors import DatasetError
from memreplay.files import read_text

if TYPE_CHECKING:
    from memreplay.dataset_interfaces.examples import TestExample

_NOT_IN_A_KEY = re.compile(r"[\W_]+")

SIMULATED_START = datetime(2024, 1, 1, 9, 0)
"""When the simulated clock begins, unless a run says otherwise."""


@dataclass(frozen=True)
class RunConfig:
    """What ``config`` in a ``config.yml`` says, and how to run.

    ``incompatibilities`` are groups of datasets of which no two may overlap. ``isolated`` runs each test alone,
    with a fresh memory. ``seed`` decides the filler; ``start`` is the first moment of the simulated clock.
    """

    run_name: str = "memreplay"
    debug: bool = False
    incompatibilities: tuple[frozenset[str], ...] = field(default=())
    isolated: bool = False
    seed: int = 0
    start: datetime = SIMULATED_START


def dataset_key(name: str) -> str:
    """A dataset's name as it is compared: "Name List", "NameList" and "name_list" are one dataset."""
    return _NOT_IN_A_KEY.sub("", name).casefold()


DEFAULT_EXAMPLES = 3
"""How many examples a dataset makes when it is not told how many."""


def reproducible(generate: Callable[..., list[TestExample]]) -> Callable[..., list[TestExample]]:
    """Wrap a dataset's own ``generate_examples``, whether it takes a count or not.

    ``random`` is seeded with the dataset's seed before the outermost call, so that generating twice gives the same.
    Examples that have no id get their place as one: "0", "1", …
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
        for place, example in enumerate(examples):
            example.identify(self, example.example_id or str(place))
        return examples

    return generate_examples


class RunView(Protocol):
    """What a callback may look at besides its test: the log of the run."""

    @property
    def master_log(self) -> MasterLog:
        """What has happened so far."""
        ...


@dataclass
class DatasetInterface(ABC):
    """A family of tests. Implement ``generate_examples`` and ``evaluate_correct``.

    Subclasses are dataclasses that give ``name`` and ``description`` defaults; their own fields are the arguments
    that a ``config.yml`` can set. ``memory_span`` is in tokens (0 where nobody has set one: then percentages of it
    are no wait), ``max_message_size`` is the most tokens of one filler message while a test of the dataset runs.
    ``random`` is seeded from ``seed`` before examples are generated. ``cost_callback`` is told US dollars.
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
        """Make generation reproducible, whoever writes it."""
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("generate_examples")
        if own is not None and not getattr(own, "__isabstractmethod__", False):
            cls.generate_examples = reproducible(own)  # type: ignore[method-assign]

    @abstractmethod
    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Make the tests: as many as asked for, three without a count."""

    @abstractmethod
    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: Any
    ) -> tuple[float, float, list[str]]:
        """Score one test: its questions, the agent's responses, ``expected_responses`` of the example.

        Returns the score, the most that it could have been, and reasons in words. Raises ``Ungraded`` where it
        cannot be judged.
        """

    def evaluate_correct_gpt(
        self, questions: Sequence[str], provided_answer: Sequence[str], expected_answer: Sequence[Any]
    ) -> Evaluation:
        """Score one test by a model that answers a checklist for each question; one point a question.

        Raises ``Ungraded`` where its reply is not the checklist that was asked for.
        """
        return judge_answers(self.ask_llm, questions, provided_answer, expected_answer)

    def evaluation_fn(self) -> Callable[[list[str], list[str], Any], tuple[float, float, list[str]]]:
        """``evaluate_correct``, as it is."""
        return self.evaluate_correct

    def continual_evaluation_callback(
        self, scheduler: RunView, example: TestExample, task_log: list[str]
    ) -> tuple[float, float, list[str], bool]:
        """Score a test while it runs, in lieu of ``evaluate_correct``.

        Called after every exchange of the run since the test's question. ``task_log`` has two entries an
        exchange, ``"Test (time): …"`` and ``"Agent (time): …"``, from the beginning of the run. Returns the score,
        its maximum, reasons, and whether the callback is done; one of its ways must set
        ``example.finished = True``. Only what the last call returned counts.
        """
        raise NotImplementedError(f"The dataset {self.name} has no callback: use evaluate_correct")

    @property
    def evaluates_continually(self) -> bool:
        """Whether tests are scored by a callback: where the dataset has one, that is in lieu of the other."""
        own = type(self).continual_evaluation_callback is not DatasetInterface.continual_evaluation_callback
        return own or self.uses_callback

    def create_question(self, example: TestExample, statement_times: list[datetime], time_now: datetime) -> str:
        """The question of a temporal test, when it is due.

        ``statement_times`` are the times of the script's lines; all times are of the simulated clock.
        """
        raise NotImplementedError(f"The dataset {self.name} has no temporal questions")

    def create_example(self, **kwargs: Any) -> TestExample:
        """A test of this dataset from the fields of a definition."""
        example_class = CallBackTestExample if kwargs.get("uses_callback") else TestExample
        return example_class(dataset_generator=self, **kwargs)

    def use_language_model(self, model: LanguageModel | None) -> None:
        """Set who answers ``ask_llm``: whoever runs the tests does this."""
        self.__dict__["_language_model"] = model

    def ask_llm(
        self,
        context: Sequence[Mapping[str, str]],
        model: str = DEFAULT_MODEL,
        temperature: float = 0,
        max_tokens: int = 256,
        **kwargs: Any,
    ) -> str:
        """The reply of a model to a prompt; its cost counts as cost of the benchmark, not of the agent.

        Raises ``Ungraded`` where no model is set or the call fails.
        """
        request = LLMRequest(tuple(context), model, temperature, max_tokens, kwargs)
        return reply_text(self.__dict__.get("_language_model"), request, self.cost_callback)

    def count_questions(self, is_question: Sequence[bool]) -> int:
        """How many lines are questions."""
        return sum(map(bool, is_question))

    @property
    def data_path(self) -> Path:
        """The folder ``data`` beside the file that defines the dataset, or in it one of the dataset's name."""
        shared = Path(inspect.getfile(type(self))).resolve().parent / "data"
        own = shared / self.name
        return own if own.is_dir() else shared

    def load_file(self, path_or_name: str | Path) -> str:
        """The text of a file: a whole path, or a name in :attr:`data_path`."""
        path = self.data_path / path_or_name
        try:
            return read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(path, "", f"cannot be read ({error})", f"a data file of {self.name}") from None

    def load_json(self, path_or_name: str | Path, **kwargs: Any) -> Any:
        """The JSON value of such a file; ``kwargs`` are those of ``json.loads``."""
        try:
            return json.loads(self.load_file(path_or_name), **kwargs)
        except ValueError as error:
            raise DatasetError(self.data_path / path_or_name, "", f"is not JSON ({error})", "JSON") from None
