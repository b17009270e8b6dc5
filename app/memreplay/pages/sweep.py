"""A sweep as one HTML file: the Pareto front of each memory as a plot, its settings, and what mends a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memreplay import __version__
from memreplay.debugger.sweep import Swept
from memreplay.numbers import counted
from memreplay.pages.document import page
from memreplay.pages.plots import WIDTH, Spec, drawn, percent_axis
from memreplay.views.sweep import fixes_table, sweep_sentences, sweep_table
from memreplay.views.table import Table
from memreplay.views.text import one_line

_FRONT, _BEHIND = "on the Pareto front", "no better at more tokens"


@dataclass(frozen=True)
class _Section:
    """A memory, as the template shows it."""

    title: str
    sentences: Sequence[str]
    plot: Markup
    tables: Sequence[Table]
    examples: Sequence[str] = ()


def sweep_page(results: Sequence[Swept], command: str) -> str:
    """Return the whole file. ``command`` makes it again."""
    return page(
        "autopsy.html",
        styles=("page.css", "autopsy.css"),
        scripts=(),
        data=(),
        title="Which setting is enough?",
        lead="The share of questions whose answer reaches the prompt, against the tokens of memory in it.",
        version=__version__,
        sections=[_section(result) for result in results],
        systems=[],
        command=command,
    )


def _section(result: Swept) -> _Section:
    numbered = [(str(number), *row) for number, row in enumerate(sweep_table(result).rows, start=1)]
    settings = Table.of("Settings", ("number", *sweep_table(result).headings), numbered)
    return _Section(
        title=f"{result.backend}: {counted(result.rows[0].questions, 'question')}",
        sentences=[*sweep_sentences(result), "The numbers in the plot are those of the table."],
        plot=drawn(front(result), f"{result.backend}: answers in the prompt against tokens"),
        tables=[settings, *([fixes_table(result)] if result.fixed_by else [])],
    )


def front(result: Swept) -> Spec:
    """Return the plot of the settings: the Pareto front is a line, and the bars are 95 % intervals."""
    values = [
        {
            "setting": one_line(row.setting),
            "number": str(number),
            "tokens": row.tokens,
            "share": row.share,
            "low": row.interval[0] if row.interval else row.share,
            "high": row.interval[1] if row.interval else row.share,
            "front": _FRONT if row.on_front else _BEHIND,
        }
        for number, row in enumerate(result.rows, start=1)
    ]
    axis = {"title": "tokens of memory in the prompt (mean of a question)", "format": ",d", "tickCount": 6}
    tokens = {"field": "tokens", "type": "quantitative", "scale": {"zero": True, "nice": True}, "axis": axis}
    y = {"field": "share", **percent_axis("questions whose answer is in the prompt")}
    kinds = {"field": "front", "type": "nominal", "legend": {"title": None, "orient": "bottom"}}
    domain = [_FRONT, _BEHIND]
    return {
        "data": {"values": values},
        "width": WIDTH - 120,
        "height": 260,
        "layer": [
            {
                "transform": [{"filter": {"field": "front", "equal": _FRONT}}],
                "mark": {"type": "line", "interpolate": "step-after", "stroke": "var(--series0)"},
                "encoding": {"x": tokens, "y": y, "order": {"field": "tokens"}},
            },
            {
                "mark": {"type": "rule", "opacity": 0.5},
                "encoding": {"x": tokens, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "point"},
                "encoding": {
                    "x": tokens,
                    "y": y,
                    "shape": {**kinds, "scale": {"domain": domain, "range": ["circle", "square"]}},
                    "stroke": {
                        **kinds,
                        "scale": {"domain": domain, "range": ["var(--series0)", "var(--series1)"]},
                    },
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "dy": -8},
                "encoding": {"x": tokens, "y": y, "text": {"field": "number"}},
            },
        ],
    }
