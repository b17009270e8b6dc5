"""One memory architecture on the screen: its panels, one above the other."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from app.replay.timeline import Timeline
from app.tui.text import Span, one_line
from app.tui.views.architectures import panels_of
from app.tui.views.base import Base
from app.tui.views.pages import PAGES, Page
from app.tui.views.view import Panel
from app.tui.widgets.bars import Bar
from app.tui.widgets.lines_view import LinesView


class PanelView(LinesView):
    """A panel of an architecture, as wide and high as it is given room."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(classes="panel")
        self.panel = panel
        self._titles = "", ""
        self.styles.height = f"{panel.weight}fr"

    def move_to(self, cursor: int, base: Base) -> None:
        """Show the panel at a position, compared with a base."""
        view = self.panel.at(cursor, base)
        # On a short screen the panels have no lower edge, and the note goes to the upper one.
        short = self.screen.has_class("-short")
        self._entitle(
            f"{view.title} · {view.note}" if short and view.note else view.title, "" if short else view.note
        )
        self.show(view.document, in_view=view.in_view)

    def _entitle(self, title: str, note: str) -> None:
        if (title, note) != self._titles:
            self._titles = title, note
            self.border_title = Content(title)
            self.border_subtitle = Content(note) if note else None


class ArchitecturePane(Vertical):
    """The panels of one architecture, a page of them at a time. Only those on the screen are worked out."""

    def __init__(self, timeline: Timeline, backend: str) -> None:
        super().__init__(classes="architecture")
        self.backend = backend
        self._timeline = timeline
        self._page: Page = PAGES[0]
        self._pages: dict[Page, list[PanelView]] = {PAGES[0]: self._made(PAGES[0])}

    def compose(self) -> ComposeResult:
        """What is wrong with it, if anything is; then its panels."""
        yield Bar(classes="failure")
        yield from self._pages[self._page]

    @property
    def panels(self) -> Iterator[PanelView]:
        """The panels of the page, top to bottom."""
        return iter(self._pages[self._page])

    def turn_to(self, page: Page) -> None:
        """Show another page of panels. It is made when it is shown for the first time."""
        had_focus = any(panel.has_focus for panel in self.panels)
        for panel in self.panels:
            panel.display = False
        self._page = page
        if page in self._pages:
            for panel in self.panels:
                panel.display = True
        else:
            self._pages[page] = self._made(page)
            self.mount(*self._pages[page])
        if had_focus:
            self.focus_panel()

    def move_to(self, cursor: int, base: Base) -> None:
        """Show every panel at a position."""
        failures = self._timeline.failures_at(self.backend, cursor)
        failure = self.query_one(".failure", Bar)
        failure.display = bool(failures)
        if failures:
            failure.say(Span(f"! {failures[0].phase} failed: {one_line(failures[0].error)}", "bad"))
        for panel in self.panels:
            panel.move_to(cursor, base)

    def focus_panel(self) -> None:
        """Put the focus on its first panel."""
        next(self.panels).focus(scroll_visible=False)

    def select(self, subject: Hashable) -> bool:
        """Focus the panel of this page that tells of something and select its line; whether there is one."""
        for panel in self.panels:
            block = panel.block_about(subject)
            if block is not None:
                panel.focus(scroll_visible=False)
                panel.select_with_rest(block)
                return True
        return False

    def _made(self, page: Page) -> list[PanelView]:
        return [PanelView(panel) for panel in panels_of(self._timeline, self.backend, page)]
