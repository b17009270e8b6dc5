"""Read and write test definitions: ``config.yml`` and ``{dataset}/{id}.def.json``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.json_files import read_json
from memreplay.conversations.validation_errors import Place, validated
from memreplay.errors import DatasetError, UsageError
from memreplay.files import read_text, write_whole
from memreplay.goodai.actions import WaitCreator
from memreplay.goodai.dataset import DatasetInterface, RunConfig, TestExample, dataset_key
from memreplay.goodai.evaluation import Ungraded
from memreplay.goodai.loading import DatasetClass, create_dataset, shipped_dataset, unknown_arguments


@dataclass
class UngradedDataset(DatasetInterface):
    """Replaces a dataset class that is not available."""

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """Return none: only defined tests can be run."""
        return []

    def create_example(self, **kwargs: Any) -> TestExample:
        """Create a test without a callback, as there is none."""
        return super().create_example(**{**kwargs, "uses_callback": False})

    def evaluate_correct(
        self, questions: list[str], responses: list[str], expected_answers: Any
    ) -> tuple[float, float, list[str]]:
        """Never possible without the class."""
        raise Ungraded(f"The class of the dataset {self.name} is not available, so its answers cannot be graded")


CONFIG_FILE = "config.yml"
DEFINITION = ".def.json"
"""The suffix of a definition file."""
_NOT_FOR_THE_CLASS = {"dataset_examples"}


class _Wait(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: Annotated[int, Field(ge=0)] | None = None
    time: Annotated[float, Field(ge=0)] | None = None
    percentage_finished: Annotated[float, Field(ge=0)] | None = None


class _Definition(BaseModel):
    """The content of a definition file. Ignores keys of later versions."""

    script: list[str]
    is_question: list[bool]
    waits: list[_Wait] = Field(default_factory=list)
    expected_responses: Any
    can_be_interleaved: bool = True
    is_temporal: bool = False
    uses_callback: bool = False


class _DatasetEntry(BaseModel):
    name: str
    args: dict[str, Any] = Field(default_factory=dict)


class _Datasets(BaseModel):
    args: dict[str, Any] = Field(default_factory=dict)
    datasets: list[_DatasetEntry] = Field(default_factory=list)


class _RunSettings(BaseModel):
    run_name: str = "memreplay"
    debug: bool = False
    incompatibilities: list[list[str]] = Field(default_factory=list)


class _ConfigFile(BaseModel):
    config: _RunSettings = Field(default_factory=_RunSettings)
    datasets: _Datasets = Field(default_factory=_Datasets)


@dataclass(frozen=True)
class DatasetSettings:
    """A dataset in a configuration: its name and its arguments, including those for all datasets."""

    name: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Benchmark:
    """A set of tests and how to run them. ``notes`` are sentences about what differs from the files."""

    config: RunConfig
    tests: tuple[TestExample, ...]
    notes: tuple[str, ...] = ()


ClassFinder = Callable[[str], DatasetClass | None]
"""Maps a dataset's name to its class, or None."""


def is_definition_folder(folder: Path) -> bool:
    return next(folder.glob(f"*/*{DEFINITION}"), None) is not None


def read_config(path: Path) -> tuple[RunConfig, tuple[DatasetSettings, ...]]:
    """Read a ``config.yml`` as plain data: YAML tags are not executed. Raises :class:`DatasetError`."""
    try:
        data = yaml.safe_load(read_text(path)) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(path, "", f"cannot be read ({error})", "a configuration in YAML") from None
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise DatasetError(path, "", f"is not valid YAML ({problem})", "a configuration in YAML") from None
    except RecursionError:
        raise DatasetError(path, "", "is nested too deeply", "a configuration in YAML") from None
    parsed = validated(_ConfigFile, data, Place(path))
    groups = tuple(frozenset(group) for group in parsed.config.incompatibilities)
    config = RunConfig(parsed.config.run_name, parsed.config.debug, groups)
    shared = parsed.datasets.args
    return config, tuple(
        DatasetSettings(entry.name, {**shared, **entry.args}) for entry in parsed.datasets.datasets
    )


