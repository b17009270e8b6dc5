"""``memreplay datasets export`` of tests: a Python dataset as files of definitions, which is how one is shared."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from app.conversations.faults import printable
from app.dataset_interfaces.definitions import Benchmark
from app.dataset_interfaces.dynamic import DynamicExample
from app.dataset_interfaces.loading import shipped_dataset
from app.dataset_interfaces.saving import save_definitions
from app.dataset_interfaces.sources import TestSource, Wishes


def export_tests(source: TestSource, folder: Path, wishes: Wishes) -> None:
    """Write the tests; what is lost in their definitions is told on standard error.

    Raises:
        MemreplayError: they cannot be made, or written.
    """
    benchmark = source.benchmark(wishes, None)
    save_definitions(folder, benchmark)
    print(f"{len(benchmark.tests)} tests written; run them with --dataset {folder}", file=sys.stderr)
    for sentence in (*benchmark.notes, *_lost_in(benchmark)):
        print(printable(sentence), file=sys.stderr)


def _lost_in(benchmark: Benchmark) -> Iterator[str]:
    for name in dict.fromkeys(test.dataset_name for test in benchmark.tests):
        if shipped_dataset(name) is None:
            yield f"{name}: how its tests are graded is Python; from definitions alone they run ungraded"
        elif any(isinstance(test, DynamicExample) for test in benchmark.tests if test.dataset_name == name):
            yield f"{name}: its tests are made up as they run; their definitions only name them"
