"""The results of a run of tests: points by dataset, and every test with its replies and reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer

from memreplay.timeline.timeline import Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.panels.answers import ANSWER_LEGEND
from memreplay.tui.panels.tests import ScoresDocument, listed_tests, test_lines, totals_of
from memreplay.tui.requests import Destination, Position
from memreplay.tui.screens.listing import Listing, ListingScreen, Scores
from memreplay.tui.text import Line, Span, one_line, wrapped
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView

_MOST_ROWS_OF_TOTALS = 8
_BORDERS = 4


class TestWhyScreen(ModalScreen[None]):
    """A test in full: questions, expectation, replies, and how it was graded."""

    __test__ = False

    PLACE: ClassVar[Place] = "beside"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        yield LinesView(id="test", classes="panel")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        view = self.query_one("#test", LinesView)
        view.border_title = Content("why this score")
        view.show(self._lines)
        view.focus()

    def action_leave(self) -> None:
        self.dismiss()


class TestScoresScreen(ListingScreen[Destination | None]):
    """Returns where the user wants to look in the replay, or None."""

    __test__ = False

    PLACE: ClassVar[Place] = "tests"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, timeline: Timeline, *, memory_recorded: bool = True) -> None:
        super().__init__()
        self._memory_recorded = memory_recorded
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
        scores.show(totals_of(self._tests, 0, self._width))
        tests = self.query_one(Listing)
        tests.border_title = Content(f"finished tests · {len(self._tests)}")
        tests.show(self.document)
        self.query_one("#legend", Bar).say(Span(f" {ANSWER_LEGEND}", "dim"))

    @property
    def _width(self) -> int:
        return max(self.size.width - _BORDERS, 1)

    def on_resize(self) -> None:
        """Give the points as many rows as they need."""
        lines = totals_of(self._tests, 0, self._width)
        scores = self.query_one("#scores", Scores)
        scores.styles.height = min(len(wrapped(lines, self._width)), _MOST_ROWS_OF_TOTALS) + 2
        scores.show(lines)

    def action_why(self) -> None:
        """Show the selected test in full."""
        if self._tests:
            scored = self._tests[self.document.cursor].some
            self.app.push_screen(TestWhyScreen(test_lines(scored, memory_recorded=self._memory_recorded)))

    def action_to_score(self) -> None:
        self.dismiss(Position(self._tests[self.document.cursor].some.turn))

    def action_to_beginning(self) -> None:
        self.dismiss(Position(self._tests[self.document.cursor].begun[0]))

    def action_leave(self) -> None:
        self.dismiss(None)
