"""Choosing one of several, where a file holds more than one conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList

from app.tui.actions import Place, bindings_of
from app.tui.text import one_line


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
