"""Sources of tests: Python datasets and folders of definitions. A Python file runs only if the user names it.

The folder of a Python file becomes a package with a private, unique name: ``from .helper import …`` finds the file
beside it, two folders may contain modules of the same name, and instances can be pickled. The folder is never on
``sys.path``, so none of its modules hides an installed one.

Definitions are a ``config.yml`` and files ``{dataset}/{id}.def.json``.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Annotated, Any, Protocol

import yaml
from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.json_files import read_json
from memreplay.conversations.validation_errors import Place, validated
from memreplay.errors import DatasetError, MemreplayError, UsageError
from memreplay.files import read_text, write_whole
from memreplay.goodai.actions import WaitCreator
from memreplay.goodai.dataset import DEFAULT_EXAMPLES, DatasetInterface, RunConfig, TestExample, dataset_key
from memreplay.goodai.evaluation import Ungraded
from memreplay.goodai.language_model import LanguageModel
from memreplay.llm.rate_limiter import StoppedError
from memreplay.paths import datasets_folder

_PREFIX = "_memreplay_datasets_"

_loading = RLock()


def load_file(path: Path) -> ModuleType:
    """Import a Python file; later calls return the same module. Raises whatever its code raises."""
    path = path.resolve()
    with _loading:
        name = f"{_package_of(path.parent)}.{path.stem}"
        if name in sys.modules:
            return sys.modules[name]
        spec = spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _package_of(folder: Path) -> str:
    """Return the name of the folder's package."""
    name = _PREFIX + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = module_from_spec(spec)
    return name


