"""Load datasets from Python files. A file is code: it runs only if the user names it.

The folder of a file becomes a package with a private, unique name: ``from .helper import …`` finds the file beside
it, two folders may contain modules of the same name, and instances can be pickled. The folder is never on
``sys.path``, so none of its modules hides an installed one.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from memreplay.errors import MemreplayError, UsageError
from memreplay.goodai.dataset import DatasetInterface, TestExample, dataset_key
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
