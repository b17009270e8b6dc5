"""Typing one line: a turn's number, a search, a condition, a note, a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from app.tui.actions import Place, bindings_of
from app.tui.text import Span, Tone, line, one_line
from app.tui.widgets.lines_view import LinesView

Refusal = Callable[[str], str | None]
"""One sentence of why a text cannot be used; None where it can."""


class Fitting(LinesView, can_focus=False):
    """What fits, or what is wrong: a sentence, in as many rows as it takes."""

    SHOWS_PLACE = False

    def say(self, sentence: str, tone: Tone) -> None:
        """Show it."""
        self.show([line(Span(one_line(sentence), tone))])


class TypingScreen(ModalScreen[str | None]):
    """Ends with what was typed, or with None. ``value`` stands there from the start, ``note`` says what fits."""

    PLACE: ClassVar[Place] = "prompt"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, note: str, *, value: str = "", refusal: Refusal = lambda text: None) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._value = value
        self._refusal = refusal

    def compose(self) -> ComposeResult:
        """One line to type in, and below it what fits or what is wrong."""
        with Vertical(id="typing"):
            yield Input(self._value, id="typed", compact=True)
            yield Fitting(id="fits")

    def on_mount(self) -> None:
        """Say what is wanted."""
        self.query_one("#typing").border_title = Content(one_line(self._title))
        self.query_one(Fitting).say(self._note, "dim")

    @on(Input.Submitted)
    def _typed(self, message: Input.Submitted) -> None:
        message.stop()
        refused = self._refusal(message.value.strip())
        if refused is None:
            self.dismiss(message.value.strip())
        else:
            self.query_one(Fitting).say(refused, "bad")

    def action_leave(self) -> None:
        """Type nothing."""
        self.dismiss(None)
