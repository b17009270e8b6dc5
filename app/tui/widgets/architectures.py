"""The architectures side by side, as many as there is room for; the others are a key or a click away."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from app.replay.timeline import Timeline
from app.tui.views.base import MARKED, Base
from app.tui.views.pages import PAGES, Page
from app.tui.widgets.architecture import ArchitecturePane
from app.tui.widgets.bars import ArchitectureTabs

_NARROWEST_PANE = 38


class Architectures(Vertical):
    """A row of names and a column of panels for each architecture on the screen."""

    def __init__(self, timeline: Timeline, backends: Sequence[str], *, id: str) -> None:
        super().__init__(id=id)
        self.panes = [ArchitecturePane(timeline, name) for name in backends]
        self._first = 0
        self._cursor = 0
        self._base = MARKED
        self.page: Page = PAGES[0]

    def compose(self) -> ComposeResult:
        """Names above, panels below."""
        yield ArchitectureTabs([pane.backend for pane in self.panes], id="tabs")
        with Horizontal(id="panes"):
            yield from self.panes

    @property
    def shown(self) -> range:
        """Which of them are on the screen, by their place in the order."""
        count = max(1, min(len(self.panes), self.size.width // _NARROWEST_PANE))
        first = max(0, min(self._first, len(self.panes) - count))
        return range(first, min(first + count, len(self.panes)))

    def on_resize(self, event: events.Resize) -> None:
        """Show as many as there is room for."""
        self._arrange_panes()

    def move_to(self, cursor: int, base: Base) -> None:
        """Show those on the screen at a position, compared with a base."""
        self._cursor, self._base = cursor, base
        if self.size.width:
            for index in self.shown:
                self.panes[index].move_to(cursor, base)

    def next_page(self) -> None:
        """Show the next page of panels, of every architecture."""
        self.turn_to(PAGES[(PAGES.index(self.page) + 1) % len(PAGES)])

    def turn_to(self, page: Page) -> None:
        """Show a page of panels, of every architecture."""
        self.page = page
        for pane in self.panes:
            pane.turn_to(self.page)
        self._arrange_panes()

    @property
    def focused_backend(self) -> str | None:
        """The architecture whose panel has the focus."""
        return next((pane.backend for pane in self.panes if pane.has_focus_within), None)

    def show_backend(self, backend: str) -> None:
        """Bring an architecture onto the screen, by its name, and focus it."""
        names = [pane.backend for pane in self.panes]
        if backend in names:
            self.focus_one(names.index(backend))

    def focus_one(self, index: int) -> None:
        """Bring an architecture onto the screen, by its place in the order, and focus it."""
        if not 0 <= index < len(self.panes):
            return
        if index not in self.shown:
            self._first = index
            self._arrange_panes()
        self.panes[index].focus_panel()

    def select(self, backend: str, subject: Hashable) -> None:
        """Focus the panel of an architecture on the screen that tells of something, and select its line."""
        pane = next((pane for pane in self.panes if pane.backend == backend), None)
        if pane is None:
            return
        pane.move_to(self._cursor, self._base)
        if not pane.select(subject) and self.page != PAGES[0]:
            self.turn_to(PAGES[0])
            pane.select(subject)

    @on(ArchitectureTabs.Chosen)
    def _tab_chosen(self, message: ArchitectureTabs.Chosen) -> None:
        message.stop()
        self.focus_one(message.index)

    def _arrange_panes(self) -> None:
        shown = self.shown
        self.query_one("#tabs", ArchitectureTabs).mark(shown, self.size.width, self.page)
        for index, pane in enumerate(self.panes):
            pane.display = index in shown
        self.move_to(self._cursor, self._base)
