"""Writes results: JSON, CSV, Markdown and JUnit files, and tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from memreplay.batch.junit import as_junit
from memreplay.errors import UsageError
from memreplay.files import refuse_unusable_output, write_whole
from memreplay.numbers import counted
from memreplay.rich_console import terminal_console
from memreplay.scoring import Shown
from memreplay.scoring.results import Results
from memreplay.views.remarks import disagreement_sentence, remarks
from memreplay.views.table import Table, as_csv, as_markdown, for_terminal, plain
from memreplay.views.tables import (
    answers_table,
    breakdown_table,
    breakdowns_in,
    groups_table,
    legend_of,
    options_tables,
    tables_of,
)


def markdown_of(results: Results) -> str:
    """Return a report in GitHub's dialect. Names and texts of datasets make no markup and mention nobody."""
    return "\n".join(_markdown_lines(results)) + "\n"


def _markdown_lines(results: Results) -> Iterator[str]:
    run = results.run
    questions = len({(row.dataset, row.conversation, row.question_id) for row in results.questions})
    asked = "test" if all(row.kind == "test" for row in results.questions) and questions else "question"
    yield from (f"## memreplay: {counted(questions, asked)} of {plain(', '.join(run.datasets))}", "")
    for table in tables_of(results):
        yield from (f"### {plain(table.title)}", "") if table.title else ()
        yield from (*as_markdown(table), "")
    for table in (*(breakdown_table(results, by) for by in breakdowns_in(results)), *options_tables(results)):
        yield from _folded(table.title, as_markdown(table))
    yield from (f"- {plain(sentence)}" for sentence in remarks(results))
    yield ""
    if results.disagreements:
        disagreements = (f"- {plain(disagreement_sentence(one))}" for one in results.disagreements)
        yield from _folded("Answers on which grader, judge or labels by hand disagree", disagreements)
    if legend := legend_of(results):
        yield from _folded("What the columns mean", _markdown_legend(legend))
    models = ", ".join(dict.fromkeys(backend.model for backend in results.backends.values()))
    yield plain(f"Run {run.id}, started {run.started_at}, memreplay {run.memreplay_version}, model {models}.")


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield from (f"<details><summary>{plain(summary)}</summary>", "", *lines, "", "</details>", "")


def _markdown_legend(legend: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> Iterator[str]:
    for place, (title, headings) in enumerate(legend):
        yield from ("",) if place else ()
        yield from (f"{plain(title)}:", "") if title else ()
        yield from (f"- *{plain(heading)}*: {plain(meaning)}" for heading, meaning in headings)


STANDARD_OUTPUT = "-"

_WIDTH_WITHOUT_TERMINAL = 140

Renderer = Callable[[Results], str | Iterator[str]]

RENDERERS: dict[str, Renderer] = {
    ".json": Results.json_parts,
    ".breakdown.csv": lambda results: as_csv(groups_table(results)),
    ".csv": lambda results: as_csv(answers_table(results)),
    ".md": markdown_of,
    ".xml": as_junit,
}
"""The renderer for each ending of a file name; the first that fits."""


def ending_of(output: str, endings: Iterable[str]) -> str | None:
    """The ending that decides the format. A name without one is Markdown, as CI services' summary files are."""
    fitting = next((ending for ending in endings if output.endswith(ending)), None)
    return ".md" if fitting is None and not Path(output).suffix else fitting


def check_outputs(
    outputs: Sequence[str], endings: Sequence[str] = tuple(RENDERERS), *, inputs: Iterable[Path]
) -> None:
    """Raise UsageError, before anything is asked, for an output that cannot be written or is one of ``inputs``."""
    inputs = tuple(inputs)
    for output in outputs:
        if output == STANDARD_OUTPUT:
            continue
        if ending_of(output, endings) is None:
            wrong = Path(output).suffix
            raise UsageError(f"--output {output}: cannot write {wrong}; expected {', '.join(endings)}, or -")
        refuse_unusable_output(output, inputs)


def write_results(results: Results, outputs: Sequence[str]) -> None:
    """Write results to each output, in the format of its extension; ``-`` is JSON on standard output."""
    for output in outputs:
        if output == STANDARD_OUTPUT:
            sys.stdout.writelines(results.json_parts())
        else:
            write_whole(output, RENDERERS[ending_of(output, RENDERERS) or ".md"](results))


def print_table(results: Results, by: Sequence[Shown] = ()) -> None:
    """Print all tables, the breakdowns that are asked for, and remarks."""
    console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
    for table in tables_of(results):
        _print(console, table)
    for each in by:
        tables = list(options_tables(results)) if each == "options" else [breakdown_table(results, each)]
        for table in tables:
            _print(console, table)
        if not any(table.rows for table in tables):
            console.print("no question has options" if each == "options" else f"no question names a {each}")
    for sentence in remarks(results):
        console.print(Text(sentence), soft_wrap=True)


def _print(console: Console, table: Table) -> None:
    if table.title:
        console.print(Text(table.title, style="bold"))
    if table.rows:
        console.print(for_terminal(table))
