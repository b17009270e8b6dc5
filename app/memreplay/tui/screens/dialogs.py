"""Dialogs over a screen: type a line, pick one of several, read a text, see a state before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, OptionList

from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens import Dialog, KeyBar
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.text import Line, Span, Tone, line, one_line

Refusal = Callable[[str], str | None]
"""Returns one sentence on why a text is invalid, None if it is valid."""


class PickList(OptionList):
    """Textual's list, which raises KeyError for a page key while its options are not laid out."""

    def action_page_up(self) -> None:
        """Move up a page."""
        if self._index_to_line:
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        """Move down a page."""
        if self._index_to_line:
            super().action_page_down()  # type: ignore[no-untyped-call]


class Hint(LinesView, can_focus=False):
    """A sentence on what the dialog expects, or on what is wrong, in as many rows as it needs."""

    SHOWS_PLACE = False

    def say(self, sentence: str, tone: Tone) -> None:
        self.show([line(Span(one_line(sentence), tone))])


class TypingScreen(Dialog[str | None]):
    """Returns the typed text, or None. ``value`` is the initial text, ``note`` says what is expected."""

    PLACE: ClassVar[Place] = "prompt"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, note: str, *, value: str = "", refusal: Refusal = lambda text: None) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._value = value
        self._refusal = refusal

    def compose(self) -> ComposeResult:
        with Vertical(id="typing"):
            yield Input(self._value, id="typed", compact=True)
            yield Hint(id="fits")

    def on_mount(self) -> None:
        self.query_one("#typing").border_title = Content(one_line(self._title))
        self.query_one(Hint).say(self._note, "dim")

    @on(Input.Submitted)
    def _typed(self, message: Input.Submitted) -> None:
        message.stop()
        problem = self._refusal(message.value.strip())
        if problem is None:
            self.dismiss(message.value.strip())
        else:
            self.query_one(Hint).say(problem, "bad")


class PickScreen(Dialog[int | None]):
    """Returns the 0-based index of the choice, or None."""

    PLACE: ClassVar[Place] = "pick"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = tuple(names)

    def compose(self) -> ComposeResult:
        options = PickList(*(Content(one_line(name)) for name in self._names), id="pick", compact=True)
        options.border_title = Content(self._title)
        yield options

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(message.option_index)


class TextScreen(Dialog[None]):
    """Shows lines in full; escape closes it."""

    PLACE: ClassVar[Place] = "pick"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        view = LinesView(id="text", classes="panel")
        view.border_title = Content(one_line(self._title))
        yield view

    def on_mount(self) -> None:
        self.query_one("#text", LinesView).show(self._lines)


class BesideScreen(Dialog[None]):
    """A state in two aligned ``columns``, before and after. ``titles`` name their positions."""

    PLACE: ClassVar[Place] = "beside"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, key: str, columns: tuple[Sequence[Line], Sequence[Line]], titles: tuple[str, str]) -> None:
        super().__init__()
        self._key = key
        self._columns = columns
        self._titles = titles

    def compose(self) -> ComposeResult:
        with Horizontal(id="beside"):
            yield LinesView(id="before", classes="panel")
            yield LinesView(id="after", classes="panel")
        yield KeyBar()

    def on_mount(self) -> None:
        for name, title, lines in zip(("before", "after"), self._titles, self._columns, strict=True):
            view = self.query_one(f"#{name}", LinesView)
            view.border_title = Content(f"{title} · {one_line(self._key)}")
            view.show(lines)
        self.query_one("#after", LinesView).focus(scroll_visible=False)
