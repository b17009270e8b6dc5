"""The promotion ledger: what was judged at a turn, with its score, the decision and one sentence of why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from memory_backends.stores.trace import PromotionDecision, SignificanceFactors
from memreplay.timeline.ledger import Ledger
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.panel import MARKED, Base, View, lines_view, nothing
from memreplay.tui.subjects import DecisionSubject
from memreplay.tui.text import Line, Span, Tone, line, one_line

Decision = Literal["ADD", "UPDATE", "NO-OP", "DROP"]

_SIGNS: Final[dict[Decision, tuple[str, Tone]]] = {
    "ADD": ("+ ADD   ", "added"),
    "UPDATE": ("~ UPDATE", "changed"),
    "NO-OP": ("= NO-OP ", "dim"),
    "DROP": ("− DROP  ", "removed"),
}


_MOST_DECISIONS = 100


class PromotionsPanel:
    """The candidates judged at the position, and how many were judged up to it."""

    name = "promotions"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The decisions of exactly this position."""
        ledger = self._timeline.ledger(self._backend)
        decisions = ledger.at(cursor)
        lines = [one for decision in decisions for one in decision_lines(decision, cursor, self._backend)]
        note = _counts(ledger, cursor)
        return lines_view("promotions", lines or nothing("no candidate was judged at this turn"), note=note)


class LedgerPanel:
    """The promotion ledger: what became of every candidate up to the position, the newest first."""

    name = "promotion ledger"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The latest decisions up to the position."""
        ledger = self._timeline.ledger(self._backend)
        decided = ledger.until(cursor)
        newest = range(len(decided) - 1, max(-1, len(decided) - 1 - _MOST_DECISIONS), -1)
        lines: list[Line] = []
        for place in newest:
            turn, decision = decided[place]
            heading = Span(
                f"turn {turn}{' ← now' if turn == cursor else ''}", "accent" if turn == cursor else "dim"
            )
            if not lines or decided[place + 1][0] != turn:
                lines.append(line(heading))
            lines += decision_lines(decision, turn, self._backend)
        if len(decided) > _MOST_DECISIONS:
            lines.append(line(Span(f"⋯ {len(decided) - _MOST_DECISIONS:,} earlier", "dim")))
        return lines_view(self.name, lines or nothing("no candidate was judged yet"), note=_counts(ledger, cursor))


def _counts(ledger: Ledger, cursor: int) -> str:
    counts = ledger.counts_until(cursor)
    return " · ".join(f"{name} {count}" for name in _SIGNS if (count := counts.get(name)))


def decision_lines(decision: PromotionDecision, turn: int, backend: str) -> Iterator[Line]:
    """Score and decision, the content, why, and the factors of the score. The first of them leads on."""
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