def load_definitions(folder: Path, find_class: ClassFinder = shipped_dataset) -> Benchmark:
    """Load all tests of a folder. Executes no Python except that of the dataset classes.

    If a dataset's class is not found, its tests are loaded but will be ungraded, which a note reports; tests of it
    that have no script cannot be run at all.
    """
    config = RunConfig(run_name=folder.name)
    settings: tuple[DatasetSettings, ...] = ()
    if (folder / CONFIG_FILE).is_file():
        config, settings = read_config(folder / CONFIG_FILE)
    notes: list[str] = []
    tests: list[TestExample] = []
    for dataset_folder in sorted(path.parent for path in _first_definitions(folder)):
        dataset, dataset_notes = _dataset(dataset_folder.name, settings, find_class)
        notes += dataset_notes
        for path in sorted(dataset_folder.glob(f"*{DEFINITION}")):
            definition = validated(_Definition, read_json(path), Place(path))
            if definition.script or not isinstance(dataset, UngradedDataset):
                tests.append(_example(dataset, definition, path))
            else:
                notes.append(f"The test {dataset.name} - {_id(path)} has no script, and its class is not available")
    if not tests:
        raise DatasetError(folder, "", "contains no test definitions", f"files {{dataset}}/{{id}}{DEFINITION}")
    return Benchmark(config, tuple(tests), tuple(notes))


def _first_definitions(folder: Path) -> list[Path]:
    """Return one definition per dataset."""
    return list({path.parent: path for path in folder.glob(f"*/*{DEFINITION}")}.values())


def _dataset(
    name: str, settings: Iterable[DatasetSettings], find_class: ClassFinder
) -> tuple[DatasetInterface, list[str]]:
    found = find_class(name)
    key = dataset_key(name)
    shared: dict[str, Any] = {}
    for entry in settings:
        shared = {"memory_span": entry.args["memory_span"]} if "memory_span" in entry.args else shared
        if dataset_key(entry.name) == key:
            arguments = {item: value for item, value in entry.args.items() if item not in _NOT_FOR_THE_CLASS}
            break
    else:
        arguments = shared
    if found is None:
        note = f"The class of the dataset {name} is not available: its tests are run but not graded"
        return create_dataset(UngradedDataset, name=name, description="", **arguments), [note]
    unknown = unknown_arguments(found, arguments)
    notes = [f"The dataset {name} has no argument {', '.join(unknown)}: ignored"] if unknown else []
    dataset = create_dataset(found, **arguments)
    dataset.name = name
    return dataset, notes


def _example(dataset: DatasetInterface, definition: _Definition, path: Path) -> TestExample:
    waits = [WaitCreator.unserialise(wait.model_dump(exclude_none=True)) for wait in definition.waits]
    values = {name: getattr(definition, name) for name in _Definition.model_fields if name != "waits"}
    try:
        example = dataset.create_example(**values, waits=waits, example_id=_id(path))
    except UsageError as error:
        raise DatasetError(path, "", str(error), "a test that can be run") from None
    example.identify(dataset, _id(path))
    return example


def _id(path: Path) -> str:
    return path.name.removesuffix(DEFINITION)


def save_definitions(folder: Path, benchmark: Benchmark) -> None:
    """Write ``{dataset}/{id}.def.json`` for each test, and the ``config.yml`` to run them with.

    Raises:
        UsageError: the folder already contains definitions or cannot be written, or a test's id is no file name.
    """
    if is_definition_folder(folder):
        raise UsageError(f"{folder}: already contains test definitions; name another folder")
    paths = {_path_of(folder, example): example for example in benchmark.tests}
    try:
        for path, example in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(str(path), json.dumps(example.to_dict(), indent=2, ensure_ascii=False) + "\n")
    except (TypeError, ValueError) as error:
        raise UsageError(f"The test {example.unique_id} cannot be written as JSON ({error})") from None
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    write_whole(str(folder / CONFIG_FILE), yaml.safe_dump(_config_of(benchmark), allow_unicode=True))


def _path_of(folder: Path, example: TestExample) -> Path:
    """Reject names that would leave the folder."""
    path = folder / example.dataset_name / f"{example.example_id}{DEFINITION}"
    if path.parent.parent != folder or path.name != f"{example.example_id}{DEFINITION}":
        raise UsageError(f"The id of the test {example.unique_id!r} cannot be used as a file name")
    return path


def _config_of(benchmark: Benchmark) -> dict[str, Any]:
    """Includes the memory spans, as waits are percentages of them."""
    config = benchmark.config
    spans = {example.dataset_name: example.dataset_generator.memory_span for example in benchmark.tests}
    return {
        "config": {
            "run_name": config.run_name,
            "debug": config.debug,
            "incompatibilities": [sorted(group) for group in config.incompatibilities],
        },
        "datasets": {"datasets": [{"name": name, "args": {"memory_span": span}} for name, span in spans.items()]},
    }
