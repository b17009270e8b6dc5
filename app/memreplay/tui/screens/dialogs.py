"""Small screens on top of another: typing a line, picking one of several; and saving a screen as SVG."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, OptionList

from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.text import Span, Tone, line, one_line
from memreplay.tui.widgets.lines_view import LinesView

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


class PickScreen(ModalScreen[int | None]):
    """Ends with the place of what was chosen, from 0; None where nothing was."""

    PLACE: ClassVar[Place] = "pick"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = tuple(names)

    def compose(self) -> ComposeResult:
        """The list."""
        options = OptionList(*(Content(one_line(name)) for name in self._names), id="pick", compact=True)
        options.border_title = Content(self._title)
        yield options

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(message.option_index)

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


def export_screen(screen: Screen[Any], name: str) -> None:
    """Save the screen, and say where. ``name`` may hold anything: only letters, digits, ``-`` and ``_`` stay."""
    path = Path.cwd() / f"memreplay-{re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-')}.svg"
    try:
        path.write_text(screen.app.export_screenshot(), encoding="utf-8")
    except OSError as error:
        screen.notify(f"{path}: cannot be written: {error.strerror}.", severity="error", markup=False)
    else:
        screen.notify(f"Saved as {path}", markup=False)
