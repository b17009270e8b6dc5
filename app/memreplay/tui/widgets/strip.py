"""The timeline strip: the whole conversation as a row of ticks, with a row of sessions above if there is room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from textual import events
from textual.message import Message

from memreplay.debugger.lifetime import Lifetime
from memreplay.timeline.markers import Column, MarkKind, SessionStart, column_of
from memreplay.timeline.timeline import Timeline
from memreplay.tui.widgets.lines_view import Bar
from memreplay.views.text import Line, Span, Tone, clip, line

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
        """Return the last position on the strip: the end of the conversation, closed or not."""
        return self._timeline.last_turn + 1

    def position_at(self, cell: int) -> int:
        for share in self._shares:
            if cell < share.end:
                inside = (cell - share.start) / (share.end - share.start)
                return share.column.first + int(inside * (share.column.last - share.column.first + 1))
        return self.last

    def ticks(self, cursor: int, frontier: int, width: int) -> Line:
        """Return the row of ticks, with the cursor on it."""
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

    def lifetimes(self, lives: Mapping[str, Lifetime], width: int) -> list[Line]:
        """Return a row for each memory: a bar over the turns after which it knew an answer, and its name."""
        return [_lifetime_row(name, life, self._columns(width), width) for name, life in lives.items()]

    def sessions(self, width: int) -> Line | None:
        """Return the row of sessions, each with its date if there is room; None if there is a single undated
        one.
        """
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


def _lifetime_row(name: str, life: Lifetime, shares: Sequence[_Share], width: int) -> Line:
    """Return the row of a memory: a bar where it knows the answer, and its name.

    The name stands on the side with more room. If that is too narrow it stands in the bar, whose ends stay in
    sight; where that is too narrow as well, the name is clipped.
    """
    cells = [
        any(life.knows(turn) for turn in range(share.column.first, share.column.last + 1))
        for share in shares
        for _ in range(share.end - share.start)
    ]
    text = ["█" if known else " " for known in cells]
    first = cells.index(True) if True in cells else len(cells)
    after = len(cells) - cells[::-1].index(True) if True in cells else len(cells)
    sides = sorted([(first, 0), (len(cells) - after, after)], key=lambda side: side[0], reverse=True)
    rooms = [*sides, (after - first - 2, first + 1)]
    span = f": {_span_of(life)} "
    wanted = len(span) + len(name) + 1
    room, start = next((each for each in rooms if each[0] >= wanted), max(rooms))
    label = f" {clip(name, max(room - len(span) - 1, 1))}{span}"[:room]
    before, behind = "".join(text[:start]), "".join(text[start + len(label) :])
    return line(Span(before, "good"), Span(label, "key"), Span(behind, "good"), most=1)


def _span_of(life: Lifetime) -> str:
    if life.learnt is None:
        return "never known"
    return f"{life.learnt}–{'end' if life.forgotten is None else life.forgotten - 1}"


class TimelineStrip(Bar):
    """One row of ticks, a row of sessions above it if the screen is tall enough, and bars below. Clicks and drags
    seek."""

    @dataclass
    class Sought(Message):
        """The user pointed at a position."""

        position: int

    def __init__(self, timeline: Timeline, *, id: str) -> None:
        super().__init__(id=id)
        self._view = StripView(timeline)
        self._lives: Mapping[str, Lifetime] = {}
        self._at = 0, 0
        self._dragging = False

    def move_to(self, cursor: int, frontier: int) -> None:
        """Show the cursor; positions beyond the frontier are drawn as not played yet."""
        self._at = cursor, frontier
        width = self.size.width
        if not width:
            return
        sessions = None if self.screen.has_class("-short") else self._view.sessions(width)
        ticks = self._view.ticks(cursor, frontier, width)
        lines = [ticks] if sessions is None else [sessions, ticks]
        lines += self._view.lifetimes(self._lives, width)
        if self.styles.height is None or self.styles.height.value != len(lines):
            self.styles.height = len(lines)
        self.show(lines)

    @property
    def lives(self) -> Mapping[str, Lifetime]:
        """Return the bars that are shown, by memory."""
        return self._lives

    def show_lifetimes(self, lives: Mapping[str, Lifetime]) -> None:
        """Show from the next paint on when each memory knew an answer; none removes the bars."""
        self._lives = lives

    def refresh_marks(self) -> None:
        """Count the marks again at the next paint."""
        self._view.refresh()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.move_to(*self._at)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._dragging = True
        self.capture_mouse()
        self._seek(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self._seek(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self._dragging = False
        self.release_mouse()

    def _seek(self, event: events.MouseEvent) -> None:
        self.post_message(self.Sought(self._view.position_at(event.x)))
