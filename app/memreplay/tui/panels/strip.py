"""The timeline strip: the whole conversation as one row of ticks, with a row of sessions above if there is room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memreplay.timeline.markers import Column, MarkKind, SessionStart, column_of
from memreplay.timeline.timeline import Timeline
from memreplay.tui.text import Line, Span, Tone, line

_TICKS: Final[Mapping[MarkKind, tuple[str, Tone]]] = {
    "error": ("!", "bad"),
    "bookmark": ("★", "accent"),
    "question": ("?", "title"),
    "evidence": ("◇", "warn"),
    "supersession": ("~", "changed"),
    "promotion": ("+", "added"),
    "drop": ("−", "removed"),
    "write": ("·", "plain"),
}
"""A stretch shows the first of these that it contains."""
_SESSION: Final = ("┃", "title")
_NOTHING: Final = "─"
_TO_COME: Final = "┈"
STRIP_LEGEND: Final = (
    "! error  ★ bookmark  ? question  ◇ evidence  ~ superseded  + promoted  − dropped  · written  ┃ session"
)


@dataclass(frozen=True)
class _Share:
    """A stretch of positions and the cells that show it."""

    column: Column
    start: int
    end: int


class StripView:
    """The strip of one timeline. It counts the marks again only after :meth:`refresh`."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._shares: list[_Share] = []
        self._width = 0
        self._sessions: dict[int, Line | None] = {}

    def refresh(self) -> None:
        """Count the marks again at the next draw: an event or a bookmark was added."""
        self._width = 0

    @property
    def last(self) -> int:
        """The last position on the strip: the end of the conversation, closed or not."""
        return self._timeline.last_turn + 1

    def position_at(self, cell: int) -> int:
        for share in self._shares:
            if cell < share.end:
                inside = (cell - share.start) / (share.end - share.start)
                return share.column.first + int(inside * (share.column.last - share.column.first + 1))
        return self.last

    def ticks(self, cursor: int, frontier: int, width: int) -> Line:
        """The row of ticks, with the cursor on it."""
        shares = self._columns(width)
        current = column_of(cursor, len(shares), self.last)
        spans: list[Span] = []
        for number, share in enumerate(shares):
            sign, tone = _tick_of(share.column)
            cells = share.end - share.start
            played = share.column.first <= frontier
            fill = _NOTHING if played else _TO_COME
            text = (sign or fill) + fill * (cells - 1)
            spans.append(Span(text, "cursor" if number == current else tone if played or sign else "dim"))
        return line(*spans, most=1)

    def sessions(self, width: int) -> Line | None:
        """The row of sessions, each with its date if there is room; None if there is a single undated one."""
        if width not in self._sessions:
            self._sessions[width] = self._session_row(width)
        return self._sessions[width]

    def _session_row(self, width: int) -> Line | None:
        starts = self._timeline.marks.sessions
        if len(starts) < 2 and not any(start.date for start in starts):
            return None
        shares = self._columns(width)
        text: list[Span] = []
        used = 0
        cells = [shares[column_of(start.turn, len(shares), self.last)].start for start in starts]
        for start, (cell, following) in zip(starts, pairwise([*cells, width]), strict=True):
            label = _label_of(start)
            if cell < used or len(label) + 1 > following - cell:
                continue
            text += [Span(" " * (cell - used)), Span(label, "dim")]
            used = cell + len(label)
        return line(*text, most=1)

    def _columns(self, width: int) -> list[_Share]:
        if width != self._width:
            columns = self._timeline.marks.columns(width, self.last)
            edges = [index * width // len(columns) for index in range(len(columns) + 1)]
            self._shares = [
                _Share(column, start, end) for column, (start, end) in zip(columns, pairwise(edges), strict=True)
            ]
            self._width = width
        return self._shares


def _tick_of(column: Column) -> tuple[str, Tone]:
    for kind, (sign, tone) in _TICKS.items():
        if column.counts.get(kind) and (kind != "write" or not column.counts.get("session")):
            return sign, tone
    if column.counts.get("session"):
        return _SESSION
    return "", "dim"


def _label_of(start: SessionStart) -> str:
    return f"{start.date.day} {start.date:%b %Y}" if start.date else f"session {start.number}"
