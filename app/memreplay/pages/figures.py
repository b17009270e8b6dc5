"""The plots of a report: what each shows, how many answers are behind it, and its table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import InfoLocation, Salience
from memreplay.debugger.budget import BudgetCurves
from memreplay.numbers import UNKNOWN, counted, dollars, interval, share, whole_share
from memreplay.pages.plots import PATTERNS, WIDTH, Spec, dashed_if_estimated, percent_axis, series
from memreplay.pages.questions import RowKey, row_key, without_prefix
from memreplay.scoring import By
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.equal_tokens import TOKEN_BUDGETS
from memreplay.scoring.groups import Group, by_conversation, facts_of, group_of, shares_right
from memreplay.scoring.question_row import Interval, QuestionRow
from memreplay.scoring.results import Results
from memreplay.scoring.statistics import clustered_interval
from memreplay.scoring.verdicts import LABELS, VERDICTS
from memreplay.views.panels.budget import budget_table
from memreplay.views.table import Table
from memreplay.views.tables import breakdown_table, names_of_groups, share_at

_DISTANCE_BINS = 5


@dataclass(frozen=True)
class Figure:
    """A plot and the table behind it. Without a ``spec``, ``n`` says why there is nothing to draw."""

    id: str
    about: str
    n: str
    spec: Spec | None
    table: Table

    @property
    def title(self) -> str:
        return self.table.title


@dataclass(frozen=True)
class Answers:
    """The answers of a report by memory, and where known the distance in turns from a question to its evidence."""

    results: Results
    by_name: Mapping[str, Sequence[QuestionRow]]
    distances: Mapping[RowKey, int]
    curves: BudgetCurves | None = None

    @classmethod
    def of(cls, results: Results, distances: Mapping[RowKey, int], curves: BudgetCurves | None = None) -> Answers:
        return cls(results, contestants_of(results.questions), distances, curves)

    @property
    def names(self) -> list[str]:
        return list(self.by_name)

    @property
    def counted(self) -> str:
        """Return how many answers there are."""
        rows = self.results.questions
        graded = sum(row.outcome != "error" for row in rows)
        questions = len({row_key(row) for row in rows})
        return f"n = {counted(graded, 'graded answer')} to {counted(questions, 'question')}"

    def is_control(self, name: str) -> bool:
        return without_prefix(self.by_name[name][0].backend) in CONTROLS


def figures_of(answers: Answers) -> list[Figure]:
    """Return the plots that the answers allow, in the order of the page."""
    by_budget = _by_budget(answers)
    made = [
        by_budget,
        _accuracy(answers),
        None if by_budget is not None else _at_equal_tokens(answers),
        *_against_effort(answers),
        _stages(answers),
        _position_by_salience(answers),
        *(_by_group(answers, by) for by in ("category", "type")),
        _distance(answers),
        _confusion(answers),
    ]
    return [figure for figure in made if figure is not None]


def _by_budget(answers: Answers) -> Figure | None:
    """Return how much reaches the prompt at which budget; None where no ranking was recorded."""
    curves = answers.curves
    known = {} if curves is None else {name: curve for name, curve in curves.memories.items() if curve.n}
    if curves is None or not known:
        return None
    values = [
        {"backend": name, "budget": tokens, "share": share, "estimated": curve.estimated}
        for name, curve in known.items()
        for tokens, share in zip(curves.budgets, curve.answer_in_prompt, strict=True)
        if share is not None
    ]
    run_at = curves.context_tokens
    ends = [*curves.budgets, *(() if run_at is None else (max(run_at, 1),))]
    axis = {"title": "tokens of memory in the prompt", "values": list(curves.budgets), "format": ",d"}
    scale = {"type": "log", "base": 2, "domain": [min(ends), max(ends)], "nice": False}
    x = {"field": "budget", "type": "quantitative", "scale": scale, "axis": axis}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line", "point": {"filled": False, "size": 80, "strokeWidth": 2}},
            "encoding": {
                "x": x,
                "y": {"field": "share", **percent_axis("questions whose answer is in the prompt")},
                **series(answers.names, list(known)),
                **dashed_if_estimated(),
            },
        }
    ]
    if run_at is not None:
        rule = {"type": "rule", "opacity": 0.6}
        layers.append({"data": {"values": [{"budget": max(run_at, 1)}]}, "mark": rule, "encoding": {"x": x}})
    run = "" if run_at is None else f" The run had {run_at:,}, at the upright line."
    return Figure(
        id="budget",
        about=f"How much of what a question needs reaches the prompt, with top {curves.top_k} hits and so many"
        f" tokens of memory.{run} Read off the recorded rankings, cut again at each budget"
        f"{'; a dashed curve is an estimate' if any(curve.estimated for curve in known.values()) else ''}. "
        + " ".join(curves.sentences),
        n="; ".join(f"{name}: n = {curve.n}" for name, curve in known.items()),
        spec={"data": {"values": values}, "width": WIDTH - 120, "height": 240, "layer": layers},
        table=budget_table(curves),
    )


def _accuracy(answers: Answers) -> Figure:
    shown = {
        name: (group_of(answers.by_name[name]), answers.results.backends[name].headline.ci95_clustered)
        for name in sorted(answers.names, key=answers.is_control)
    }
    controls = {name for name in shown if answers.is_control(name)}
    if not controls:
        asked_along = _closed_book_asked_along(answers)
        shown |= asked_along
        controls |= asked_along.keys()
    names = list(shown)
    values, rows = [], []
    for name, (group, clustered) in shown.items():
        kind = "control" if name in controls else "memory"
        intervals = interval(group.ci95), interval(clustered)
        right = f"{group.correct} of {group.graded}"
        rows.append((name, kind, right, share(group.accuracy), *intervals, str(group.total - group.graded)))
        bounds = clustered or group.ci95
        if group.accuracy is not None and bounds is not None:
            values.append(
                {"backend": name, "accuracy": group.accuracy, "low": bounds[0], "high": bounds[1]}
                | {"kind": kind}
                | {"label": f"{whole_share(group.accuracy)} of {group.graded}"}
            )
    y = {"field": "backend", "type": "nominal", "sort": names, "axis": {"title": None}}
    by_kind = {"field": "kind", "type": "nominal"}
    kinds = ["memory", "control"]
    spec = {
        "data": {"values": values},
        "width": WIDTH - 150,
        "height": {"step": 34},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {"field": "low", **percent_axis("accuracy, with its 95 % interval")},
                    "x2": {"field": "high"},
                    "strokeDash": {
                        **by_kind,
                        "scale": {"domain": kinds, "range": [[1, 0], [3, 3]]},
                        "legend": None,
                    },
                },
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 110,
                    "fill": "var(--paper)",
                    "stroke": "var(--ink)",
                },
                "encoding": {
                    "x": {"field": "accuracy", "type": "quantitative"},
                    "shape": {
                        **by_kind,
                        "scale": {"domain": kinds, "range": ["circle", "diamond"]},
                        "legend": {"title": None, "orient": "bottom"},
                    },
                },
            },
            {
                # Beside the axis a centred text would cover the names of the backends.
                "mark": {"type": "text", "dy": -12, "align": {"expr": "datum.accuracy < 0.1 ? 'left' : 'center'"}},
                "encoding": {"x": {"field": "accuracy", "type": "quantitative"}, "text": {"field": "label"}},
            },
        ],
    }
    return Figure(
        id="accuracy",
        about="The share of graded answers that are right. closed_book answers without memory, oracle is given the"
        " evidence. The interval allows for questions of one conversation being alike, if there are several.",
        n=answers.counted,
        spec=spec if values else None,
        table=Table.of(
            "Accuracy beside the controls",
            ("memory", "kind", "right", "accuracy", "95 % over questions", "95 % over conversations", "errors"),
            rows,
        ),
    )


def _closed_book_asked_along(answers: Answers) -> dict[str, tuple[Group, Interval | None]]:
    """Return how the model answers without memory, by the answers of the first memory compared with it."""
    for rows in answers.by_name.values():
        # The answer without memory is one, however often a memory was asked.
        once = {row_key(row): row for row in rows if row.closed_book_correct is not None}
        if answered := list(once.values()):
            outcomes = ["correct" if row.closed_book_correct else "wrong" for row in answered]
            alone = [row.model_copy(update={"outcome": each}) for row, each in zip(answered, outcomes, strict=True)]
            return {
                "closed_book": (
                    group_of(alone),
                    clustered_interval(by_conversation(shares_right(alone), facts_of(alone))),
                )
            }
    return {}


def _at_equal_tokens(answers: Answers) -> Figure | None:
    measured = {
        name: found.retrieval
        for name, found in answers.results.backends.items()
        if found.retrieval is not None and found.retrieval.at_tokens
    }
    if not measured:
        return None
    values = [
        {"backend": name, "budget": budget, "evidence": held.evidence, "estimated": held.estimated}
        for name, found in measured.items()
        for budget, held in (found.at_tokens or {}).items()
    ]
    budgets = list(map(str, TOKEN_BUDGETS))
    spec = {
        "data": {"values": values},
        "width": WIDTH - 120,
        "height": 220,
        "mark": {"type": "line", "point": {"filled": False, "size": 80, "strokeWidth": 2}},
        "encoding": {
            "x": {
                "field": "budget",
                "type": "ordinal",
                "sort": budgets,
                "axis": {"title": "tokens of the prompt", "labelAngle": 0},
            },
            "y": {"field": "evidence", **percent_axis("questions with their answer")},
            **series(answers.names, list(measured)),
            **dashed_if_estimated(),
        },
    }
    return Figure(
        id="equal-tokens",
        about="The share of questions whose answer a prompt of so many tokens would hold, word for word or by its"
        " content, read off what the memory retrieved. Hits have different sizes, so memories are compared at equal"
        " tokens. A dashed line is an estimate. Memories that rank nothing are left out.",
        n="; ".join(f"{name}: n = {counted(found.facts, 'fact')}" for name, found in measured.items()),
        spec=spec,
        table=Table.of(
            "Answers at equal tokens",
            ("memory", "facts", *(f"{int(budget):,} tokens" for budget in budgets)),
            [
                (name, str(found.facts), *(share_at(at, "evidence") for at in (found.at_tokens or {}).values()))
                for name, found in measured.items()
            ],
        ),
    )


def _against_effort(answers: Answers) -> Iterator[Figure]:
    def tokens(name: str) -> float | None:
        return answers.results.backends[name].headline.prompt_tokens_per_question

    def cost(name: str) -> float | None:
        graded = group_of(answers.by_name[name]).graded
        total = answers.results.backends[name].cost_usd
        return total / graded if total is not None and graded else None

    def writing(name: str) -> float | None:
        found = answers.results.backends[name].writing
        return found.ms / found.exchanges if found is not None and found.exchanges else None

    yield _scatter(
        answers, "tokens", "Accuracy against tokens", "prompt tokens a question", tokens, "{:,.0f}".format
    )
    yield _scatter(answers, "cost", "Accuracy against cost", "US dollars a graded answer", cost, dollars)
    yield _scatter(
        answers,
        "writing",
        "Accuracy against ingestion time",
        "ms to write an exchange",
        writing,
        "{:,.1f}".format,
        " Texts that were embedded ahead for all memories, or by an earlier run, take no time here.",
    )


def _scatter(
    answers: Answers,
    id_: str,
    title: str,
    unit: str,
    effort_of: Callable[[str], float | None],
    shown: Callable[[float], str],
    caveat: str = "",
) -> Figure:
    values, rows = [], []
    for name in answers.names:
        group, effort = group_of(answers.by_name[name]), effort_of(name)
        rows.append((name, UNKNOWN if effort is None else shown(effort), share(group.accuracy), str(group.graded)))
        if effort is not None and group.accuracy is not None:
            values.append({"backend": name, "effort": effort, "accuracy": group.accuracy})
    spec = {
        "data": {"values": values},
        "width": 250,
        "height": 200,
        "mark": {"type": "point", "size": 90},
        "encoding": {
            "x": {"field": "effort", "type": "quantitative", "axis": {"title": unit, "tickCount": 4}},
            "y": {"field": "accuracy", **percent_axis("accuracy")},
            **series(answers.names, [str(value["backend"]) for value in values]),
        },
    }
    unknown = len(answers.names) - len(values)
    n = f"{answers.counted}, one point a memory"
    if unknown:
        n += f"; unknown for {unknown} of {len(answers.names)}"
    if not values:
        n = "Not drawn: this figure is unknown for every memory of the run."
    elif not any(value["effort"] for value in values):
        values, n = [], "Not drawn: this figure is 0 for every memory."
    return Figure(
        id=id_,
        about=f"Up and to the left is better.{caveat}",
        n=n,
        spec=spec if values else None,
        table=Table.of(title, ("memory", unit, "accuracy", "graded"), rows),
    )


def _stages(answers: Answers) -> Figure | None:
    counts = {name: found.failures for name, found in answers.results.backends.items() if found.failures}
    present = [label for label in LABELS if any(label in found for found in counts.values())]
    lost = [label for label in present if not VERDICTS[label].is_right]
    if not lost:
        return None
    words = {label: label.replace("_", " ") for label in present}
    labelled = sum(sum(found.values()) for found in counts.values())
    largest = max(sum(found.get(label, 0) for label in lost) for found in counts.values())
    values = [
        {"backend": name, "stage": words[label], "order": order, "answers": found.get(label, 0)}
        | {"label": str(found[label]) if found.get(label, 0) > largest / 25 else ""}
        for name, found in counts.items()
        for order, label in enumerate(lost)
    ]
    stack = {"field": "answers", "type": "quantitative", "stack": "zero"}
    text = {"x": {**stack, "bandPosition": 0.5}, "text": {"field": "label"}, "detail": {"field": "stage"}}
    spec = {
        "data": {"values": values},
        "width": WIDTH - 130,
        "height": {"step": 40},
        "encoding": {
            "y": {"field": "backend", "type": "nominal", "sort": list(counts), "axis": {"title": None}},
            "order": {"field": "order", "type": "quantitative"},
        },
        "layer": [
            {
                "mark": {"type": "bar", "stroke": "var(--ink)", "strokeWidth": 1},
                "encoding": {
                    "x": {**stack, "axis": {"title": "answers that are not right", "tickMinStep": 1}},
                    "fill": {
                        "field": "stage",
                        "type": "nominal",
                        "scale": {"domain": [words[label] for label in lost], "range": list(PATTERNS[: len(lost)])},
                        "legend": {
                            "title": None,
                            "orient": "bottom",
                            "columns": 4,
                            "columnPadding": 24,
                            "symbolType": "square",
                            "symbolSize": 200,
                        },
                    },
                },
            },
            {
                "mark": {"type": "text", "stroke": "var(--paper)", "strokeWidth": 5, "fontWeight": "bold"},
                "encoding": text,
            },
            {"mark": {"type": "text", "fontWeight": "bold"}, "encoding": text},
        ],
    }
    return Figure(
        id="stages",
        about="Answers that are not right, by the stage that lost the fact, from the earliest to the latest. The"
        " order in a bar is that of the legend."
        + ("" if len(counts) == len(answers.names) else " closed_book has no memory that could lose anything."),
        n=f"n = {counted(labelled, 'answer')} with a verdict; the bars hold those that are not right",
        spec=spec,
        table=Table.of(
            "Where facts are lost",
            ("memory", *(words[label] for label in present)),
            [(name, *(str(found.get(label, 0)) for label in present)) for name, found in counts.items()],
        ),
    )


def _distance(answers: Answers) -> Figure | None:
    """Bins hold about equally many questions."""
    known = sorted(
        answers.distances[key] for row in answers.results.questions if (key := row_key(row)) in answers.distances
    )
    if not known:
        return None
    edges = sorted(
        {known[(len(known) - 1) * part // _DISTANCE_BINS] for part in range(1, _DISTANCE_BINS)} | {known[-1]}
    )
    starts = [known[0], *(edge + 1 for edge in edges[:-1])]
    labels = [f"{low}" if low == high else f"{low}–{high}" for low, high in zip(starts, edges, strict=True)]
    values, rows = [], []
    for name, of_memory in answers.by_name.items():
        binned: dict[str, list[QuestionRow]] = defaultdict(list)
        for row in of_memory:
            distance = answers.distances.get(row_key(row))
            if distance is not None:
                binned[labels[next(place for place, edge in enumerate(edges) if distance <= edge)]].append(row)
        for label in labels:
            group = group_of(binned[label])
            rows.append(
                (
                    name,
                    label,
                    f"{group.correct} of {group.graded}",
                    share(group.accuracy),
                    interval(group.ci95),
                )
            )
            if group.accuracy is not None and group.ci95 is not None:
                values.append(
                    {"backend": name, "distance": label, "accuracy": group.accuracy}
                    | {"low": group.ci95[0], "high": group.ci95[1]}
                )
    offset = {"xOffset": {"field": "backend", "type": "nominal", "sort": answers.names}}
    spec = {
        "data": {"values": values},
        "width": WIDTH - 80,
        "height": 220,
        "encoding": {
            "x": {
                "field": "distance",
                "type": "ordinal",
                "sort": labels,
                "axis": {"title": "turns from the earliest evidence to the question", "labelAngle": 0},
            }
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 1},
                "encoding": {"y": {"field": "low", **percent_axis("accuracy")}, "y2": {"field": "high"}, **offset},
            },
            {
                "mark": {"type": "point", "fill": "var(--paper)", "fillOpacity": 1},
                "encoding": {"y": {"field": "accuracy", "type": "quantitative"}, **offset, **series(answers.names)},
            },
        ],
    }
    return Figure(
        id="distance",
        about="Accuracy by the number of turns between the earliest evidence of a question and the question, in"
        " groups of about equally many questions, with 95 % intervals over questions.",
        n=f"n = {counted(len(known), 'answer')} to questions with evidence",
        spec=spec if values else None,
        table=Table.of("Accuracy against distance", ("memory", "turns", "right", "accuracy", "95 %"), rows),
    )


# ---- grids of cells: ink for the share, and the numbers written in them ----------------------------------------


def _heat(values: Sequence[Mapping[str, Any]], x: Mapping[str, Any], y: Mapping[str, Any]) -> dict[str, Any]:
    """Cells whose ink is their ``share``, with ``label`` and ``n`` written in them."""
    return {
        "encoding": {"x": x, "y": y},
        "layer": [
            {
                "mark": {"type": "rect", "fill": "var(--series0)", "stroke": "var(--dim)", "strokeWidth": 0.5},
                "encoding": {
                    "fillOpacity": {
                        "field": "share",
                        "type": "quantitative",
                        "scale": {"domain": [0, 1], "range": [0, 0.55]},
                        "legend": None,
                    }
                },
            },
            {"mark": {"type": "text", "dy": -6}, "encoding": {"text": {"field": "label"}}},
            {"mark": {"type": "text", "dy": 9, "fontSize": 10}, "encoding": {"text": {"field": "n"}}},
        ],
    }


def _cell(group: Group) -> dict[str, Any]:
    return {
        "share": group.accuracy or 0,
        "label": whole_share(group.accuracy),
        "n": f"n = {group.graded}",
    }


def _position_by_salience(answers: Answers) -> Figure | None:
    values, rows, counted = [], [], 0
    for name, of_memory in answers.by_name.items():
        for location in get_args(InfoLocation):
            for salience in get_args(Salience):
                found = [row for row in of_memory if (row.location, row.salience) == (location, salience)]
                if found:
                    group = group_of(found)
                    counted += group.graded
                    values.append({"backend": name, "position": location, "salience": salience, **_cell(group)})
                    rows.append(
                        (name, location, salience, f"{group.correct} of {group.graded}", share(group.accuracy))
                    )
    if not values:
        return None
    heat = _heat(
        values,
        {"field": "salience", "type": "nominal", "sort": list(get_args(Salience)), "axis": {"labelAngle": 0}},
        {
            "field": "position",
            "type": "nominal",
            "sort": list(get_args(InfoLocation)),
            "axis": {"titlePadding": 12},
        },
    )
    spec = {
        "data": {"values": values},
        "facet": {"field": "backend", "type": "nominal", "sort": answers.names, "header": {"title": None}},
        "columns": 3,
        "spec": {**heat, "width": 150, "height": 120},
    }
    return Figure(
        id="position",
        about="Accuracy by where in the conversation the fact was said, and by how salient it was.",
        n=f"n = {counted:,} graded answers to questions with a position and a salience; each cell names its own",
        spec=spec,
        table=Table.of("Position and salience", ("memory", "position", "salience", "right", "accuracy"), rows),
    )


def _by_group(answers: Answers, by: By) -> Figure | None:
    groups = {name: found.breakdown.get(by, {}) for name, found in answers.results.backends.items()}
    kinds = list(dict.fromkeys(kind for found in groups.values() for kind in found))
    if len(kinds) < 2:
        return None
    graded = sum(group.graded for found in groups.values() for group in found.values())
    called = {kind: names_of_groups(answers.results, by).get(kind, kind) for kind in kinds}
    values = [
        {"backend": name, "group": called[kind], **_cell(found[kind])}
        for name, found in groups.items()
        for kind in kinds
        if kind in found
    ]
    heat = _heat(
        values,
        {
            "field": "backend",
            "type": "nominal",
            "sort": answers.names,
            "axis": {"title": None, "labelAngle": 0, "labelLimit": 90},
        },
        {"field": "group", "type": "nominal", "sort": list(called.values()), "axis": {"title": None}},
    )
    return Figure(
        id=f"by-{by}",
        about=f"Accuracy by {by} of question.",
        n=f"n = {counted(graded, 'graded answer')}; each cell names its own",
        spec={"data": {"values": values}, **heat, "width": {"step": 92}, "height": {"step": 38}},
        table=breakdown_table(answers.results, by),
    )


def _confusion(answers: Answers) -> Figure | None:
    values, rows = [], []
    for name, found in answers.results.backends.items():
        if found.multiple_choice is None:
            continue
        for correct, predictions in enumerate(found.multiple_choice.confusion_matrix):
            total = sum(predictions)
            for predicted, count in enumerate(predictions):
                if count:
                    values.append(
                        {"backend": name, "correct": correct, "predicted": predicted, "share": count / total}
                        | {"label": str(count), "edge": 2 if correct == predicted else 0.5}
                    )
                    rows.append((name, str(correct), str(predicted), str(count)))
    if not values:
        return None
    options = list(range(1 + max(max(int(right), int(chosen)) for _, right, chosen, _ in rows)))
    scale = {"domain": options}
    spec = {
        "data": {"values": values},
        "facet": {"field": "backend", "type": "nominal", "sort": answers.names, "header": {"title": None}},
        "columns": 3,
        "spec": {
            "width": 170,
            "height": 170,
            "encoding": {
                "x": {
                    "field": "predicted",
                    "type": "ordinal",
                    "scale": scale,
                    "axis": {"title": "chosen", "labelAngle": 0},
                },
                "y": {"field": "correct", "type": "ordinal", "scale": scale, "axis": {"title": "right"}},
            },
            "layer": [
                {
                    "mark": {"type": "rect", "fill": "var(--series0)", "stroke": "var(--ink)"},
                    "encoding": {
                        "fillOpacity": {
                            "field": "share",
                            "type": "quantitative",
                            "scale": {"domain": [0, 1], "range": [0.05, 0.55]},
                            "legend": None,
                        },
                        "strokeWidth": {"field": "edge", "type": "quantitative", "scale": None},
                    },
                },
                {"mark": {"type": "text", "fontSize": 10}, "encoding": {"text": {"field": "label"}}},
            ],
        },
    }
    return Figure(
        id="confusion",
        about="Answers to multiple-choice questions by the right option (rows) and the chosen one (columns). Right"
        " answers have a thick border. Replies without a clear choice are left out.",
        n=f"n = {sum(int(row[3]) for row in rows):,} answers with a clear choice",
        spec=spec,
        table=Table.of("Options chosen", ("memory", "right option", "chosen option", "answers"), rows),
    )