@contextmanager
def reporting_as_usage_error(what_cannot_be: str) -> Iterator[None]:
    """Run a dataset's code.

    Raises:
        UsageError: it fails or calls ``sys.exit``; the message begins with ``what_cannot_be``.
    """
    try:
        yield
    except (MemreplayError, StoppedError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UsageError(f"{what_cannot_be} ({problem_of(error)})") from error


def problem_of(error: BaseException) -> str:
    """Return the exception as a phrase."""
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({'' if error.code is None else error.code})"
    return f"{type(error).__name__}: {error}"


DEFAULT_MEMORY_SPAN = 2000
"""The number of tokens over which a test is spread, unless the user or a configuration says otherwise."""

DatasetClass = type[DatasetInterface]


@dataclass(frozen=True)
class ShippedDataset:
    """A dataset that comes with the program. ``key`` is its name in a ``config.yml`` and on the command line."""

    key: str
    file: str
    class_name: str
    name: str


SHIPPED_DATASETS = (
    ShippedDataset("colours", "colours.py", "ColourDataset", "Colours"),
    ShippedDataset("shopping", "shopping.py", "ShoppingDataset", "Shopping"),
    ShippedDataset("name_list", "name_list.py", "NameListDataset", "NameList"),
    ShippedDataset("jokes", "jokes.py", "JokesDataset", "Jokes"),
    ShippedDataset(
        "locations_directions", "locations_directions.py", "LocationsDirectionsDataset", "Locations Directions"
    ),
    ShippedDataset("sallyanne", "sallyanne.py", "SallyAnneDataset", "SallyAnne"),
    ShippedDataset("prospective_memory", "prospective_memory.py", "ProspectiveMemoryDataset", "Prospective Memory"),
    ShippedDataset("trigger_response", "trigger_response.py", "TriggerResponseDataset", "Trigger Response"),
    ShippedDataset("spy_meeting", "spy_meeting.py", "SpyMeetingDataset", "Spy Meeting"),
    ShippedDataset("delayed_recall", "delayed_recall.py", "DelayedRecallDataset", "Delayed Recall"),
    ShippedDataset("restaurant", "restaurant.py", "RestaurantDataset", "Restaurant"),
)


def shipped_dataset(name: str) -> DatasetClass | None:
    """Find a shipped dataset class by key or name."""
    wanted = dataset_key(name)
    for entry in SHIPPED_DATASETS:
        if wanted in (dataset_key(entry.key), dataset_key(entry.name)):
            return load_dataset_class(f"{datasets_folder() / entry.file}:{entry.class_name}")
    return None


def is_dataset_file(named: str) -> bool:
    """Return whether this names a Python dataset: ``path.py`` or ``path.py:Class``."""
    return file_of(named).suffix == ".py"


def file_of(named: str) -> Path:
    """Return the file in ``path.py`` or ``path.py:Class``."""
    return _split(named)[0]


def load_dataset_class(named: str) -> DatasetClass:
    """Load the dataset class in ``path.py:Class``, or the only one in ``path.py``. Executes the file.

    Raises:
        UsageError: the file or class does not exist or is incomplete, or the file's code fails.
    """
    path, class_name = _split(named)
    if not path.is_file():
        raise UsageError(f"{path}: no such file; name a Python dataset as path.py:Class")
    with reporting_as_usage_error(f"{path}: its code cannot be run"):
        try:
            module = load_file(path)
        except ModuleNotFoundError as error:
            if error.name and (path.parent / f"{error.name}.py").is_file():
                raise UsageError(
                    f"{path}: {error.name}.py lies beside it; write: from . import {error.name}"
                ) from error
            raise
    classes = _classes_in(module)
    names = [class_name] if class_name else _choices(classes)
    if class_name and class_name not in classes:
        raise UsageError(f"{path}: has no dataset class {class_name}; it has {', '.join(classes) or 'none'}")
    if len(names) != 1:
        raise UsageError(
            f"{path}: name one of its dataset classes as path.py:Class: {', '.join(names) or 'it has none'}"
        )
    found = classes[names[0]]
    missing = sorted(found.__abstractmethods__)
    if missing:
        raise UsageError(
            f"{path}: the dataset class {names[0]} does not define {' and '.join(missing)}; every dataset has to"
            " define generate_examples and evaluate_correct, even if a callback scores its tests"
        )
    return found


def _choices(classes: Mapping[str, DatasetClass]) -> list[str]:
    """Return the complete classes, or all of them if none is complete."""
    complete = [name for name, found in classes.items() if not inspect.isabstract(found)]
    return complete or list(classes)


def create_dataset(dataset_class: DatasetClass, **arguments: Any) -> DatasetInterface:
    """Create a dataset; arguments that the class does not have are ignored.

    ``memory_span`` is :data:`DEFAULT_MEMORY_SPAN` unless the arguments or the class set one. A class that is not
    decorated with ``@dataclass`` keeps the values of its body.
    """
    known = {field.name for field in fields(dataset_class) if field.init}
    body = {name: value for name, value in vars(dataset_class).items() if name in known}
    if "__dataclass_fields__" in vars(dataset_class):
        body = {}
    given = {name: value for name, value in arguments.items() if name in known}
    with reporting_as_usage_error(f"The dataset {dataset_class.__name__} cannot be created"):
        dataset = dataset_class(**{**body, **given})
    dataset.memory_span = dataset.memory_span or DEFAULT_MEMORY_SPAN
    return dataset


def make_tests(dataset: DatasetInterface, count: int) -> list[TestExample]:
    """Generate the dataset's tests. Raises :class:`UsageError` if its code fails."""
    with reporting_as_usage_error(f"The tests of the dataset {dataset.name} cannot be created"):
        return dataset.generate_examples(count)


def unknown_arguments(dataset_class: DatasetClass, arguments: dict[str, Any]) -> list[str]:
    known = {field.name for field in fields(dataset_class) if field.init}
    return [name for name in arguments if name not in known]


def _split(named: str) -> tuple[Path, str]:
    head, colon, tail = named.rpartition(":")
    if colon and tail.isidentifier() and head.endswith(".py"):
        return Path(head), tail
    return Path(named), ""


def _classes_in(module: ModuleType) -> dict[str, DatasetClass]:
    """Return the dataset classes that the module itself defines, abstract ones included."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, DatasetInterface) and value.__module__ == module.__name__
    }


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


@dataclass(frozen=True)
class TestOptions:
    """Tests per dataset and memory span in tokens; None leaves it to the source."""

    __test__ = False

    examples: int | None = None
    memory_span: int | None = None
    seed: int = 0


class TestSource(Protocol):
    """Creates the same tests each time."""

    @property
    def name(self) -> str:
        """Return the name of a run of these tests."""
        ...

    def digest(self) -> str:
        """Return a digest of the source's files."""
        ...

    def benchmark(self, options: TestOptions, model: LanguageModel | None) -> Benchmark:
        """Create the tests and the settings to run them; ``model`` generates tests if the dataset needs one.

        Raises:
            MemreplayError: a file is invalid, or a dataset's code fails.
        """
        ...


@dataclass(frozen=True)
class DefinitionFolder:
    """A folder of ``{dataset}/{id}.def.json``, with its ``config.yml`` if there is one."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def digest(self) -> str:
        """Covers every definition and the configuration."""
        return _digest_of([self.folder / CONFIG_FILE, *sorted(self.folder.glob("*/*.def.json"))])

    def benchmark(self, options: TestOptions, model: LanguageModel | None) -> Benchmark:
        """Load the defined tests; ``options.examples`` limits them to the first ones of each dataset."""
        loaded = load_definitions(self.folder)
        tests = _first_of_each(loaded.tests, options.examples)
        if options.memory_span is not None:
            for test in tests:
                test.dataset_generator.memory_span = options.memory_span
        return Benchmark(replace(loaded.config, seed=options.seed), tuple(tests), loaded.notes)


@dataclass(frozen=True)
class PythonDatasets:
    """Datasets as ``path.py`` or ``path.py:Class``, run side by side."""

    named: tuple[str, ...]
    name: str

    def digest(self) -> str:
        """Covers the files and names of the datasets, but not the data they read."""
        classes = " ".join(named.rpartition(".py")[2] for named in self.named)
        return _digest_of([file_of(named) for named in self.named]) + classes

    def benchmark(self, options: TestOptions, model: LanguageModel | None) -> Benchmark:
        """Generate the requested number of tests per dataset, by default three. Executes the files."""
        tests: list[TestExample] = []
        count = DEFAULT_EXAMPLES if options.examples is None else options.examples
        span = {} if options.memory_span is None else {"memory_span": options.memory_span}
        for named in self.named:
            dataset = create_dataset(load_dataset_class(named), seed=options.seed, **span)
            dataset.use_language_model(model)
            tests += make_tests(dataset, count)
        if not tests:
            raise UsageError(f"{self.name}: generates no tests")
        return Benchmark(RunConfig(run_name=self.name, seed=options.seed), tuple(tests))


def split_specs(specs: Iterable[str]) -> tuple[tuple[str, ...], tuple[TestSource, ...]]:
    """Separate the specs of conversations from those of tests, and create the sources of the latter.

    Tests are named by the key of a shipped Python dataset (``colours``), a path ending in ``.py`` or ``.py:Class``,
    or a folder of definitions. All Python datasets together form one run, and each folder forms its own.
    """
    conversations: list[str] = []
    python: dict[str, str] = {}
    folders: dict[Path, DefinitionFolder] = {}
    for spec in specs:
        path = Path(spec)
        if (shipped := _shipped_file(spec)) is not None:
            python[shipped] = spec
        elif is_dataset_file(spec):
            python[spec] = file_of(spec).stem
        elif spec and path.is_dir() and is_definition_folder(path):
            folders[path] = DefinitionFolder(path)
        else:
            conversations.append(spec)
    sources: list[TestSource] = list(folders.values())
    if python:
        sources.append(PythonDatasets(tuple(python), "+".join(dict.fromkeys(python.values()))))
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs of tests would have the same name, that of their folder: {', '.join(names)}")
    return tuple(conversations), tuple(sources)


def _shipped_file(spec: str) -> str | None:
    for entry in SHIPPED_DATASETS:
        if entry.key == spec:
            return f"{datasets_folder() / entry.file}:{entry.class_name}"
    return None


def _first_of_each(tests: Sequence[TestExample], count: int | None) -> list[TestExample]:
    kept: dict[str, list[TestExample]] = defaultdict(list)
    for test in tests:
        if count is None or len(kept[test.dataset_name]) < count:
            kept[test.dataset_name].append(test)
    return [test for of_dataset in kept.values() for test in of_dataset]


def _digest_of(paths: Iterable[Path]) -> str:
    """BLAKE2b of the names and contents of the existing files."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        if path.is_file():
            digest.update(str(path.name).encode() + b"\0" + path.parent.name.encode() + b"\0")
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()
