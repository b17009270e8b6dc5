"""The budget curve: how much reaches the prompt at which budget, as a table and drawn in rows of characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from memreplay.debugger.budget import BudgetCurves, MemoryCurve
from memreplay.numbers import estimate, whole_share
from memreplay.views.table import Table
from memreplay.views.text import Line, Span, Tone, cells, line, one_line

_MARKS: Final = "●■▲◆▼✚▶◀"
_TONES: Final[tuple[Tone, ...]] = ("good", "warn", "accent", "value", "bad", "key", "title", "plain")
_LEFT = 6
"""Cells of the labels left of the plot."""


def budget_table(curves: BudgetCurves) -> Table:
    """Return a row for each memory, and a column for each budget. Estimated shares have a tilde."""
    at = f", run at {curves.context_tokens:,} tokens" if curves.context_tokens else ""
    given = "as published" if curves.published else "as recorded"
    limits = f"top {curves.top_k}{at}" if curves.top_k else given
    return Table.of(
        f"Answers in the prompt, by tokens of context ({limits})",
        ("memory", "n", *(f"{tokens:,}" for tokens in curves.budgets), "as recorded", "right"),
        [
            (
                one_line(name),
                str(curve.n),
                *(share_at(curve, place) for place in range(len(curves.budgets))),
                whole_share(curve.as_recorded),
                whole_share(curve.accuracy),
            )
            for name, curve in curves.memories.items()
        ],
    )


def share_at(curve: MemoryCurve, place: int) -> str:
    """Return the share at one of the budgets; an estimate has a tilde."""
    shown = whole_share(curve.answer_in_prompt[place])
    return estimate(shown) if curve.estimates[place] else shown


def short_budget(tokens: int) -> str:
    """``512``, ``2k``."""
    return f"{tokens // 1024}k" if tokens >= 1024 else str(tokens)


def plot_lines(curves: BudgetCurves, width: int, height: int, cursor: int) -> list[Line]:
    """Draw the curves in so many cells. ``cursor`` is the place of a budget, whose column is marked.

    Where curves meet, the mark of the memory that is listed first is shown.
    """
    across = max(width - _LEFT - 3, len(curves.budgets))
    columns = [round(place * (across - 1) / (len(curves.budgets) - 1)) for place in range(len(curves.budgets))]
    rows = max(height - 2, 3)
    grid: list[list[Span]] = [[Span(" ")] * across for _ in range(rows)]
    for row in range(rows):
        grid[row][columns[cursor]] = Span("┊", "title")
        if row in (0, (rows - 1) // 2, rows - 1):
            for column in range(across):
                grid[row][column] = grid[row][column] if column == columns[cursor] else Span("·", "dim")
    for mark, tone, curve in reversed(_drawn(curves)):
        _draw(grid, columns, curve, mark, tone)
    labels = {0: "100 %", (rows - 1) // 2: " 50 %", rows - 1: "  0 %"}
    lines = [
        line(Span(f"{labels.get(row, ''):<{_LEFT}}", "dim"), *cells_, most=1) for row, cells_ in enumerate(grid)
    ]
    return [*lines, _axis(curves, columns, across, cursor)]


def _drawn(curves: BudgetCurves) -> list[tuple[str, Tone, MemoryCurve]]:
    return [
        (_MARKS[number % len(_MARKS)], _TONES[number % len(_TONES)], curve)
        for number, curve in enumerate(curves.memories.values())
    ]


def _draw(grid: list[list[Span]], columns: Sequence[int], curve: MemoryCurve, mark: str, tone: Tone) -> None:
    points = [
        (column, (1 - share) * (len(grid) - 1))
        for column, share in zip(columns, curve.answer_in_prompt, strict=True)
        if share is not None
    ]
    for (left, high), (right, low) in pairwise(points):
        for column in range(left + 1, right):
            row = round(high + (low - high) * (column - left) / (right - left))
            grid[row][column] = Span("╌" if curve.estimated else "─", tone)
    for column, height in points:
        grid[round(height)][column] = Span(mark, tone)


def _axis(curves: BudgetCurves, columns: Sequence[int], across: int, cursor: int) -> Line:
    spans: list[Span] = [Span(" " * _LEFT)]
    used = 0
    for place, (column, tokens) in enumerate(zip(columns, curves.budgets, strict=True)):
        label = short_budget(tokens)
        start = min(max(used, column - cells(label) // 2), max(across + 3 - cells(label), used))
        spans += [Span(" " * (start - used)), Span(label, "title" if place == cursor else "dim")]
        used = start + cells(label)
    return line(*spans, Span("  tokens", "dim") if used + 8 <= across + 3 else "", most=1)


def figures_lines(curves: BudgetCurves, cursor: int) -> list[Line]:
    """Return a line for each memory: its share at the cursor with interval, and at the limits of the run."""
    longest = max((cells(one_line(name)) for name in curves.memories), default=0)
    lines = []
    for (name, curve), (mark, tone, _) in zip(curves.memories.items(), _drawn(curves), strict=True):
        share, bounds = curve.answer_in_prompt[cursor], curve.interval[cursor]
        label = one_line(name)
        between = f" ({whole_share(bounds[0])} to {whole_share(bounds[1])})" if bounds is not None else ""
        if share is None:
            rest = "  nothing can be known: no ranking or evidence was recorded"
        else:
            right = "" if curve.accuracy is None else f", {whole_share(curve.accuracy)} answered right"
            rest = f"  n {curve.n:,} · in the run {whole_share(curve.as_recorded)}{right}"
        lines.append(
            line(
                Span(f"{mark} ", tone),
                Span(f"{label}{' ' * (longest - cells(label))}  ", "key"),
                Span(f"{share_at(curve, cursor):>6}", "strong"),
                Span(between, "dim"),
                Span("  estimate" if curve.estimates[cursor] else "", "warn"),
                Span(rest, "dim"),
                hang=longest + 4,
                most=2,
            )
        )
    return lines
