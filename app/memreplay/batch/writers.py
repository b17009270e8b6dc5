"""Writes results: JSON, CSV, Markdown and JUnit files, and tables on standard output."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.text import Text

from memreplay.errors import UsageError
from memreplay.files import refuse_unusable_output, write_whole
from memreplay.numbers import counted
from memreplay.printable import printable_lines
from memreplay.rich_console import terminal_console
from memreplay.scoring import Shown
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import BackendResults, Results
from memreplay.text import shortened
from memreplay.views.remarks import disagreement_sentence, headline_remarks, remarks
from memreplay.views.table import Table, as_csv, as_markdown, for_terminal, in_html, plain
from memreplay.views.tables import (
    answers_table,
    breakdown_table,
    breakdowns_in,
    groups_table,
    headline_table,
    legend_of,
    options_tables,
    tables_of,
)

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""

_MOST_TEXT = 200
"""Characters of a question or an answer in a name or a message; the body of a failure has all of them."""


def as_junit(results: Results) -> str:
    """Return the whole file. Times are seconds: those of the memory's read path and of the model call."""
    root = ET.Element("testsuites", name="memreplay")
    suites = [
        _suite(name, rows, results.backends[name], results)
        for name, rows in contestants_of(results.questions).items()
    ]
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", _seconds(results.questions))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(name: str, rows: Sequence[QuestionRow], found: BackendResults, results: Results) -> ET.Element:
    errors = sum(row.outcome == "error" for row in rows)
    suite = ET.Element(
        "testsuite",
        name=_clean(name),
        tests=str(len(rows)),
        failures=str(sum(row.outcome not in ("correct", "error") for row in rows)),
        errors=str(errors),
        skipped="0",
        time=_seconds(rows),
        timestamp=results.run.started_at,
    )
    properties = ET.SubElement(suite, "properties")
    known = {
        "run": results.run.id,
        "model": found.model,
        "accuracy": None if found.accuracy is None else f"{found.accuracy:.6f}",
        "memreplay_version": results.run.memreplay_version,
    }
    for key, value in known.items():
        if value is not None:
            ET.SubElement(properties, "property", name=key, value=_clean(value))
    suite.extend(_case(name, row) for row in rows)
    return suite


def _case(suite: str, row: QuestionRow) -> ET.Element:
    repeat = f" (repeat {row.repeat + 1})" if row.repeat else ""
    case = ET.Element(
        "testcase",
        classname=_clean(f"{suite}.{row.dataset}.{row.conversation}"),
        name=_clean(f"{row.question_id}{repeat}: {_short(row.question)}"),
        time=_seconds([row]),
    )
    if row.outcome == "error":
        error = ET.SubElement(case, "error", type="error", message=_short(row.error or "not graded"))
        error.text = _clean(_body(row))
    elif row.outcome != "correct":
        failure = ET.SubElement(case, "failure", type=row.failure or row.outcome, message=_message(row))
        failure.text = _clean(_body(row))
    return case


def _message(row: QuestionRow) -> str:
    stage = (row.failure or row.outcome).replace("_", " ")
    evidence = f"; evidence: {', '.join(row.evidence)}" if row.evidence else ""
    return _short(f"{stage}: expected {_quoted(row.expected)}, got {_quoted(row.predicted)}") + _clean(evidence)


def _body(row: QuestionRow) -> str:
    in_prompt = {True: "all of it", False: "not all of it", None: "unknown"}[row.evidence_in_prompt]
    lines = {
        "question": row.question,
        "expected": row.expected,
        "predicted": row.predicted,
        "reply": row.reply,
        "error": row.error,
        "stage": row.failure,
        "detail": row.failure_detail,
        "evidence": ", ".join(row.evidence) or None,
        "evidence in the prompt": in_prompt if row.evidence else None,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items() if value is not None)


def _quoted(text: str | None) -> str:
    return "no answer" if text is None else f'"{text}"'


def _seconds(rows: Sequence[QuestionRow]) -> str:
    return f"{sum((row.ms or 0.0) + (row.recall_ms or 0.0) for row in rows) / 1000:.3f}"


def _short(text: str) -> str:
    return _clean(shortened(text, _MOST_TEXT))


def _clean(text: str) -> str:
    return printable_lines(_NOT_XML.sub("�", text))


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
    yield from (f"<details><summary>{in_html(summary)}</summary>", "", *lines, "", "</details>", "")


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
    """Return the ending that decides the format. A name without one is Markdown, as CI services' summary files
    are.
    """
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


_UNCERTAIN = (
    "Uncertain are grades of replies on which the rules are often wrong; after the colon stands how many answers"
    " are right if all of these are wrong, and if all are right. A judge (--judge) leaves none."
)


def print_table(
    results: Results, by: Sequence[Shown] = (), recording: Path | None = None, *, every_table: bool = True
) -> None:
    """Print the headline table and what it says, or all tables and remarks; and the breakdowns that are asked
    for.

    Tests in which the agent converses have no headline of their own: all of their tables are printed.
    """
    console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
    every_table |= any(row.kind == "test" for row in results.questions)
    for table in tables_of(results) if every_table else [headline_table(results)]:
        _print(console, table)
    if every_table and any(found.headline.uncertain for found in results.backends.values()):
        console.print(Text(_UNCERTAIN), soft_wrap=True)
    for each in by:
        tables = list(options_tables(results)) if each == "options" else [breakdown_table(results, each)]
        for table in tables:
            _print(console, table)
        if not any(table.rows for table in tables):
            console.print("no question has options" if each == "options" else f"no question names a {each}")
    for sentence in remarks(results) if every_table else headline_remarks(results):
        console.print(Text(sentence), soft_wrap=True)
    if not every_table and recording is not None:
        rest = f"memreplay report {recording} --tables all prints the rest"
        console.print(Text(f"next: memreplay {recording} shows why; {rest}"), soft_wrap=True)


def _print(console: Console, table: Table) -> None:
    if table.title:
        console.print(Text(table.title, style="bold"))
    if table.rows:
        console.print(for_terminal(table))
