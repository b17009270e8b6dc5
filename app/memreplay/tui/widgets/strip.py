"""The timeline strip on the screen: it shows where the cursor is, and seeks where it is clicked."""

from __future__ import annotations

from textual import events
from textual.message import Message

from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.strip import StripView
from memreplay.tui.widgets.lines_view import LinesView


class TimelineStrip(LinesView, can_focus=False):
    """One row of ticks; a row of sessions above it where the screen is tall enough."""

    SHOWS_PLACE = False

    class Sought(Message):
        """A position was pointed at."""

        def __init__(self, position: int) -> None:
            super().__init__()
            self.position = position

    def __init__(self, timeline: Timeline, *, id: str) -> None:
        super().__init__(id=id)
        self._view = StripView(timeline)
        self._at = 0, 0
        self._dragging = False

    def move_to(self, cursor: int, frontier: int) -> None:
        """Show the cursor at a position; what lies beyond the frontier was not played yet."""
        self._at = cursor, frontier
        width = self.size.width
        if not width:
            return
        sessions = None if self.screen.has_class("-short") else self._view.sessions(width)
        ticks = self._view.ticks(cursor, frontier, width)
        lines = [ticks] if sessions is None else [sessions, ticks]
        if self.styles.height is None or self.styles.height.value != len(lines):
            self.styles.height = len(lines)
        self.show(lines)

    def on_replay_event(self) -> None:
        """Something happened, or was bookmarked: count anew when it is drawn next."""
        self._view.refresh()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new width."""
        super().on_resize(event)
        self.move_to(*self._at)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Seek, and go on as long as the button is held."""
        self._dragging = True
        self.capture_mouse()
        self.post_message(self.Sought(self._view.position_at(event.x)))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the mouse."""
        if self._dragging:
            self.post_message(self.Sought(self._view.position_at(event.x)))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        self._dragging = False
        self.release_mouse()
