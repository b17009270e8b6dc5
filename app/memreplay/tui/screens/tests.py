"""The results of a run of tests: points, and every test with its replies and reasons; and of two runs compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from memreplay.debugger.alignment import turns_in_both
from memreplay.timeline.timeline import Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import Destination, Position, VisitWanted
from memreplay.tui.screens import Dialog, KeyBar, Listing, ListingScreen, Scores
from memreplay.tui.sources import ReplaySource
from memreplay.tui.widgets.lines_view import Bar, LinesView
from memreplay.views.panels.answers import ANSWER_LEGEND
from memreplay.views.panels.tests import ScoresDocument, listed_tests, tally_of_tests, test_lines, totals_of
from memreplay.views.text import Line, Span, one_line, wrapped

_MOST_ROWS_OF_TOTALS = 8
_BORDERS = 4


class TestWhyScreen(Dialog[None]):
    """A test in full: questions, expectation, replies, and how it was graded."""

    __test__ = False

    PLACE: ClassVar[Place] = "beside"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        yield LinesView(id="test", classes="panel")
        yield KeyBar()

    def on_mount(self) -> None:
        view = self.query_one("#test", LinesView)
        view.border_title = Content("why this score")
        view.show(self._lines)
        view.focus()


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


@dataclass(frozen=True)
class Opened:
    """A conversation of a recording, with the name of the file."""

    name: str
    source: ReplaySource


class CompareScreen(ListingScreen[None]):
    """The tests of two recordings, those with the largest difference in points first."""

    PLACE: ClassVar[Place] = "compare"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, left: Opened, right: Opened) -> None:
        super().__init__()
        self._sides = left, right
        timelines = left.source.timeline, right.source.timeline
        self._tests = listed_tests(*timelines)
        self.document = ScoresDocument(self._tests, [", ".join(timeline.backends) for timeline in timelines])

    @property
    def picture_name(self) -> str:
        return f"{self._sides[0].name}-against-{self._sides[1].name}"

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Listing(id="questions")
        yield Bar(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        left, right = self._sides
        self.query_one("#header", Bar).say(
            Span(" COMPARED ", "recorded"),
            Span(f"  1 {one_line(left.name)}", "strong"),
            Span("  against", "dim"),
            Span(f"  2 {one_line(right.name)}", "strong"),
            Span(f"  {self._turns_in_both} turns in both", "dim"),
        )
        questions = self.query_one(Listing)
        questions.border_title = Content(tally_of_tests(self._tests))
        questions.show(self.document)
        self.query_one("#legend", Bar).say(Span(f" {ANSWER_LEGEND}", "dim"))

    @property
    def _turns_in_both(self) -> int:
        left, right = (side.source.timeline.conversation for side in self._sides)
        return turns_in_both(left, right)

    def action_open_left(self) -> None:
        self._open(0)

    def action_open_right(self) -> None:
        self._open(1)

    def _open(self, side: int) -> None:
        position = 1
        if self._tests:
            # Where the test was scored; where it began, if it did not finish.
            test = self._tests[self.document.cursor]
            scored = test.sides[side]
            position = scored.turn if scored is not None else test.begun[side]
        self.post_message(VisitWanted(self._sides[side].source, Position(position)))
