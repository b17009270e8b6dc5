"""Before and after of a state, side by side."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer

from app.tui.actions import Place, bindings_of
from app.tui.text import one_line
from app.tui.views.beside import sides
from app.tui.widgets.lines_view import LinesView


class BesideScreen(ModalScreen[None]):
    """Two columns whose rows belong together. ``titles`` say which positions they show."""

    PLACE: ClassVar[Place] = "help"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, key: str, before: Any, after: Any, titles: tuple[str, str]) -> None:
        super().__init__()
        self._key = key
        self._columns = sides(before, after)
        self._titles = titles

    def compose(self) -> ComposeResult:
        """Before at the left, after at the right."""
        with Horizontal(id="beside"):
            yield LinesView(id="before", classes="panel")
            yield LinesView(id="after", classes="panel")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Fill both."""
        for name, title, lines in zip(("before", "after"), self._titles, self._columns, strict=True):
            view = self.query_one(f"#{name}", LinesView)
            view.border_title = Content(f"{title} · {one_line(self._key)}")
            view.show(lines)
        self.query_one("#after", LinesView).focus(scroll_visible=False)

    def action_leave(self) -> None:
        """Back."""
        self.dismiss()
