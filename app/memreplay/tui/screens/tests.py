"""The results of a run of tests: points, and every test with its replies and reasons; and of two runs compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from memreplay.debugger.alignment import turns_in_both
from memreplay.numbers import counted
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import Position, VisitWanted
from memreplay.tui.screens import Listing, ListingScreen, Scores
from memreplay.tui.screens.dialogs import TextScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.widgets.lines_view import Bar
from memreplay.views.panels.answers import ANSWER_LEGEND
from memreplay.views.panels.tests import ScoresDocument, listed_tests, tally_of_tests, test_lines, totals_of
from memreplay.views.text import Span, line, one_line, wrapped

_MOST_ROWS_OF_TOTALS = 8
_BORDERS = 4


@dataclass(frozen=True)
class Opened:
    """A conversation of a recording, with the name of the file."""

    name: str
    source: ReplaySource


class TestsScreen(ListingScreen[None]):
    """The tests of one recording, or of two: those with the largest difference in points first."""

    __test__ = False

    PLACE: ClassVar[Place] = "tests"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, *sides: Opened) -> None:
        super().__init__()
        self._sides = sides
        timelines = [side.source.timeline for side in sides]
        self._tests = listed_tests(*timelines)
        self._are_two = len(sides) > 1
        names = [", ".join(timeline.backends) for timeline in timelines] if self._are_two else [""]
        self.document = ScoresDocument(self._tests, names)

    @property
    def picture_name(self) -> str:
        names = "-against-".join(side.name for side in self._sides)
        return names if self._are_two else f"{names}-tests"

    def on_mount(self) -> None:
        names = [Span(f"  {one_line(side.name)}", "strong") for side in self._sides]
        tests = self.query_one(Listing)
        if self._are_two:
            both = turns_in_both(*(side.source.timeline.conversation for side in self._sides))
            left, right = names
            head = [Span(" TESTS COMPARED ", "recorded"), left, Span("  against", "dim"), right]
            head.append(Span(f"  {counted(both, 'turn')} in both", "dim"))
            tests.border_title = Content(tally_of_tests(self._tests))
        else:
            head = [Span(" TESTS ", "recorded"), *names]
            tests.border_title = Content(f"finished tests · {len(self._tests)}")
        self.query_one("#header", Bar).say(*head)
        scores = self.query_one("#scores", Scores)
        scores.border_title = Content("points / maximum")
        tests.show(self.document)
        self.query_one("#legend", Bar).say(Span(f" {ANSWER_LEGEND}", "dim"))
        self.on_resize()

    def on_resize(self) -> None:
        """Give the points as many rows as they need."""
        width = max(self.size.width - _BORDERS, 1)
        lines = [each for side in range(len(self._sides)) for each in totals_of(self._tests, side, width)]
        scores = self.query_one("#scores", Scores)
        scores.styles.height = min(len(wrapped(lines, width)), _MOST_ROWS_OF_TOTALS) + 2
        scores.show(lines)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the key that opens the second recording where there is none."""
        return self._are_two if action == "to_second" else True

    def action_why(self) -> None:
        """Show the selected test in full."""
        if self._tests:
            test = self._tests[self.document.cursor]
            pairs = zip(test.sides, self._sides, strict=True)
            pages = [
                test_lines(scored, memory_recorded=side.source.shows_memory)
                for scored, side in pairs
                if scored is not None
            ]
            self.app.push_screen(
                TextScreen("why this score", [each for page in pages for each in (*page, line(""))])
            )

    def action_to_score(self) -> None:
        self._open(0)

    def action_to_second(self) -> None:
        self._open(1)

    def action_to_beginning(self) -> None:
        self._open(0, beginning=True)

    def _open(self, side: int, *, beginning: bool = False) -> None:
        """Open a recording where the selected test was scored, or began; also there if it did not finish."""
        position = 1
        if self._tests:
            test = self._tests[self.document.cursor]
            scored = test.sides[side]
            position = test.begun[side] if scored is None or beginning else scored.turn
        app = self.app

        def reopen() -> None:
            app.push_screen(TestsScreen(*self._sides))

        wanted = VisitWanted(self._sides[side].source, Position(position), None if self._are_two else reopen)
        self.post_message(wanted)
