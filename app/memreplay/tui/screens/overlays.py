"""Full-size overlays: help, made from the table of actions, and a state before and after."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer

from memreplay.tui.actions import PLACES, Place, actions_of, bindings_of, shown_key
from memreplay.tui.panels.answers import ANSWER_LEGEND, EVIDENCE_LEGEND, LABEL_WORDS, label_tone
from memreplay.tui.panels.conversation import SIGNIFICANCE_LEGEND
from memreplay.tui.panels.prompt import PROMPT_LEGEND
from memreplay.tui.panels.state_lines import sides
from memreplay.tui.panels.strip import STRIP_LEGEND
from memreplay.tui.text import Line, Span, line, one_line, pad
from memreplay.tui.widgets.lines_view import LinesView


class BesideScreen(ModalScreen[None]):
    """A state in two aligned columns, before and after. ``titles`` name their positions."""

    PLACE: ClassVar[Place] = "help"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, key: str, before: Any, after: Any, titles: tuple[str, str]) -> None:
        super().__init__()
        self._key = key
        self._columns = sides(before, after)
        self._titles = titles

    def compose(self) -> ComposeResult:
        with Horizontal(id="beside"):
            yield LinesView(id="before", classes="panel")
            yield LinesView(id="after", classes="panel")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        for name, title, lines in zip(("before", "after"), self._titles, self._columns, strict=True):
            view = self.query_one(f"#{name}", LinesView)
            view.border_title = Content(f"{title} · {one_line(self._key)}")
            view.show(lines)
        self.query_one("#after", LinesView).focus(scroll_visible=False)

    def action_leave(self) -> None:
        self.dismiss()


_SIGNS = (
    "+ added  − removed  ~ changed at this turn",
    "▶ the cursor  ◇ 2 evidence of question 2  ◆ evidence of the question you came from  × cut from the prompt",
    ANSWER_LEGEND,
    EVIDENCE_LEGEND,
    STRIP_LEGEND,
    SIGNIFICANCE_LEGEND,
    PROMPT_LEGEND,
)


class HelpScreen(ModalScreen[None]):
    """All keys, signs and failure labels."""

    PLACE: ClassVar[Place] = "help"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def compose(self) -> ComposeResult:
        yield LinesView(id="help")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        view = self.query_one("#help", LinesView)
        view.border_title = Content("keys and signs")
        view.show(list(_help_lines()))
        view.focus()

    def action_leave(self) -> None:
        self.dismiss()


def _help_lines() -> Iterator[Line]:
    for place, title in PLACES.items():
        yield line(Span(title, "title"))
        for description, actions in groupby(actions_of(place), lambda action: action.description):
            keys = " ".join(shown_key(key) for action in actions for key in action.keys)
            yield line(Span(f"  {pad(keys, 9)} ", "key"), description, hang=12)
        yield line("")
    yield line(Span("Everywhere", "title"))
    yield line(Span(f"  {pad('ctrl+p', 9)} ", "key"), "The command palette: every action by name, and the themes.")
    yield line("")
    yield line(Span("Signs", "title"))
    for signs in _SIGNS:
        yield line("  ", signs, hang=2)
    yield line("")
    yield line(Span("Failure labels", "title"))
    for label, words in LABEL_WORDS.items():
        yield line(Span(f"  {pad(label, 18)}", label_tone(label)), words, hang=20)
