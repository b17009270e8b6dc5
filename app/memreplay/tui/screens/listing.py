"""A screen with a list that keys and clicks move through: questions, tests, or a comparison of two recordings."""

from __future__ import annotations

from abc import abstractmethod

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen, ScreenResultType
from textual.widgets import Footer

from memreplay.tui.document import ListDocument
from memreplay.tui.screens.dialogs import export_screen
from memreplay.tui.screens.overlays import HelpScreen
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView


class Listing(LinesView, can_focus=False):
    """The list; the keys of the screen move through it."""


class Scores(LinesView, can_focus=False):
    """The scores above a list."""


class ListingScreen(Screen[ScreenResultType]):
    """Scores above, and below a list that the user moves through."""

    document: ListDocument

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

    def action_next(self) -> None:
        self.point_at(self.document.cursor + 1)

    def action_previous(self) -> None:
        self.point_at(self.document.cursor - 1)

    def action_export(self) -> None:
        export_screen(self, self.picture_name)

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())

    def point_at(self, index: int) -> None:
        """Select an item, or the nearest one, and scroll it into view."""
        self.document.cursor = max(0, min(index, len(self.document) - 1))
        listing = self.query_one(Listing)
        listing.bring_into_view(self.document.cursor)
        listing.repaint()

    @on(LinesView.BlockClicked)
    def _clicked(self, message: LinesView.BlockClicked) -> None:
        if isinstance(message.view, Listing):
            self.point_at(message.block)
