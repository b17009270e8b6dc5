"""The results of a run of tests: points by dataset, and every test with what was said and why it got its points."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from memreplay.timeline.timeline import Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.document import ListedDocument
from memreplay.tui.panels.answers import LEGEND
from memreplay.tui.panels.tests import ScoresDocument, listed_tests, totals_of
from memreplay.tui.requests import Destination, Position
from memreplay.tui.screens.listing import Listing, ScoredListingScreen, Scores
from memreplay.tui.text import Span, one_line, wrapped
from memreplay.tui.widgets.bars import Bar

_MOST_ROWS_OF_TOTALS = 5
_BORDERS = 4


class TestScoresScreen(ScoredListingScreen[Destination | None]):
    """Ends with where the user wants to look, or with None."""

    __test__ = False

    PLACE: ClassVar[Place] = "tests"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._conversation = timeline.conversation.id
        self._tests = listed_tests(timeline)
        self._document = ScoresDocument(self._tests, ("",))

    @property
    def listed(self) -> ListedDocument:
        """What is listed."""
        return self._document

    @property
    def picture_name(self) -> str:
        """What an exported picture is called."""
        return f"{self._conversation}-tests"

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one("#header", Bar).say(
            Span(" TESTS ", "recorded"), Span(f"  {one_line(self._conversation)}", "strong")
        )
        scores = self.query_one("#scores", Scores)
        scores.border_title = Content("points, of the most there are")
        scores.show(totals_of(self._tests, 0))
        tests = self.query_one(Listing)
        tests.border_title = Content(f"tests that are over · {len(self._tests)}")
        tests.show(self._document)
        self.query_one("#legend", Bar).say(Span(f" {LEGEND}", "dim"))

    def on_resize(self) -> None:
        """Give the points as many rows as they take."""
        rows = len(wrapped(totals_of(self._tests, 0), max(self.size.width - _BORDERS, 1)))
        self.query_one("#scores", Scores).styles.height = min(rows, _MOST_ROWS_OF_TOTALS) + 2

    def action_to_score(self) -> None:
        """Into the replay, where the test was scored."""
        self.dismiss(Position(self._tests[self._document.cursor].some.turn))

    def action_to_beginning(self) -> None:
        """Into the replay, where the test begins."""
        self.dismiss(Position(self._tests[self._document.cursor].begun[0]))

    def action_leave(self) -> None:
        """Back to where the replay was."""
        self.dismiss(None)
