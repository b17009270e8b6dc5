"""Load datasets from Python files. A file is code: it runs only if the user names it.

The folder of a file becomes a package with a private, unique name, so that two folders may contain modules of the
same name, and instances can be pickled. Plain imports of sibling modules (``import helper``) are compiled to
imports from that package. Other imports are left alone: neither a sibling nor a subfolder is visible to installed
packages.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from dis import opmap
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from threading import current_thread, main_thread
from types import CodeType, ModuleType
from typing import Any

from memreplay.dataset_interfaces.dataset import DatasetInterface, TestExample, dataset_key
from memreplay.errors import MemreplayError, UsageError
from memreplay.llm.rate_limiter import StoppedError
from memreplay.paths import datasets_folder

_PREFIX = "_memreplay_datasets_"


def load_file(path: Path) -> ModuleType:
    """Import a Python file; later calls return the same module. Raises whatever its code raises."""
    path = path.resolve()
    return importlib.import_module(f"{_package_of(path.parent)}.{path.stem}")


def _package_of(folder: Path) -> str:
    name = _PREFIX + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules.setdefault(name, module_from_spec(spec))
    if _SiblingFinder not in sys.meta_path:
        sys.meta_path.insert(0, _SiblingFinder)
    return name


class _SiblingFinder:
    """Finds the modules of the private packages, and nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_PREFIX) or not path:
            return None
        # A new finder sees files that were written since the last import.
        return FileFinder(path[0], (_SiblingLoader, [".py"])).find_spec(name)


class _SiblingLoader(SourceFileLoader):
    """Compiles plain imports so that they find siblings first. Writes no bytecode to the user's folder."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        package = fullname.partition(".")[0]
        tree = ast.parse(self.get_data(path), path)
        _SiblingImports(package, Path(sys.modules[package].__path__[0])).visit(tree)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _SiblingImports(ast.NodeTransformer):
    """Turns absolute imports of sibling modules into imports from their private package.

    The standard library takes precedence over a sibling of the same name.
    """

    def __init__(self, package: str, folder: Path) -> None:
        self._package, self._folder = package, folder

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [ast.copy_location(self._import(alias), node) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if not node.level and node.module and self._is_sibling(node.module):
            node.module = f"{self._package}.{node.module}"
        return node

    def _import(self, alias: ast.alias) -> ast.stmt:
        if self._is_sibling(alias.name):
            return ast.ImportFrom(self._package, [alias], level=0)
        return ast.Import([alias])

    def _is_sibling(self, name: str) -> bool:
        is_plain = name.isidentifier() and name not in sys.stdlib_module_names
        return is_plain and (self._folder / f"{name}.py").is_file()


@contextmanager
def reporting_as_usage_error(what_cannot_be: str) -> Iterator[None]:
    """Run a dataset's code.

    Raises:
        UsageError: it fails or calls ``sys.exit``; the message begins with ``what_cannot_be``.
    """
    try:
        yield
    except (MemreplayError, StoppedError):
        raise
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        raise UsageError(f"{what_cannot_be} ({problem_of(error)})") from error


def is_ctrl_c(error: BaseException) -> bool:
    """Whether this is the user's Ctrl-C: raised in the main thread, and by no ``raise`` of the dataset's code."""
    if not isinstance(error, KeyboardInterrupt) or current_thread() is not main_thread():
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_code.co_code[trace.tb_lasti] != opmap["RAISE_VARARGS"]


def problem_of(error: BaseException) -> str:
    """The exception as a phrase."""
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
    """Whether this names a Python dataset: ``path.py`` or ``path.py:Class``."""
    return file_of(named).suffix == ".py"


def file_of(named: str) -> Path:
    """The file in ``path.py`` or ``path.py:Class``."""
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
        module = load_file(path)
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
    """The complete classes, or all of them if none is complete."""
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
    """The dataset classes that the module itself defines, abstract ones included."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, DatasetInterface) and value.__module__ == module.__name__
    }
