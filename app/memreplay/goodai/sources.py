"""Sources of tests: a folder of definitions, or Python datasets. Creating a source executes nothing."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from memreplay.errors import UsageError
from memreplay.goodai.dataset import DEFAULT_EXAMPLES, RunConfig, TestExample
from memreplay.goodai.definitions import CONFIG_FILE, Benchmark, is_definition_folder, load_definitions
from memreplay.goodai.language_model import LanguageModel
from memreplay.goodai.loading import (
    SHIPPED_DATASETS,
    create_dataset,
    file_of,
    is_dataset_file,
    load_dataset_class,
    make_tests,
)
from memreplay.paths import datasets_folder


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
