"""Draws plots as SVG, when the page is written.

Vega-Lite specifications are rendered by vl-convert, Vega's own renderer without a browser. Drawing in the reader's
browser would need 800 KB of script and a policy that lets the page evaluate strings. Colours are CSS variables, so
that one drawing serves light, dark and print; fills of adjacent areas are patterns, and each series has a shape, so
that nothing depends on colour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from memreplay.errors import UsageError
from memreplay.views.text import visible_data

Spec = Mapping[str, Any]

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
PATTERNS = tuple(f"url(#pattern{number})" for number in range(12))
"""Fills that the pages define in ``patterns.html``."""

WIDTH = 560
"""Pixels of a plot that takes the whole width."""

_INK, _DIM, _GRID = "var(--ink)", "var(--dim)", "var(--grid)"
_CONFIG = {
    "background": None,
    # The reader's font may be wider than the one that the renderer measures with.
    "padding": {"left": 24, "top": 5, "right": 24, "bottom": 5},
    "font": "system-ui, sans-serif",
    "axis": {
        "labelColor": _INK,
        "titleColor": _INK,
        "gridColor": _GRID,
        "domainColor": _DIM,
        "tickColor": _DIM,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 180,
    },
    "header": {"labelColor": _INK, "titleColor": _INK, "labelFontSize": 12, "labelLimit": 180},
    "legend": {"labelColor": _INK, "titleColor": _INK, "labelFontSize": 12, "labelLimit": 220},
    "text": {"fill": _INK, "fontSize": 12},
    "rule": {"stroke": _INK},
    "view": {"stroke": None},
    "point": {"filled": False, "strokeWidth": 2, "size": 70},
}

_OPENING = re.compile(r"<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>")
_WIDTH = re.compile(r'width="([\d.]+)"')
_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')


def require_renderer(output: str) -> None:
    """Raise UsageError if the library that draws the plots is not installed."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        raise UsageError(
            f"--output {output}: an HTML report needs vl-convert-python to draw its plots;"
            " install it with: pip install 'memreplay[report]'"
        ) from None


def drawn(spec: Spec, title: str) -> Markup:
    """Return the plot as inline SVG. Texts of the data are escaped by the renderer, which aborts the process at a
    control character.
    """
    import vl_convert

    svg = vl_convert.vegalite_to_svg({**visible_data(spec), "config": _CONFIG})
    # The plot is one picture with one name: its table, not its parts, is for those who cannot see it.
    svg = _ROLES.sub("", svg)
    width = _WIDTH.search(svg)
    opening = _OPENING.search(svg)
    assert width is not None and opening is not None
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{opening[1]}" width="{float(width[1]):.0f}"'
        f' role="img" aria-label="{escape(title)}">'
    )
    return Markup(head + svg[opening.end() :])


def percent_axis(title: str) -> dict[str, Any]:
    """Return the encoding of a share as an axis from 0 to 100 %."""
    return {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"title": title, "format": ".0%", "tickCount": 5},
    }


def dashed_if_estimated() -> dict[str, Any]:
    """Draw the lines of what is ``estimated`` dashed."""
    scale = {"domain": [False, True], "range": [[1, 0], [6, 4]]}
    return {"strokeDash": {"field": "estimated", "type": "nominal", "scale": scale, "legend": None}}


def series(names: Sequence[str], drawn: Sequence[str] | None = None) -> dict[str, Any]:
    """Shape and colour by ``backend``, the same in every plot of a page. The legend names ``drawn``, or all."""
    colours = [f"var(--series{number % 6})" for number in range(len(names))]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(names))]
    shown = list(names if drawn is None else drawn)
    legend = {"title": None, "orient": "bottom", "symbolStrokeWidth": 2, "columns": 4, "values": shown}
    return {
        "shape": {
            "field": "backend",
            "type": "nominal",
            "scale": {"domain": list(names), "range": shapes},
            "legend": legend,
        },
        "stroke": {
            "field": "backend",
            "type": "nominal",
            "scale": {"domain": list(names), "range": colours},
            "legend": legend,
        },
    }
