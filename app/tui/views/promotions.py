"""The promotion ledger: what was judged at a turn, with its score, the decision and one sentence of why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from app.replay.timeline import Timeline
from app.tui.text import Line, Span, Tone, line, one_line
from app.tui.views.view import View, lines_view, nothing
from memory_backends.operations import PromotionDecision

Decision = Literal["ADD", "UPDATE", "NO-OP", "DROP"]

_SIGNS: Final[dict[Decision, tuple[str, Tone]]] = {
    "ADD": ("+ ADD   ", "added"),
    "UPDATE": ("~ UPDATE", "changed"),
    "NO-OP": ("= NO-OP ", "dim"),
    "DROP": ("− DROP  ", "removed"),
}


class PromotionsPanel:
    """The candidates judged at the position, and how many were judged up to it."""

    name = "promotions"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int) -> View:
        """The decisions of exactly this position."""
        ledger = self._timeline.ledger(self._backend)
        lines = [line for decision in ledger.at(cursor) for line in decision_lines(decision)]
        counts = ledger.counts_until(cursor)
        note = " · ".join(f"{name} {count}" for name in _SIGNS if (count := counts.get(name)))
        return lines_view("promotions", lines or nothing("no candidate was judged at this turn"), note=note)


def decision_lines(decision: PromotionDecision) -> Iterator[Line]:
    """Score and decision, the content, and why."""
    sign, tone = _SIGNS[decision.decision]
    factors = decision.factors
    yield line(
        Span(sign, tone),
        Span(f" {decision.score:.2f}", "value"),
        Span(f" of {decision.threshold:.2f}  ", "dim"),
        Span(one_line(decision.slot), "key") if decision.slot else "",
        Span(f"  from turn {one_line(', '.join(decision.sources))}", "dim"),
        hang=2,
    )
    yield line("  ", one_line(decision.content), hang=2, most=2)
    yield line(
        "  ",
        Span(one_line(decision.justification), "dim"),
        Span(
            f" · certainty {factors.certainty:.2f} × impact {factors.impact:.2f}"
            f" × age {factors.age_decay:.2f} × recency {factors.recency_boost:.2f}",
            "dim",
        ),
        hang=2,
        most=3,
    )
