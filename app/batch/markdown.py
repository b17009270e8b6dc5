"""Results as Markdown, for a pull request: the tables, each pair in words, and what was run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from app.batch.headline_table import Columns, failure_columns, remarks, score_columns, support_columns
from app.batch.legend import meaning_of_failures, meaning_of_scores
from app.batch.tests_table import HEADING, contestants_in_tests, point_rows, test_remarks
from app.scoring.results import Results

_SPECIAL = re.compile(r"[\\`*_\[\]<>&|#~]")
_MENTION = re.compile(r"(?<!\w)@")


def as_markdown(results: Results) -> str:
    """GitHub's dialect. Names and datasets are text: they make no markup and mention nobody."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Results) -> Iterator[str]:
    run = results.run
    questions = len({(row.dataset, row.conversation, row.question_id) for row in results.questions})
    asked = "test" if all(row.kind == "test" for row in results.questions) and questions else "question"
    counted = f"1 {asked}" if questions == 1 else f"{questions} {asked}s"
    yield f"## memreplay: {counted} of {plain(', '.join(run.datasets))}"
    yield ""
    for heading, columns in (
        ("", score_columns(results)),
        ("### What the scores rest on", support_columns(results)),
        ("### Where each fact was lost", failure_columns(results)),
    ):
        if columns:
            yield from (heading, "") if heading else ()
            yield from _table(columns, results.backends)
    yield from _tests(results)
    for sentence in (*remarks(results), *test_remarks(results)):
        yield f"- {plain(sentence)}"
    yield ""
    yield from _legend(results)
    models = ", ".join(dict.fromkeys(backend.model for backend in results.backends.values()))
    yield plain(f"Run {run.id}, started {run.started_at}, memreplay {run.memreplay_version}, model {models}.")


def _legend(results: Results) -> Iterator[str]:
    """What the headings mean, folded away."""
    scores = meaning_of_scores((*score_columns(results), *support_columns(results)))
    if scores:
        yield from ("<details><summary>What the columns mean</summary>", "")
        yield from (f"- *{plain(heading)}*: {plain(meaning)}" for heading, meaning in scores)
        failures = meaning_of_failures(failure_columns(results))
        yield from ("", "Where each fact was lost, in numbers of answers:", "") if failures else ()
        yield from (f"- *{plain(heading)}*: {plain(meaning)}" for heading, meaning in failures)
        yield from ("", "</details>", "")


def _tests(results: Results) -> Iterator[str]:
    """The points of a run of tests: a row a dataset, a column a memory."""
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


def _table(columns: Columns, backends: Mapping[str, object]) -> Iterator[str]:
    yield f"| backend | {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for name in backends:
        yield f"| {plain(name)} | {' | '.join(cells[name] for cells in columns.values())} |"
    yield ""


def plain(text: str) -> str:
    """Text that stays text: one line, no markup, no mention."""
    escaped = _SPECIAL.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))
    return _MENTION.sub("@\u200b", escaped)
