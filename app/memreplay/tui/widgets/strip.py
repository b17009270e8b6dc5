"""The timeline strip. It is not among the other bars, since the first frame needs those and no timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from textual import events
from textual.message import Message

from memreplay.debugger.lifetime import Lifetime
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.strip import StripView
from memreplay.tui.widgets.bars import Bar


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
