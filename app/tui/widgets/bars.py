"""One-row widgets: the header of the replay, the tabs of the architectures, and what is going on."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from app.tui.text import Line, Span, line, one_line, width_of
from app.tui.widgets.lines_view import LinesView


class Bar(LinesView, can_focus=False):
    """A single row."""

    def say(self, *parts: str | Span) -> None:
        """Show one line; what does not fit ends in an ellipsis."""
        self.show([line(*parts, most=1)])


class ArchitectureTabs(Bar):
    """The architectures by number; those on screen are marked. A click shows one."""

    class Chosen(Message):
        """An architecture was clicked: its place in the order, from 0."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = tuple(names)
        self._ends: list[int] = []

    def mark(self, shown: range) -> None:
        """Mark those on screen."""
        spans: list[Span] = []
        self._ends = []
        for index, name in enumerate(self._names):
            on = index in shown
            spans.append(Span(f" {index + 1} ", "accent" if on else "dim"))
            spans.append(Span(f"{one_line(name)} ", "title" if on else "dim"))
            self._ends.append(width_of(spans))
        self.show([Line(tuple(spans), most=1)])

    def on_click(self, event: events.Click) -> None:
        """Show the architecture that was clicked."""
        index = next((place for place, end in enumerate(self._ends) if event.x < end), None)
        if index is not None:
            self.post_message(self.Chosen(index))
