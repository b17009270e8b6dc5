"""Where the tokens of a context come from: a bar of shares, and what was cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from app.replay.timeline import Timeline
from app.tui.text import Line, Span, Tone, line, one_line
from app.tui.views.base import MARKED, Base
from app.tui.views.view import View, lines_view, nothing
from memory_backends.base import Cut, Hit

_BAR = 20
_FULL: Final = "█"
_EMPTY: Final = "░"


class CompositionPanel:
    """The context that memory gave for the latest message, or for the questions asked at the position."""

    name = "context"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The shares at the position."""
        perceived = self._timeline.perceived_at(self._backend, cursor)
        if perceived is None:
            return lines_view(self.name, nothing("nothing was given to a prompt yet"))
        lines = composition_lines(perceived.hits, perceived.cut, perceived.tokens)
        title = f"context · for turn {perceived.turn}"
        return lines_view(title, lines, note=f"{perceived.tokens:,} tokens")


def composition_lines(hits: Sequence[Hit], cut: Iterable[Cut], tokens: int) -> list[Line]:
    """A bar for each place, as a share of everything that was there to give; then what was cut from it."""
    taken = _tokens_by_place(hits, tokens)
    left_out: dict[str, int] = defaultdict(int)
    for part in cut:
        left_out[part.place] += part.tokens
    whole = max(1, sum(taken.values()) + sum(left_out.values()))
    lines = []
    for place in dict.fromkeys((*taken, *left_out)):
        if taken.get(place):
            lines += _bar("  ", place, taken[place], whole, "value")
        if left_out.get(place):
            lines += _bar("× ", place, left_out[place], whole, "removed")
    return lines or nothing("the context is empty")


def _tokens_by_place(hits: Sequence[Hit], tokens: int) -> dict[str, int]:
    taken: dict[str, int] = defaultdict(int)
    for hit in hits:
        if hit.in_prompt:
            taken[hit.place] += hit.tokens
    between = tokens - sum(taken.values())
    if between > 0:
        taken["between hits" if taken else "context"] += between
    return taken


def _bar(sign: str, place: str, tokens: int, whole: int, tone: Tone) -> list[Line]:
    cells = max(1, round(_BAR * tokens / whole))
    left_out = " cut" if sign != "  " else ""
    return [
        line(Span(sign, tone), Span(one_line(place.split(":")[0]), "key"), Span(left_out, tone), most=1),
        line(
            Span("  "),
            Span(_FULL * cells, tone),
            Span(_EMPTY * (_BAR - cells), "dim"),
            Span(f" {tokens:,} · {tokens / whole:.0%}", "dim"),
            most=1,
        ),
    ]
