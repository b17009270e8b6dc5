"""Results as Markdown, for a pull request: the tables, each pair in words, and what was run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from app.batch.headline_table import Columns, failure_columns, remarks, score_columns, support_columns
from app.scoring.results import Results

_SPECIAL = re.compile(r"[\\`*_\[\]<>&|#~]")
_MENTION = re.compile(r"(?<!\w)@")


def as_markdown(results: Results) -> str:
    """GitHub's dialect. Names and datasets are text: they make no markup and mention nobody."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Results) -> Iterator[str]:
    run = results.run
    questions = len({(row.dataset, row.conversation, row.question_id) for row in results.questions})
    counted = "1 question" if questions == 1 else f"{questions} questions"
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
    for sentence in remarks(results):
        yield f"- {plain(sentence)}"
    yield ""
    models = ", ".join(dict.fromkeys(backend.model for backend in results.backends.values()))
    yield plain(f"Run {run.id}, started {run.started_at}, memreplay {run.memreplay_version}, model {models}.")


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
