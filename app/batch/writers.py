"""Where results go: files, standard output, and the tables a person reads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.batch.csv_rows import as_csv
from app.batch.headline_table import Columns, failure_columns, remarks, score_columns, support_columns
from app.batch.markdown import as_markdown
from app.batch.tests_table import print_tests
from app.errors import UsageError
from app.output_files import refuse_unusable_output, write_whole
from app.scoring.results import Results

STANDARD_OUTPUT = "-"

_WIDTH_OF_NO_TERMINAL = 140

Renderer = Callable[[Results], str]

RENDERERS: dict[str, Renderer] = {".json": Results.to_json, ".csv": as_csv, ".md": as_markdown}
"""What results are written as, by a file's ending."""


def check_outputs(
    outputs: Sequence[str], endings: Sequence[str] = tuple(RENDERERS), *, inputs: Iterable[Path]
) -> None:
    """Refuse, before anything is asked, what could not be written afterwards, or would overwrite what is read.

    Raises:
        UsageError: an unknown ending, a folder that is not there, or one of ``inputs``.
    """
    inputs = tuple(inputs)
    for output in outputs:
        if output == STANDARD_OUTPUT:
            continue
        if Path(output).suffix not in endings:
            wrong = Path(output).suffix or "no ending"
            raise UsageError(f"--output {output}: cannot write {wrong}; expected {', '.join(endings)}, or -")
        refuse_unusable_output(output, inputs)


def write_results(results: Results, outputs: Sequence[str]) -> None:
    """Write results everywhere they were asked for, as the ending says; ``-`` is JSON on standard output."""
    for output in outputs:
        if output == STANDARD_OUTPUT:
            sys.stdout.write(results.to_json())
        else:
            write_whole(output, RENDERERS[Path(output).suffix](results))


def print_table(results: Results) -> None:
    """Scores, what they rest on, where facts were lost, and what is to be said of it; on standard output."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_OF_NO_TERMINAL)
    for columns in (score_columns(results), support_columns(results), failure_columns(results)):
        if columns:
            console.print(_table(columns, results.backends))
    if any(backend.tests is not None for backend in results.backends.values()):
        print_tests(console, results)
    for sentence in remarks(results):
        console.print(Text(sentence), soft_wrap=True)


def _table(columns: Columns, backends: Mapping[str, object]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("backend", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="right")
    for name in backends:
        table.add_row(Text(name), *(cells[name] for cells in columns.values()))
    return table
