"""The report of a run as one HTML file: plots, tables, and every question with its prompts and answers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memreplay.pages.answers import Answers, Figure
from memreplay.pages.document import SCRIPTS, STYLES, Data, page
from memreplay.pages.figures import figures_of
from memreplay.pages.plots import drawn
from memreplay.pages.questions import Questions, Source
from memreplay.recording.reader import RunInfo
from memreplay.scoring.results import Results
from memreplay.settings import AS_GIVEN, command_line
from memreplay.views.tables.points import test_remarks
from memreplay.views.tables.remarks import remarks
from memreplay.views.tables.results import meanings_of, titled_tables


@dataclass(frozen=True)
class _DrawnFigure:
    figure: Figure
    svg: str | None


def report_page(
    results: Results, sources: Sequence[Source], *, title: str | None = None, replays: Sequence[Any] = ()
) -> str:
    """The whole file. Prompts and evidence come from ``sources``; without one for a row, the page says so.

    ``replays`` come from :func:`memreplay.pages.replay.replay_data`: conversations to step through.
    """
    questions = Questions(results)
    for source in sources:
        for conversation, asks in source.conversations():
            questions.add(conversation, asks)
    answers = Answers.of(results, questions.distances)
    figures = [
        _DrawnFigure(figure, None if figure.spec is None else drawn(figure.spec, figure.title))
        for figure in figures_of(answers)
    ]
    embedded = [Data(f"replay-data-{number}", each) for number, each in enumerate(replays)]
    return page(
        "report.html",
        styles=("page.css", "report.css", *STYLES),
        scripts=SCRIPTS,
        data=[Data("questions-data", questions.as_data()), *embedded],
        replays=embedded,
        title=title or f"memreplay: {', '.join(results.run.datasets)}",
        results=results,
        counted=answers.counted,
        figures=figures,
        tables=titled_tables(results),
        sentences=[each for each in (*remarks(results), *test_remarks(results)) if each not in _words(results)],
        words=_words(results),
        meanings=meanings_of(results),
        commands=[command_of(source.run) for source in sources],
        settings=sorted((name, _shown(value)) for name, value in results.run.settings.items() if name != AS_GIVEN),
    )


def _words(results: Results) -> list[str]:
    return [f"{comparison.words}." for comparison in results.comparisons]


def _shown(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(str, value)) or "–"
    return str(value)


def command_of(run: RunInfo) -> str:
    """The command that makes such a run again. Datasets are named by their ids, even if files were given."""
    datasets = [word for dataset in run.datasets for word in ("--dataset", dataset)]
    return shlex.join(["memreplay", "--batch", *datasets, *command_line(run.settings)])
