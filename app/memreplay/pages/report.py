"""The report of a run as one HTML file: plots, tables, and every question with its prompts and answers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memreplay.debugger.budget import BudgetCurves
from memreplay.pages.document import SCRIPTS, STYLES, Data, page
from memreplay.pages.figures import Answers, Figure, figures_of
from memreplay.pages.plots import drawn
from memreplay.pages.questions import PREFIXES, Questions, Source
from memreplay.pages.side_by_side import Side, telling_question, with_prompt
from memreplay.recording.reader import RunInfo
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import BackendResults, Comparison, Results
from memreplay.scoring.run_comparison import RunComparison
from memreplay.settings import AS_GIVEN, budget_words, command_line, value_words
from memreplay.views.remarks import conclusions, remarks
from memreplay.views.tables import legend_of, tables_of


@dataclass(frozen=True)
class _DrawnFigure:
    figure: Figure
    svg: str | None


def report_page(
    results: Results,
    sources: Sequence[Source],
    *,
    title: str | None = None,
    replays: Sequence[Any] = (),
    curves: BudgetCurves | None = None,
    brief: bool = False,
) -> str:
    """Return the whole file. Prompts and evidence come from ``sources``; without one for a row, the page says
    so.

    ``replays`` come from :func:`memreplay.pages.replay.replay_data`: conversations to step through. ``curves``
    say how much reaches the prompt at which budget. ``brief``: one sentence, the first plot, and one question
    at two memories, and nothing else.
    """
    questions, telling = Questions(results), telling_question(results)
    sides = [] if telling is None else [*telling]
    for source in sources:
        for conversation, asks in source.conversations():
            if not brief:
                questions.add(conversation, asks)
            sides = [
                with_prompt(side, conversation, asks) if side.row.conversation == conversation.id else side
                for side in sides
            ]
    answers = Answers.of(results, questions.distances, curves)
    named = title or f"memreplay: {', '.join(results.run.datasets)}"
    if brief:
        return _brief_page(answers, named, sides)
    figures = [_drawn(figure) for figure in figures_of(answers)]
    embedded = [Data(f"replay-data-{number}", each) for number, each in enumerate(replays)]
    return page(
        "report.html",
        styles=("page.css", "report.css", *STYLES),
        scripts=SCRIPTS,
        data=[Data("questions-data", questions.as_data()), *embedded],
        replays=embedded,
        title=named,
        sides=sides,
        results=results,
        counted=answers.counted,
        figures=figures,
        score_tables=tables_of(results),
        sentences=[each for each in remarks(results) if each not in _words(results)],
        words=_words(results),
        conclusions=conclusions(results),
        set_up=_set_up(results.run.settings),
        meanings=legend_of(results),
        commands=[command_of(source.run) for source in sources],
        settings=sorted(
            (name, value_words(value)) for name, value in results.run.settings.items() if name != AS_GIVEN
        ),
    )


def _drawn(figure: Figure) -> _DrawnFigure:
    return _DrawnFigure(figure, None if figure.spec is None else drawn(figure.spec, figure.title))


def _brief_page(answers: Answers, title: str, sides: Sequence[Side]) -> str:
    results, curves = answers.results, answers.curves
    said = [*conclusions(results), *(curves.sentences if curves is not None else ()), *_words(results)]
    return page(
        "brief.html",
        styles=("page.css", "report.css"),
        scripts=(),
        data=(),
        title=title,
        set_up=_set_up(results.run.settings),
        counted=answers.counted,
        sentence=next(iter(said), "There is only one memory: nothing to compare."),
        figures=[_drawn(figure) for figure in figures_of(answers)[:1]],
        sides=sides,
    )


def comparison_page(compared: RunComparison, a: Results, b: Results, sources: Sequence[Source]) -> str:
    """Return the report of two runs side by side."""
    both = _side_by_side(a, b, compared.comparisons)
    return report_page(both, sources, title="memreplay: two runs compared")


def _side_by_side(a: Results, b: Results, comparisons: Sequence[Comparison]) -> Results:
    """Return the answers of both, under prefixed names, with the comparisons of one run with the other."""
    rows: list[QuestionRow] = []
    for prefix, results in zip(PREFIXES, (a, b), strict=True):
        rows += [row.model_copy(update={"backend": prefix + row.backend}) for row in results.questions]
    run = b.run.model_copy(
        update={
            "id": f"A {a.run.id}, B {b.run.id}",
            "datasets": tuple(dict.fromkeys((*a.run.datasets, *b.run.datasets))),
            "settings": {},
        }
    )
    both = build_results(run, rows)
    originals = {
        (prefix + found.backend, found.model): found
        for prefix, results in zip(PREFIXES, (a, b), strict=True)
        for found in results.backends.values()
    }
    return both.model_copy(
        update={
            "run": run.model_copy(update={"settings": _merged(a.run.settings, b.run.settings)}),
            "backends": {name: _as_measured(found, originals) for name, found in both.backends.items()},
            "comparisons": tuple(comparisons),
            "prompt_comparisons": (),
            "option_style": {**a.option_style, **b.option_style},
            "fit": None,
        }
    )


def _as_measured(found: BackendResults, originals: dict[tuple[str, str], BackendResults]) -> BackendResults:
    """Return the results with the parts that rows do not tell: writing, extraction, recall at the k of its run."""
    original = originals[found.backend, found.model]
    return found.model_copy(
        update={name: getattr(original, name) for name in ("writing", "reading", "extraction", "retrieval")}
    )


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of both: one value where they agree, else both."""
    names = dict.fromkeys((*a, *b))
    return {
        name: a.get(name) if a.get(name) == b.get(name) else f"A {a.get(name)} · B {b.get(name)}" for name in names
    }


def _set_up(settings: Mapping[str, Any]) -> str:
    """Return the reader, the number of hits and the budget, which every figure depends on."""
    models, limit = settings.get("model"), settings.get("context_tokens")
    read_by = ", ".join(map(str, models)) if isinstance(models, list | tuple) else value_words(models)
    budget = limit if isinstance(limit, str) else budget_words(limit, models or ())
    return f"read by {read_by} · top {value_words(settings.get('top_k'))} · context {budget}"


def _words(results: Results) -> list[str]:
    return [f"{comparison.words}." for comparison in (*results.prompt_comparisons, *results.comparisons)]


def command_of(run: RunInfo) -> str:
    """Return the command that makes such a run again. Datasets are named by their ids, even if files were given."""
    if (imported := run.settings.get("published_file")) is not None:
        given = run.settings.get("evidence")
        names = given if isinstance(given, list) else []
        evidence = [word for name in names for word in ("--evidence", str(name))]
        words = ["memreplay", "recordings", "import", str(imported), "--recording", "run.sqlite3"]
        return shlex.join([*words, *evidence])
    datasets = [word for dataset in run.datasets for word in ("--dataset", dataset)]
    return shlex.join(["memreplay", "--batch", *datasets, *command_line(run.settings)])
