"""The table of a run of tests: points of each dataset, a column for each memory, and how far information lasted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.batch.headline_table import NOTHING
from app.prices import dollars
from app.scoring.results import Results
from app.scoring.sections import TestGroup, TestResults

Rows = Mapping[str, Sequence[str]]
"""By heading, a cell for each memory."""

HEADING = "tests, points of most points"


def print_tests(console: Console, results: Results) -> None:
    """Points by dataset and altogether; then what is to be known of them."""
    names, by_dataset, totals = _parts(results), *point_rows(results)
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
    """The rows by dataset, and those of all tests together; a cell for each of :func:`contestants_in_tests`."""
    tests = _parts(results)
    datasets = dict.fromkeys(dataset for part in tests.values() for dataset in part.by_dataset)
    by_dataset = {name: [_points(part.by_dataset.get(name)) for part in tests.values()] for name in datasets}
    totals = {heading: [cell(part) for part in tests.values()] for heading, cell in _TOTALS.items()}
    return by_dataset, {
        heading: [text or NOTHING for text in cells] for heading, cells in totals.items() if any(cells)
    }


def contestants_in_tests(results: Results) -> list[str]:
    """The names of those that were tested, in their order; none where there were no tests."""
    return list(_parts(results))


def test_remarks(results: Results) -> list[str]:
    """What is to be known of an imported run, and of what writing the tests cost."""
    sentences = []
    for part in _parts(results).values():
        if part.differing:
            sentences.append(f"scored otherwise than recorded: {', '.join(part.differing)}")
        if part.not_recomputed:
            sentences.append(f"not scored again, the recorded score stands: {', '.join(part.not_recomputed)}")
    if results.tests_written_usd is not None:
        sentences.append(f"writing the tests cost {dollars(results.tests_written_usd)}, once for all memories")
    return sentences


def _parts(results: Results) -> dict[str, TestResults]:
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
