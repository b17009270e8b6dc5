"""Single rows: bars, notes, and the tabs of the architectures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message

from memreplay.tui.panels.panel import PAGES, Page
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
