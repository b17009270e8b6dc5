"""The points of tests: a row for each dataset and in all, a column for each memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memreplay.scoring.points import TestGroup, TestResults
from memreplay.scoring.results import Results
from memreplay.text import dollars
from memreplay.views.tables.cells import NOTHING

Rows = Mapping[str, Sequence[str]]
"""A cell for each memory, by heading."""

HEADING = "tests, points of most points"


def print_tests(console: Console, results: Results) -> None:
    """Points by dataset and in all; then remarks."""
    names, by_dataset, totals = _points_parts(results), *point_rows(results)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(HEADING)
    for name in names:
        table.add_column(Text(name), justify="right")
    for dataset, cells in by_dataset.items():
        table.add_row(Text(dataset), *cells)
    table.add_section()
    for heading, cells in totals.items():
        table.add_row(heading, *cells)
    console.print(table)
    for sentence in test_remarks(results):
        console.print(Text(sentence))


def point_rows(results: Results) -> tuple[Rows, Rows]:
    """The rows by dataset, and the totals; a cell for each of :func:`contestants_in_tests`."""
    tests = _points_parts(results)
    datasets = dict.fromkeys(dataset for part in tests.values() for dataset in part.by_dataset)
    by_dataset = {name: [_points(part.by_dataset.get(name)) for part in tests.values()] for name in datasets}
    totals = {heading: [cell(part) for part in tests.values()] for heading, cell in _TOTALS.items()}
    return by_dataset, {
        heading: [text or NOTHING for text in cells] for heading, cells in totals.items() if any(cells)
    }


def contestants_in_tests(results: Results) -> list[str]:
    """The memories that ran tests, in order."""
    return list(_points_parts(results))


def test_remarks(results: Results) -> list[str]:
    """Remarks on an imported run, and on the cost of writing the tests."""
    sentences = []
    for part in _points_parts(results).values():
        if part.differing:
            sentences.append(f"score differs from the recorded one: {', '.join(part.differing)}")
        if part.not_recomputed:
            sentences.append(f"not rescored, the recorded score counts: {', '.join(part.not_recomputed)}")
    if results.tests_written_usd is not None:
        sentences.append(f"writing the tests cost {dollars(results.tests_written_usd)}, paid once for all memories")
    return sentences


def _points_parts(results: Results) -> dict[str, TestResults]:
    return {name: backend.tests for name, backend in results.backends.items() if backend.tests is not None}


def _points(group: TestGroup | None) -> str:
    if group is None or not group.total:
        return NOTHING
    ungraded = f" ({group.errors} ungraded)" if group.errors else ""
    return f"{group.score:.3g}/{group.max_score:g}{ungraded}" if group.graded else f"ungraded: {group.errors}"


def _all_recorded(part: TestResults) -> str:
    return "" if part.recorded_score is None else f"{part.recorded_score:.3g}"


_TOTALS: dict[str, Callable[[TestResults], str]] = {
    "all": _points,
    "recorded": _all_recorded,
    "LTM score, tokens": lambda part: "" if part.ltm_score is None else f"{part.ltm_score:.0f}",
    "cost of the benchmark": lambda part: (
        "" if part.benchmark_cost_usd is None else dollars(part.benchmark_cost_usd)
    ),
}
