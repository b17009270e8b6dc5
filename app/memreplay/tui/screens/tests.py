"""The results of a run of tests: points by dataset, and every test with its replies and reasons."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from memreplay.timeline.timeline import Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.panels.answers import ANSWER_LEGEND
from memreplay.tui.panels.tests import ScoresDocument, listed_tests, totals_of
from memreplay.tui.requests import Destination, Position
from memreplay.tui.screens.listing import Listing, ListingScreen, Scores
from memreplay.tui.text import Span, one_line, wrapped
from memreplay.tui.widgets.bars import Bar

_MOST_ROWS_OF_TOTALS = 5
_BORDERS = 4


class TestScoresScreen(ListingScreen[Destination | None]):
    """Returns where the user wants to look in the replay, or None."""

    __test__ = False

    PLACE: ClassVar[Place] = "tests"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._conversation = timeline.conversation.id
        self._tests = listed_tests(timeline)
        self.document = ScoresDocument(self._tests, ("",))

    @property
    def picture_name(self) -> str:
        return f"{self._conversation}-tests"

    def on_mount(self) -> None:
        self.query_one("#header", Bar).say(
            Span(" TESTS ", "recorded"), Span(f"  {one_line(self._conversation)}", "strong")
        )
        scores = self.query_one("#scores", Scores)
        scores.border_title = Content("points / maximum")
        scores.show(totals_of(self._tests, 0))
        tests = self.query_one(Listing)
        tests.border_title = Content(f"finished tests · {len(self._tests)}")
        tests.show(self.document)
        self.query_one("#legend", Bar).say(Span(f" {ANSWER_LEGEND}", "dim"))

    def on_resize(self) -> None:
        """Give the points as many rows as they need."""
        rows = len(wrapped(totals_of(self._tests, 0), max(self.size.width - _BORDERS, 1)))
        self.query_one("#scores", Scores).styles.height = min(rows, _MOST_ROWS_OF_TOTALS) + 2

    def action_to_score(self) -> None:
        self.dismiss(Position(self._tests[self.document.cursor].some.turn))

    def action_to_beginning(self) -> None:
        self.dismiss(Position(self._tests[self.document.cursor].begun[0]))

    def action_leave(self) -> None:
        self.dismiss(None)
