"""A screen with a list that keys and clicks move through: questions, tests, or a comparison of two recordings."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen, ScreenResultType
from textual.widgets import Footer

from memreplay.tui.controllers.navigation import TypedCount
from memreplay.tui.document import Document
from memreplay.tui.screens.dialogs import export_screen
from memreplay.tui.screens.overlays import HelpScreen
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView


class Listing(LinesView, can_focus=False):
    """The list; the keys of the screen move through it."""


class Scores(LinesView, can_focus=False):
    """The scores above a list."""


class Listed(Document, Protocol):
    """A document with a selected item."""

    cursor: int


class ListingScreen(Screen[ScreenResultType]):
    """A list that the user moves through by keys, with counts, and by clicks."""

    document: Listed

    def __init__(self) -> None:
        super().__init__()
        self.count = TypedCount()

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Scores(id="scores")
        yield Listing(id="questions")
        yield Bar(id="legend")
        yield Footer(show_command_palette=False, compact=True)

    @property
    @abstractmethod
    def picture_name(self) -> str:
        """The file name of an exported picture."""

    @property
    def was_left(self) -> bool:
        """Whether the user left before a background thread of this screen finished."""
        return self not in self.app.screen_stack

    def moved(self) -> None:
        """Show what depends on the selected item, and on the count."""

    def point_at(self, index: int) -> None:
        """Select an item, or the nearest one, and scroll it into view."""
        self.document.cursor = max(0, min(index, len(self.document) - 1))
        self.repaint_list()

    def repaint_list(self) -> None:
        listing = self.query_one(Listing)
        listing.bring_into_view(self.document.cursor)
        listing.repaint()
        self.moved()

    def _by(self, items: int) -> None:
        """Move by items, as often as was typed."""
        self.point_at(self.document.cursor + items * (self.count.take() or 1))

    @property
    def _page(self) -> int:
        return max(1, self.query_one(Listing).scrollable_content_region.height - 1)

    def action_next(self) -> None:
        self._by(1)

    def action_previous(self) -> None:
        self._by(-1)

    def action_page_down(self) -> None:
        self._by(self._page)

    def action_page_up(self) -> None:
        self._by(-self._page)

    def action_first(self) -> None:
        self.count.take()
        self.point_at(0)

    def action_last(self) -> None:
        """The last item, or the one of the number that was typed."""
        number = self.count.take()
        place = len(self.document) - 1 if number is None else self.place_of_number(number)
        if place is None:
            self.notify(f"Number {number} is not in this list.", markup=False)
        else:
            self.point_at(place)

    def place_of_number(self, number: int) -> int | None:
        """The place of the item with a 1-based number; None if it is not listed."""
        return number - 1 if number <= len(self.document) else None

    def action_digit(self, digit: int) -> None:
        self.count.add(digit)
        self.moved()

    def action_export(self) -> None:
        export_screen(self, self.picture_name)

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())

    def choose(self) -> None:
        """Do what enter does: a click on the selected item calls it."""

    @on(LinesView.BlockClicked)
    def _clicked(self, message: LinesView.BlockClicked) -> None:
        if not isinstance(message.view, Listing):
            return
        if message.block == self.document.cursor:
            self.choose()
        else:
            self.point_at(message.block)
