"""The architectures side by side, as many as fit; a key or a click shows the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message

from memreplay.timeline.timeline import Timeline
from memreplay.tui.widgets.lines_view import AROUND_A_TITLE, Bar, LinesView
from memreplay.views.document import LinesDocument
from memreplay.views.panels import MARKED, PAGES, DiffBase, Page, Panel, View, lines_view, placeholder
from memreplay.views.panels.architectures import panels_of
from memreplay.views.text import Line, Span, holds_words, one_line, width_of

_NEVER_HEARD = "memory never heard this turn: the run was interrupted before it"

_LONG = 100
"""Lines from which on a panel takes all the room that it gets."""
_FEWEST = 2


class PanelView(LinesView):
    """A panel of an architecture."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(classes="panel")
        self.panel = panel
        self._view: View | None = None
        self._titles = "", ""
        self._limit: int | None = None
        self._opened: set[Hashable] = set()
        self.styles.height = f"{panel.weight}fr"

    def move_to(self, cursor: int, base: DiffBase, *, heard: bool) -> None:
        """Show the panel at a position, compared with a base; ``heard``: the memory got that far."""
        view = self.panel.at(cursor, base) if heard else lines_view(self.panel.name, placeholder(_NEVER_HEARD))
        self._view = view
        self._title()
        self._show_view(view)

    @property
    def rows_wanted(self) -> int | None:
        """Return the rows that show everything, with the borders; None if they are many, or not known yet."""
        document, width = self.document, self.scrollable_content_region.width
        if not width or not isinstance(document, LinesDocument) or len(document) > _LONG:
            return None
        return max(self.get_content_height(self.size, self.size, width), _FEWEST) + self.gutter.height

    def limit(self, rows: int | None) -> None:
        """Let the panel be no higher than so many rows."""
        if rows != self._limit:
            self._limit = rows
            self.styles.max_height = rows

    def highlight_text(self, text: str) -> None:
        super().highlight_text(text)
        if self._view is not None:
            self._show_view(self._view)

    @on(LinesView.Followed)
    def _unfold(self, message: LinesView.Followed) -> None:
        """Show what stands behind a line, or hide it again."""
        if self._view is not None and message.subject in self._view.folds:
            message.stop()
            self._opened ^= {message.subject}
            self._show_view(self._view)

    def block_with_text(self, text: str, near: int | None = None) -> int | None:
        """Return the first line that holds a text; what stands behind a line is opened for it."""
        block, view = super().block_with_text(text, near), self._view
        if block is None and near is None and view is not None and (hidden := view.folds.keys() - self._opened):
            self._show_view(view.unfolded(view.folds))
            block = super().block_with_text(text)
            self._opened |= hidden if block is not None else set()
            self._show_view(view)
        return block

    def _show_view(self, view: View) -> None:
        view = view.unfolded(self._opened)
        document = view.document
        if isinstance(document, LinesDocument):
            document = LinesDocument(
                [replace(line, most=None) if self._in_full(line) else line for line in document.lines]
            )
        self.show(document, in_view=view.in_view)

    def _in_full(self, line: Line) -> bool:
        """Return whether a line is shown to its end: where there is room, and where the words of a search stand."""
        if line.most is None:
            return False
        return self.is_maximized or (bool(self.found_words) and holds_words(line, self.found_words))

    def on_resize(self, event: events.Resize) -> None:
        self._title()

    def _title(self) -> None:
        """Name the panel in its borders, as far as there is room."""
        if self._view is None:
            return
        if width := self.outer_size.width:
            # Low panels have no lower border.
            titles = self._view.borders(width - AROUND_A_TITLE, lower=not self.screen.has_class("-short"))
        else:
            titles = self._view.title.split(" · ")[0], ""  # until the first layout
        if titles != self._titles:
            self._titles = titles
            self.border_title = Content(titles[0])
            self.border_subtitle = Content(titles[1]) if titles[1] else None


