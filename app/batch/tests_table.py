"""The table of a run of tests: points of each dataset, a column for each memory, and how far information lasted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.batch.tally import dollars
from app.scoring.results import Results
from app.scoring.sections import TestGroup, TestResults


def print_tests(console: Console, results: Results) -> None:
    """Points by dataset and altogether; then what is to be known of an imported run."""
    tests = {name: backend.tests for name, backend in results.backends.items() if backend.tests is not None}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("tests, points of most points")
    for name in tests:
        table.add_column(Text(name), justify="right")
    for dataset in dict.fromkeys(dataset for part in tests.values() for dataset in part.by_dataset):
        groups = (part.by_dataset.get(dataset) for part in tests.values())
        table.add_row(Text(dataset), *(_points(group) for group in groups), end_section=False)
    table.add_section()
    for heading, cell in _TOTALS.items():
        cells = [cell(part) for part in tests.values()]
        if any(cells):
            table.add_row(heading, *(text or "–" for text in cells))
    console.print(table)
    _print_notes(console, tests)


def _print_notes(console: Console, tests: Mapping[str, TestResults]) -> None:
    for part in tests.values():
        if part.differing:
            console.print(Text(f"scored otherwise than recorded: {', '.join(part.differing)}"))
        if part.not_recomputed:
            console.print(Text(f"not scored again, the recorded score stands: {', '.join(part.not_recomputed)}"))


def _points(group: TestGroup | None) -> str:
    if group is None or not group.total:
        return "–"
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
