"""All keys, from the one table of actions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer

from app.tui.actions import PLACES, Place, actions_of, bindings_of, shown_key
from app.tui.text import Line, Span, line, pad
from app.tui.views.answers import EVIDENCE_LEGEND, LEGEND
from app.tui.views.conversation import SIGNIFICANCE_LEGEND
from app.tui.views.prompt import PROMPT_LEGEND
from app.tui.views.strip import STRIP_LEGEND
from app.tui.widgets.lines_view import LinesView

_SIGNS = (
    "+ added  − removed  ~ changed at this turn",
    "▶ the cursor  ◇ 2 the turn answers question 2  ◆ the question you came from  × cut from the prompt",
    LEGEND,
    EVIDENCE_LEGEND,
    STRIP_LEGEND,
    SIGNIFICANCE_LEGEND,
    PROMPT_LEGEND,
)


class HelpScreen(ModalScreen[None]):
    """Keys and signs."""

    PLACE: ClassVar[Place] = "help"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def compose(self) -> ComposeResult:
        """One scrollable list."""
        yield LinesView(id="help")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Fill it."""
        view = self.query_one("#help", LinesView)
        view.border_title = Content("keys and signs")
        view.show(list(_help_lines()))
        view.focus()

    def action_leave(self) -> None:
        """Back."""
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