class ArchitecturePane(Vertical):
    """The panels of one architecture, one page at a time. Only visible panels are computed."""

    def __init__(self, timeline: Timeline, backend: str) -> None:
        super().__init__(classes="architecture")
        self.backend = backend
        self._timeline = timeline
        self._description = timeline.description(backend), timeline.calls_a_model(backend)
        self._page: Page = PAGES[0]
        self._pages: dict[Page, list[PanelView]] = {PAGES[0]: self._new_panels(PAGES[0])}

    def compose(self) -> ComposeResult:
        yield Bar(classes="failure")
        yield from self._pages[self._page]

    @property
    def panels(self) -> Iterator[PanelView]:
        """Return the panels of the page, top to bottom."""
        return iter(self._pages[self._page])

    def turn_to(self, page: Page) -> None:
        """Show another page of panels, and create it the first time."""
        had_focus = any(panel.has_focus for panel in self.panels)
        for panel in self.panels:
            panel.display = False
        self._page = page
        if page not in self._pages:
            self._pages[page] = self._new_panels(page)
            self.mount(*self._pages[page])
        for panel in self.panels:
            panel.display = True
        if had_focus:
            self.focus_panel()

    def move_to(self, cursor: int, base: DiffBase) -> None:
        """Show every panel at a position."""
        self._follow_description()
        failures = self._timeline.failures_at(self.backend, cursor)
        failure = self.query_one(".failure", Bar)
        failure.display = bool(failures)
        if failures:
            failure.say(Span(f"! {failures[0].phase} failed: {one_line(failures[0].error)}", "bad"))
        heard = self._timeline.was_heard(cursor)
        for panel in self.panels:
            panel.move_to(cursor, base, heard=heard)
        self._share_height()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._share_height)

    def _share_height(self) -> None:
        """Give each panel no more rows than it has; the longest one takes what the others leave."""
        panels = [*self.panels]
        wanted = [panel.rows_wanted for panel in panels]
        longest = max(range(len(panels)), key=lambda place: wanted[place] or _LONG, default=0)
        for place, (panel, rows) in enumerate(zip(panels, wanted, strict=True)):
            panel.limit(None if place == longest else rows)

    def focus_panel(self) -> None:
        """Focus the first panel."""
        next(self.panels).focus(scroll_visible=False)

    def select(self, subject: Hashable) -> bool:
        """Focus the panel of this page that shows a subject and select its line. False if there is none."""
        for panel in self.panels:
            block = panel.block_about(subject)
            if block is not None:
                panel.focus(scroll_visible=False)
                panel.select_with_rest(block)
                return True
        return False

    def _follow_description(self) -> None:
        """Make the panels again once a live memory was opened, and has said which panels it has."""
        description = self._timeline.description(self.backend), self._timeline.calls_a_model(self.backend)
        if description == self._description:
            return
        self._description = description
        had_focus = any(panel.has_focus for panel in self.panels)
        for panel in [panel for panels in self._pages.values() for panel in panels]:
            panel.remove()
        self._pages = {self._page: self._new_panels(self._page)}
        self.mount(*self.panels)
        if had_focus:
            self.focus_panel()

    def _new_panels(self, page: Page) -> list[PanelView]:
        return [PanelView(panel) for panel in panels_of(self._timeline, self.backend, page)]


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


_NARROWEST_PANE = 38


class Architectures(Vertical):
    """A row of names, and a column of panels for each architecture that fits."""

    def __init__(self, timeline: Timeline, backends: Sequence[str], *, id: str) -> None:
        super().__init__(id=id)
        self.panes = [ArchitecturePane(timeline, name) for name in backends]
        for pane in self.panes:
            # How many fit is known after the first layout.
            pane.display = False
        self._first = 0
        self._cursor = 0
        self._base = MARKED
        self.page: Page = PAGES[0]

    def compose(self) -> ComposeResult:
        yield ArchitectureTabs([pane.backend for pane in self.panes], id="tabs")
        with Horizontal(id="panes"):
            yield from self.panes

    @property
    def shown(self) -> range:
        """Return the indexes of the architectures on the screen."""
        count = max(1, min(len(self.panes), self.size.width // _NARROWEST_PANE))
        first = max(0, min(self._first, len(self.panes) - count))
        return range(first, min(first + count, len(self.panes)))

    def on_resize(self, event: events.Resize) -> None:
        self._arrange_panes()

    def move_to(self, cursor: int, base: DiffBase) -> None:
        """Show those on the screen at a position, compared with a base."""
        self._cursor, self._base = cursor, base
        if self.size.width:
            for index in self.shown:
                self.panes[index].move_to(cursor, base)

    def next_page(self) -> None:
        self.turn_to(PAGES[(PAGES.index(self.page) + 1) % len(PAGES)])

    def turn_to(self, page: Page) -> None:
        """Show a page of panels of every architecture."""
        self.page = page
        for pane in self.panes:
            pane.turn_to(self.page)
        self._arrange_panes()

    @property
    def focused_backend(self) -> str | None:
        """Return the architecture whose panel has the focus."""
        return next((pane.backend for pane in self.panes if pane.has_focus_within), None)

    def show_backend(self, backend: str) -> None:
        """Bring an architecture onto the screen by its name and focus it."""
        for index, pane in enumerate(self.panes):
            if pane.backend == backend:
                self.focus_one(index)

    def focus_one(self, index: int) -> None:
        """Bring an architecture onto the screen by its index and focus it."""
        if not 0 <= index < len(self.panes):
            return
        if index not in self.shown:
            self._first = index
            self._arrange_panes()
        self.panes[index].focus_panel()

    def select(self, backend: str, subject: Hashable) -> None:
        """Focus the panel of an architecture that shows a subject, and select its line."""
        pane = next((pane for pane in self.panes if pane.backend == backend), None)
        if pane is None:
            return
        pane.move_to(self._cursor, self._base)
        if not pane.select(subject) and self.page != PAGES[0]:
            self.turn_to(PAGES[0])
            pane.select(subject)

    def select_text(self, backend: str, text: str, *, in_hits: bool) -> None:
        """Focus the panel of an architecture that shows a text, and select its line.

        ``in_hits``: look at what was retrieved first, else at it last.
        """
        pane = next((pane for pane in self.panes if pane.backend == backend), None)
        if pane is None:
            return
        if self.page != PAGES[0]:
            self.turn_to(PAGES[0])
        for panel in sorted(pane.panels, key=lambda panel: (panel.panel.name == "retrievals") != in_hits):
            block = panel.block_with_text(text)
            if block is not None:
                panel.focus(scroll_visible=False)
                panel.select(block)
                return

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
