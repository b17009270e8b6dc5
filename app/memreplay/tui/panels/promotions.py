"""The promotion ledger: each judged candidate with its score, the decision and one sentence of why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from memory_backends.stores.trace import PromotionDecision, SignificanceFactors
from memreplay.timeline.ledger import Ledger
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.panel import View, lines_view, placeholder
from memreplay.tui.subjects import DecisionSubject
from memreplay.tui.text import Line, Span, Tone, line, one_line

_SIGNS: Final[Mapping[str, tuple[str, Tone]]] = {
    "ADD": ("+ ADD   ", "added"),
    "UPDATE": ("~ UPDATE", "changed"),
    "NO-OP": ("= NO-OP ", "dim"),
    "DROP": ("− DROP  ", "removed"),
}
_MOST_DECISIONS = 100


def promotions_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """The candidates judged at exactly this position, and counts of all decisions up to it."""
    ledger = timeline.ledger(backend)
    lines = [one for decision in ledger.at(cursor) for one in _decision_lines(decision, cursor, backend)]
    shown = lines or placeholder("no candidate was judged at this turn")
    return lines_view("promotions", shown, note=_counts(ledger, cursor))


def ledger_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """The latest decisions up to the position, newest first."""
    ledger = timeline.ledger(backend)
    decided = ledger.until(cursor)
    lines: list[Line] = []
    previous: int | None = None
    for turn, decision in (decided[at] for at in range(len(decided) - 1, -1, -1)[:_MOST_DECISIONS]):
        if turn != previous:
            now = turn == cursor
            lines.append(line(Span(f"turn {turn}{' ← now' if now else ''}", "accent" if now else "dim")))
        lines += _decision_lines(decision, turn, backend)
        previous = turn
    if len(decided) > _MOST_DECISIONS:
        lines.append(line(Span(f"⋯ {len(decided) - _MOST_DECISIONS:,} earlier", "dim")))
    shown = lines or placeholder("no candidate has been judged yet")
    return lines_view("promotion ledger", shown, note=_counts(ledger, cursor))


def _counts(ledger: Ledger, cursor: int) -> str:
    counts = ledger.counts_until(cursor)
    return " · ".join(f"{name} {count}" for name in _SIGNS if (count := counts.get(name)))


def _decision_lines(decision: PromotionDecision, turn: int, backend: str) -> Iterator[Line]:
    """Decision and score, content, why, and the factors of the score. The first line leads to the write."""
    sign, tone = _SIGNS[decision.decision]
    yield line(
        Span(sign, tone),
        Span(f" {decision.score:.2f}", "value"),
        Span(f" of {decision.threshold:.2f}  ", "dim"),
        Span(one_line(decision.slot), "key") if decision.slot else "",
        Span(f"  from turn {one_line(', '.join(decision.sources))}", "dim"),
        hang=2,
        about=DecisionSubject.of(backend, turn, decision),
    )
    yield line("  ", one_line(decision.content), hang=2, most=4)
    yield line("  ", Span(one_line(decision.justification), "dim"), hang=2, most=3)
    yield line("  ", Span(_product(decision.factors), "dim"), hang=2)


def _product(factors: SignificanceFactors) -> str:
    return (
        f"certainty {factors.certainty:.2f} × impact {factors.impact:.2f}"
        f" × age {factors.age_decay:.2f} × recency {factors.recency_boost:.2f}"
    )
