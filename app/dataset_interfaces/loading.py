"""Datasets from Python files. A file is code: it runs only because somebody named it, or because it is shipped."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from app.dataset_interfaces.dataset import DatasetInterface
from app.dataset_interfaces.examples import TestExample
from app.dataset_interfaces.foreign_code import told_as_usage
from app.dataset_interfaces.run_config import dataset_key
from app.dataset_interfaces.sibling_modules import load_file
from app.errors import UsageError
from app.paths import datasets_folder

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
    with told_as_usage(f"{path}: its code cannot be run"):
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
    with told_as_usage(f"The dataset {dataset_class.__name__} cannot be made"):
        dataset = dataset_class(**{**body, **given})
    dataset.memory_span = dataset.memory_span or DEFAULT_MEMORY_SPAN
    return dataset


def make_tests(dataset: DatasetInterface, count: int) -> list[TestExample]:
    """The dataset's tests. Raises :class:`UsageError` where its code fails."""
    with told_as_usage(f"The tests of the dataset {dataset.name} cannot be made"):
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
