"""The same answers under several judges as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memreplay import __version__
from memreplay.pages.document import page
from memreplay.scoring.judges import Verdicts
from memreplay.scoring.question_row import QuestionRow
from memreplay.views.autopsy import Section
from memreplay.views.judges import judges_text
from memreplay.views.table import Table


def judges_page(
    run: str,
    by_judge: Mapping[str, Verdicts],
    by_rules: Verdicts,
    labels: Verdicts,
    questions: Mapping[tuple[str, str], str],
    missing: Sequence[str],
    command: str,
    rows: Sequence[QuestionRow] = (),
) -> str:
    """Return the whole file, with every answer on which judges split. ``command`` shows the same in a terminal."""
    parts = list(judges_text(by_judge, by_rules, labels, questions, missing, rows, most_splits=None))
    lines = [part for part in parts if isinstance(part, str)]
    section = Section(
        f"Run {run}",
        [line for line in lines if not line.startswith("- ")],
        [part for part in parts if isinstance(part, Table)],
        [line.removeprefix("- ") for line in lines if line.startswith("- ")],
    )
    return page(
        "autopsy.html",
        styles=("page.css", "autopsy.css"),
        scripts=(),
        data=(),
        title="One run, many judges",
        lead="The same recorded answers, judged by each of these models and rubrics.",
        version=__version__,
        sections=[section],
        systems=[],
        command=command,
    )
