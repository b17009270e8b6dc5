"""A screen with a list through which keys and clicks move: questions, tests, or those of two recordings."""

from __future__ import annotations

from abc import abstractmethod

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen, ScreenResultType
from textual.widgets import Footer

from memreplay.tui.document import ListedDocument
from memreplay.tui.screens.dialogs import export_screen
from memreplay.tui.screens.overlays import HelpScreen
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView


class Listing(LinesView, can_focus=False):
    """The list; the screen's keys move through it."""


class ListingScreen(Screen[ScreenResultType]):
    """Moves through a list that its subclass composes as a :class:`Listing` of a document."""

    @property
    @abstractmethod
    def listed(self) -> ListedDocument:
        """What is listed."""

    @property
    @abstractmethod
    def picture_name(self) -> str:
        """What an exported picture is called."""

    @property
    def was_left(self) -> bool:
        """Whether the user is gone, when a thread that read something for this screen has ended."""
        return self not in self.app.screen_stack

    def action_next(self) -> None:
        """The next item."""
        self.point_at(self.listed.cursor + 1)

    def action_previous(self) -> None:
        """The previous item."""
        self.point_at(self.listed.cursor - 1)

    def action_export(self) -> None:
        """Save the screen as a picture."""
        export_screen(self, self.picture_name)

    def action_help(self) -> None:
        """All keys."""
        self.app.push_screen(HelpScreen())

    def point_at(self, index: int) -> None:
        """Point at an item, or at the nearest there is, and bring it into view."""
        self.listed.cursor = max(0, min(index, len(self.listed) - 1))
        listing = self.query_one(Listing)
        listing.bring_into_view(self.listed.cursor)
        listing.repaint()

    @on(LinesView.BlockClicked)
    def _clicked(self, message: LinesView.BlockClicked) -> None:
        if isinstance(message.view, Listing):
            self.point_at(message.block)


class Scores(LinesView, can_focus=False):
    """A line for each architecture."""


class ScoredListingScreen(ListingScreen[ScreenResultType]):
    """Scores above, what they are made of below."""

    def compose(self) -> ComposeResult:
        """Header, scores, the list, and what its signs mean."""
        yield Bar(id="header")
        yield Scores(id="scores")
        yield Listing(id="questions")
        yield Bar(id="legend")
        yield Footer(show_command_palette=False, compact=True)
