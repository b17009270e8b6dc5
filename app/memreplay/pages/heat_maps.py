"""The plots of a report that are grids of cells: ink for the share, and the numbers written in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from memreplay.conversations.models import InfoLocation, Salience
from memreplay.pages.answers import Answers, Figure, percent
from memreplay.scoring import By
from memreplay.scoring.groups import Group, group_of
from memreplay.text import UNKNOWN
from memreplay.views.tables.breakdowns import heading_of_groups, names_of_groups


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
        "label": UNKNOWN if group.accuracy is None else f"{100 * group.accuracy:.0f} %",
        "n": f"n = {group.graded}",
    }


def position_by_salience(answers: Answers) -> Figure | None:
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
                        (name, location, salience, f"{group.correct} of {group.graded}", percent(group.accuracy))
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
        title="Position and salience",
        about="Accuracy by where in the conversation the fact was said, and by how salient it was.",
        n=f"n = {counted:,} graded answers to questions with a position and a salience; each cell names its own",
        spec=spec,
        heading=("memory", "position", "salience", "right", "accuracy"),
        rows=rows,
    )


def by_group(answers: Answers, by: By) -> Figure | None:
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
        title=f"By {by}",
        about=f"Accuracy by {by} of question.",
        n=f"n = {graded:,} graded answers; each cell names its own",
        spec={"data": {"values": values}, **heat, "width": {"step": 92}, "height": {"step": 38}},
        heading=(heading_of_groups(answers.results, by), *groups),
        rows=[
            (
                called[kind],
                *(
                    f"{found[kind].correct} of {found[kind].graded}" if kind in found else UNKNOWN
                    for found in groups.values()
                ),
            )
            for kind in kinds
        ],
    )


def confusion(answers: Answers) -> Figure | None:
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
        title="Options chosen",
        about="Answers to multiple-choice questions by the right option (rows) and the chosen one (columns). Right"
        " answers have a thick border. Replies without a clear choice are left out.",
        n=f"n = {sum(int(row[3]) for row in rows):,} answers with a clear choice",
        spec=spec,
        heading=("memory", "right option", "chosen option", "answers"),
        rows=rows,
    )
