"""The rows at the top of a screen: single lines, the tabs of the architectures, and the timeline strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message

from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.panel import PAGES, Page
from memreplay.tui.panels.strip import StripView
from memreplay.tui.text import Line, Span, Tone, line, one_line, width_of
from memreplay.tui.widgets.lines_view import LinesView


class Bar(LinesView, can_focus=False):
    """A single row."""

    SHOWS_PLACE = False

    def say(self, *parts: str | Span) -> None:
        """Show one line; what does not fit ends in an ellipsis."""
        self.show([line(*parts, most=1)])


class NoteBar(Bar):
    """A sentence behind a sign; hidden while there is none."""

    def __init__(self, sign: str, sign_tone: Tone, tone: Tone, *, id: str) -> None:
        super().__init__(id=id)
        self._sign = Span(sign, sign_tone)
        self._tone = tone
        self.display = False

    def set(self, sentence: str) -> None:
        """Show a sentence, or hide the bar if it is empty."""
        self.display = bool(sentence)
        if sentence:
            self.say(self._sign, Span(one_line(sentence), self._tone))


class ArchitectureTabs(Bar):
    """The architectures by number: those on screen above their columns, then the others. A click shows one."""

    @dataclass
    class Chosen(Message):
        """An architecture was clicked, by its 0-based index."""

        index: int

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = tuple(names)
        self._ends: list[tuple[int, int]] = []

    def mark(self, shown: range, width: int, page: Page) -> None:
        """Align those on screen with columns that share ``width`` cells; append the others as far as they fit."""
        hidden = [index for index in range(len(self._names)) if index not in shown]
        spans: list[Span] = []
        self._ends = []
        for index in (*shown, *hidden):
            on = index in shown
            spans += [Span(f" {index + 1} ", "accent" if on else "dim")]
            spans += [Span(f"{one_line(self._names[index])} ", "title" if on else "dim")]
            if on and page != PAGES[0]:
                spans.append(Span(f"· {page} ", "accent"))
            if on and index != shown[-1]:
                column_end = width * (index - shown[0] + 1) // len(shown)
                spans.append(Span(" " * max(0, column_end - width_of(spans))))
            self._ends.append((width_of(spans), index))
        self.show([Line(tuple(spans), most=1)])

    def on_click(self, event: events.Click) -> None:
        index = next((index for end, index in self._ends if event.x < end), None)
        if index is not None:
            self.post_message(self.Chosen(index))


class TimelineStrip(Bar):
    """One row of ticks, and a row of sessions above it if the screen is tall enough. Clicks and drags seek."""

    @dataclass
    class Sought(Message):
        """The user pointed at a position."""

        position: int

    def __init__(self, timeline: Timeline, *, id: str) -> None:
        super().__init__(id=id)
        self._view = StripView(timeline)
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
        if self.styles.height is None or self.styles.height.value != len(lines):
            self.styles.height = len(lines)
        self.show(lines)

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
