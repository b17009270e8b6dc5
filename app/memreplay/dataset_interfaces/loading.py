"""Datasets from Python files. A file is code: it runs only when somebody names it."""

from __future__ import annotations

import builtins
import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from threading import Lock, current_thread, main_thread
from types import CodeType, ModuleType
from typing import Any

from memreplay.dataset_interfaces.dataset import DatasetInterface, dataset_key
from memreplay.dataset_interfaces.examples import TestExample
from memreplay.errors import MemreplayError, UsageError
from memreplay.llm.rate_limiter import StoppedError
from memreplay.paths import datasets_folder

_PREFIX = "_memreplay_datasets_"
_loading = Lock()
"""Runs of tests make their datasets in threads, and Python's caches cannot be invalidated by two at once."""


def load_file(path: Path) -> ModuleType:
    """The module of a Python file; loaded once. Raises whatever its code raises."""
    path = path.resolve()
    with _loading:
        package = _package_of(path.parent)
        name = f"{package}.{path.stem}"
        if name not in sys.modules:
            importlib.invalidate_caches()
        return importlib.import_module(name)


def _package_of(folder: Path) -> str:
    name = _PREFIX + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = module_from_spec(spec)
        if not any(isinstance(finder, _SiblingFinder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _SiblingFinder())
    return name


class _SiblingFinder:
    """Finds the modules of private packages, and nothing else."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return spec
        loader = _SiblingLoader(spec.loader.name, spec.loader.path)
        found = spec_from_loader(name, loader, is_package=spec.submodule_search_locations is not None)
        if found is not None and spec.submodule_search_locations is not None:
            found.submodule_search_locations = list(spec.submodule_search_locations)
        return found


class _SiblingLoader(SourceFileLoader):
    """Executes a module whose plain imports look among its siblings first, and writes no bytecode beside it."""

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.split(".", maxsplit=1)[0]
        folder = Path(sys.modules[package].__path__[0])

        def import_sibling_first(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            if level == 0 and _is_sibling(name, folder):
                return importlib.import_module(f"{package}.{name}")
            return builtins.__import__(name, globals, locals, fromlist or (), level)

        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_sibling_first}
        super().exec_module(module)

    def _cache_bytecode(self, source_path: str, cache_path: str, data: CodeType) -> None:
        """A user's folder stays as it is."""


def _is_sibling(name: str, folder: Path) -> bool:
    is_plain = name.isidentifier() and name not in sys.stdlib_module_names
    return is_plain and (folder / f"{name}.py").is_file()


@contextmanager
def reporting_as_usage_error(what_cannot_be: str) -> Iterator[None]:
    """Run such code.

    Raises:
        UsageError: it fails, or would end the program; the sentence begins with ``what_cannot_be``.
    """
    try:
        yield
    except (MemreplayError, StoppedError):
        raise
    except BaseException as error:
        if is_the_users(error):
            raise
        raise UsageError(f"{what_cannot_be} ({problem_of(error)})") from error


def is_the_users(error: BaseException) -> bool:
    """Whether it is a Ctrl-C, which only the main thread hears of."""
    return isinstance(error, KeyboardInterrupt) and current_thread() is main_thread()


def problem_of(error: BaseException) -> str:
    """What was raised, in words."""
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({'' if error.code is None else error.code})"
    return f"{type(error).__name__}: {error}"


DEFAULT_MEMORY_SPAN = 2000
"""Tokens over which a test is spread, where neither the user nor a configuration says how many."""

DatasetClass = type[DatasetInterface]


@dataclass(frozen=True)
class ShippedDataset:
    """A dataset that comes with the program: its key in a ``config.yml``, its file, and its class."""

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
    """The shipped class of a dataset, by its key or its name; None where there is none."""
    wanted = dataset_key(name)
    for entry in SHIPPED_DATASETS:
        if wanted in (dataset_key(entry.key), dataset_key(entry.name)):
            return load_dataset_class(f"{datasets_folder() / entry.file}:{entry.class_name}")
    return None


def is_dataset_file(named: str) -> bool:
    """Whether the user names a Python dataset: ``path.py`` or ``path.py:Class``."""
    return file_of(named).suffix == ".py"


def file_of(named: str) -> Path:
    """The file in ``path.py`` or ``path.py:Class``."""
    return _split(named)[0]


def load_dataset_class(named: str) -> DatasetClass:
    """The dataset class in ``path.py:Class``, or in ``path.py`` where it has just one. Executes the file.

    Raises :class:`UsageError` where there is no such file or class, or the file's code fails.
    """
    path, class_name = _split(named)
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; a Python dataset is named as path.py:Class")
    with reporting_as_usage_error(f"{path}: its code cannot be run"):
        module = load_file(path)
    found = _classes_in(module)
    if class_name:
        if class_name in found:
            return found[class_name]
        raise UsageError(f"{path}: has no dataset class {class_name}; it has {', '.join(found) or 'none'}")
    if len(found) != 1:
        raise UsageError(
            f"{path}: name one of its dataset classes as path.py:Class: {', '.join(found) or 'it has none'}"
        )
    return next(iter(found.values()))


def create_dataset(dataset_class: DatasetClass, **arguments: Any) -> DatasetInterface:
    """A dataset with these arguments; those that the class does not know are left out.

    ``memory_span`` is :data:`DEFAULT_MEMORY_SPAN` where neither the arguments nor the class set one. A class that
    is not decorated as a dataclass keeps what it sets in its body.
    """
    known = {field.name for field in fields(dataset_class) if field.init}
    body = {name: value for name, value in vars(dataset_class).items() if name in known}
    if "__dataclass_fields__" in vars(dataset_class):
        body = {}
    given = {name: value for name, value in arguments.items() if name in known}
    with reporting_as_usage_error(f"The dataset {dataset_class.__name__} cannot be made"):
        dataset = dataset_class(**{**body, **given})
    dataset.memory_span = dataset.memory_span or DEFAULT_MEMORY_SPAN
    return dataset


def make_tests(dataset: DatasetInterface, count: int) -> list[TestExample]:
    """The dataset's tests. Raises :class:`UsageError` where its code fails."""
    with reporting_as_usage_error(f"The tests of the dataset {dataset.name} cannot be made"):
        return dataset.generate_examples(count)


def unknown_arguments(dataset_class: DatasetClass, arguments: dict[str, Any]) -> list[str]:
    """The arguments that a class does not know."""
    known = {field.name for field in fields(dataset_class) if field.init}
    return [name for name in arguments if name not in known]


def _split(named: str) -> tuple[Path, str]:
    head, colon, tail = named.rpartition(":")
    if colon and tail.isidentifier() and head.endswith(".py"):
        return Path(head), tail
    return Path(named), ""


def _classes_in(module: ModuleType) -> dict[str, DatasetClass]:
    """The dataset classes that a module defines itself and that can be made."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, DatasetInterface)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    }
