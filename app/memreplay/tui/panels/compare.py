"""Two recordings compared by the tests that both ran."""

from __future__ import annotations

from memreplay.debugger.alignment import TurnAlignment
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.tests import ScoresDocument, listed_tests, tally_of_tests


class ComparedTests:
    """The tests of two recordings, those with the largest difference in points first."""

    def __init__(self, left: Timeline, right: Timeline) -> None:
        self._tests = listed_tests(left, right)
        names = [", ".join(timeline.backends) for timeline in (left, right)]
        self.document = ScoresDocument(self._tests, names)
        self.tally = tally_of_tests(self._tests)
        self.turns_in_both = TurnAlignment(left.conversation, right.conversation).paired

    def positions(self, index: int) -> tuple[int, int]:
        """Where a test was scored, in both recordings; where it began, if it did not finish."""
        test = self._tests[index]
        left, right = (
            scored.turn if scored is not None else begun
            for scored, begun in zip(test.sides, test.begun, strict=True)
        )
        return left, right
