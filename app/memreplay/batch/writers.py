"""Writes results: JSON, CSV, Markdown and JUnit files, and tables on standard output."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memreplay.batch.junit import as_junit
from memreplay.errors import UsageError
from memreplay.files import refuse_unusable_output, write_whole
from memreplay.printable import printable
from memreplay.rich_console import terminal_console
from memreplay.scoring import Shown
from memreplay.scoring.equal_tokens import TOKEN_BUDGETS
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import Results
from memreplay.views.tables.breakdowns import (
    Cell,
    breakdown_csv_rows,
    breakdown_table,
    breakdowns_in,
    confusion_tables,
)
from memreplay.views.tables.cells import Columns
from memreplay.views.tables.judge import disagreement_sentence
from memreplay.views.tables.points import HEADING, contestants_in_tests, point_rows, print_tests, test_remarks
from memreplay.views.tables.remarks import remarks
from memreplay.views.tables.results import meanings_of, titled_tables
from memreplay.views.tables.what_if import meaning_of_cures, what_if_remarks, what_if_tables

_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet may evaluate as a formula (OWASP, "CSV Injection")."""

_NOT_A_CELL = {
    "evidence",
    "hits",
    "tokens",
    "failure_ranks",
    "adjusted",
    "reasoning",
    "at_tokens",
    "counterfactuals",
    "grader",
    "judge",
}
"""Fields of a row with more than one value."""

_FIELDS = tuple(name for name in QuestionRow.model_fields if name not in _NOT_A_CELL)


def _at_tokens(of: str, budget: int) -> Callable[[QuestionRow], Cell]:
    return lambda row: getattr(row.at_tokens[str(budget)], of) if row.at_tokens else None


def _of_judge(field: str) -> Callable[[QuestionRow], Cell]:
    return lambda row: getattr(row.judge, field) if row.judge else None


_COMPUTED: dict[str, Callable[[QuestionRow], Cell]] = {
    "evidence": lambda row: " ".join(row.evidence),
    "reasoning": lambda row: "; ".join(row.reasoning),
    "failure_ranks": lambda row: "; ".join(
        f"{turn}: {', '.join(f'{channel} {rank}' for channel, rank in ranks.items())}"
        for turn, ranks in row.failure_ranks.items()
    ),
    "hits": lambda row: len(row.hits),
    "hits_in_prompt": lambda row: sum(hit.in_prompt for hit in row.hits),
    "tokens_prompt": lambda row: row.tokens.prompt if row.tokens else None,
    "tokens_completion": lambda row: row.tokens.completion if row.tokens else None,
    "tokens_cached": lambda row: row.tokens.cached if row.tokens else None,
    **{
        f"{of}_at_{budget}_tokens": _at_tokens(of, budget)
        for of in ("evidence", "recall")
        for budget in TOKEN_BUDGETS
    },
    "repaired_by": lambda row: " ".join(each.intervention for each in row.counterfactuals or () if each.repaired),
    "grader_outcome": lambda row: row.grader.outcome if row.grader else None,
    "grader_decided_by": lambda row: row.grader.decided_by if row.grader else None,
    **{f"judge_{name}": _of_judge(name) for name in ("model", "rubric", "verdict", "reply", "error", "cost_usd")},
    "judge_tokens": lambda row: row.judge.tokens.prompt + row.judge.tokens.completion if row.judge else None,
    "adjusted_expected": lambda row: row.adjusted.expected if row.adjusted else None,
    "adjusted_outcome": lambda row: row.adjusted.outcome if row.adjusted else None,
    "adjusted_reason": lambda row: row.adjusted.reason if row.adjusted else None,
}


def as_csv(results: Results) -> str:
    """All rows below their headings. A text that a spreadsheet would evaluate is preceded by a quote."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*_FIELDS, *_COMPUTED])
    for row in results.questions:
        cells = [getattr(row, name) for name in _FIELDS] + [make(row) for make in _COMPUTED.values()]
        writer.writerow([_escaped(cell) for cell in cells])
    return text.getvalue()


def as_breakdown_csv(results: Results) -> str:
    """A row for each backend and group of questions, and for each pair of right and chosen option."""
    text = io.StringIO()
    writer = csv.writer(text)
    for row in breakdown_csv_rows(results):
        writer.writerow([_escaped(cell) for cell in row])
    return text.getvalue()


def _escaped(cell: Cell) -> Cell:
    match cell:
        case bool():
            return "true" if cell else "false"
        case str():
            text = printable(cell, keep="\n\t")
            return f"'{text}" if cell.lstrip(" ").startswith(_STARTS_A_FORMULA) else text
        case float():
            # Significant digits, not decimals: a price may be tiny.
            return float(f"{cell:.9g}")
    return cell


_SPECIAL = re.compile(r"[\\`*_\[\]<>&|#~]")
_MENTION = re.compile(r"(?<!\w)@")


def as_markdown(results: Results) -> str:
    """GitHub's dialect. Names and texts of datasets are escaped: they make no markup and mention nobody."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Results) -> Iterator[str]:
    run = results.run
    questions = len({(row.dataset, row.conversation, row.question_id) for row in results.questions})
    asked = "test" if all(row.kind == "test" for row in results.questions) and questions else "question"
    counted = f"1 {asked}" if questions == 1 else f"{questions} {asked}s"
    yield f"## memreplay: {counted} of {plain(', '.join(run.datasets))}"
    yield ""
    for title, columns in titled_tables(results):
        yield from (f"### {title}", "") if title else ()
        yield from _markdown_table(columns, results.backends)
    yield from _breakdowns(results)
    yield from _tests(results)
    yield from _what_if(results)
    for sentence in (*remarks(results), *test_remarks(results), *what_if_remarks(results)):
        yield f"- {plain(sentence)}"
    yield ""
    yield from _disagreements(results)
    yield from _legend(results)
    models = ", ".join(dict.fromkeys(backend.model for backend in results.backends.values()))
    yield plain(f"Run {run.id}, started {run.started_at}, memreplay {run.memreplay_version}, model {models}.")


def _disagreements(results: Results) -> Iterator[str]:
    """All answers on which two raters disagree, folded."""
    if results.disagreements:
        yield from ("<details><summary>Answers on which grader, judge or labels by hand disagree</summary>", "")
        yield from (f"- {plain(disagreement_sentence(one))}" for one in results.disagreements)
        yield from ("", "</details>", "")


def _legend(results: Results) -> Iterator[str]:
    """The meaning of the headings, folded."""
    if meanings := meanings_of(results):
        yield from ("<details><summary>What the columns mean</summary>", "")
        for title, headings in meanings:
            yield from (f"{title}:", "") if title else ()
            yield from (f"- *{plain(heading)}*: {plain(meaning)}" for heading, meaning in headings)
            yield ""
        yield from ("</details>", "")


def _breakdowns(results: Results) -> Iterator[str]:
    """Right answers by type, category and so on, and which options were chosen; folded, for they are long."""
    tables = [(f"By {by}", breakdown_table(results, by)) for by in breakdowns_in(results)]
    tables += confusion_tables(results)
    for title, (heading, *rows) in tables:
        yield from (f"<details><summary>{plain(title)}</summary>", "")
        yield f"| {' | '.join(map(plain, heading))} |"
        yield f"| --- |{' ---: |' * (len(heading) - 1)}"
        yield from (f"| {' | '.join(map(plain, row))} |" for row in rows)
        yield from ("", "</details>", "")


def _tests(results: Results) -> Iterator[str]:
    """Points of tests: a row per dataset, a column per memory."""
    names = contestants_in_tests(results)
    if not names:
        return
    by_dataset, totals = point_rows(results)
    yield from ("### Points by dataset", "")
    yield f"| {HEADING} | {' | '.join(map(plain, names))} |"
    yield f"| --- |{' ---: |' * len(names)}"
    for heading, cells in (*by_dataset.items(), *totals.items()):
        strong = "**" if heading in totals else ""
        yield f"| {strong}{plain(heading)}{strong} | {' | '.join(map(plain, cells))} |"
    yield ""


def _what_if(results: Results) -> Iterator[str]:
    """What repaired the wrong answers that were asked again."""
    for title, (heading, *rows) in what_if_tables(results):
        yield from (f"### {plain(title)}", "")
        yield f"| {' | '.join(map(plain, heading))} |"
        yield f"| --- |{' ---: |' * (len(heading) - 1)}"
        yield from (f"| {' | '.join(map(plain, row))} |" for row in rows)
        yield ""
    if meanings := meaning_of_cures(results):
        yield from (f"- *{plain(cure)}*: {plain(meaning)}" for cure, meaning in meanings.items())
        yield ""


def _markdown_table(columns: Columns, backends: Mapping[str, object]) -> Iterator[str]:
    yield f"| backend | {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for name in backends:
        yield f"| {plain(name)} | {' | '.join(cells[name] for cells in columns.values())} |"
    yield ""


def plain(text: str) -> str:
    """The text escaped: one line, no markup, no mention."""
    escaped = _SPECIAL.sub(lambda match: f"\\{match[0]}", printable(" ".join(text.split())))
    return _MENTION.sub("@\u200b", escaped)


STANDARD_OUTPUT = "-"

_WIDTH_WITHOUT_TERMINAL = 140

Renderer = Callable[[Results], str | Iterator[str]]

RENDERERS: dict[str, Renderer] = {
    ".json": Results.json_parts,
    ".breakdown.csv": as_breakdown_csv,
    ".csv": as_csv,
    ".md": as_markdown,
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
    for title, columns in titled_tables(results):
        if title:
            console.print(Text(title, style="bold"))
        console.print(_table(columns, results.backends))
    for each in by:
        if each == "options":
            _print_options(console, results)
            continue
        console.print(Text(f"By {each}", style="bold"))
        cells = breakdown_table(results, each)
        console.print(_breakdown(cells) if len(cells) > 1 else f"no question names a {each}")
    if any(backend.tests is not None for backend in results.backends.values()):
        print_tests(console, results)
    for title, cells in what_if_tables(results):
        console.print(Text(title, style="bold"))
        console.print(_breakdown(cells))
    for sentence in (*remarks(results), *what_if_remarks(results)):
        console.print(Text(sentence), soft_wrap=True)


def _print_options(console: Console, results: Results) -> None:
    """Which options were chosen, by the right one: a table for each backend."""
    tables = confusion_tables(results)
    if not tables:
        console.print("no question has options")
    for title, cells in tables:
        console.print(Text(title, style="bold"))
        console.print(_breakdown(cells))


def _breakdown(cells: Sequence[Sequence[str]]) -> Table:
    heading, *rows = cells
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(Text(heading[0]))
    for name in heading[1:]:
        table.add_column(Text(name), justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _table(columns: Columns, backends: Mapping[str, object]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("backend", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="right")
    for name in backends:
        table.add_row(Text(printable(name)), *(cells[name] for cells in columns.values()))
    return table
