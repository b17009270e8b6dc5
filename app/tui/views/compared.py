"""What two recordings are compared by: the questions that both were asked, or the tests that both were put to."""

from __future__ import annotations

from app.replay.aligning import TurnAlignment, align_questions
from app.replay.timeline import Timeline
from app.tui.views.compare import CompareDocument, tally
from app.tui.views.test_scores import ScoresDocument, listed_tests, tally_of_tests


class ComparedQuestions:
    """Questions, those first on which the answers disagree most."""

    def __init__(self, left: Timeline, right: Timeline) -> None:
        self._conversation = left.conversation
        self._questions = align_questions(left, right)
        self._turns = TurnAlignment(left.conversation, right.conversation)
        self.document = CompareDocument(self._questions)
        self.tally = tally(self._questions)
        self.turns_in_both = self._turns.paired

    def positions(self, index: int) -> tuple[int, int]:
        """Where the answer to a question was said, in either; the end where that is not named."""
        known = self._conversation.turns_by_id
        turns = [known[turn].number for turn in self._questions[index].question.evidence if turn in known]
        left = min(turns, default=len(self._conversation.turns))
        return left, self._turns.to_right(left)


class ComparedTests:
    """Tests, those first whose points are farthest apart."""

    def __init__(self, left: Timeline, right: Timeline) -> None:
        self._tests = listed_tests(left, right)
        names = [", ".join(timeline.backends) for timeline in (left, right)]
        self.document = ScoresDocument(self._tests, names)
        self.tally = tally_of_tests(self._tests)
        self.turns_in_both = TurnAlignment(left.conversation, right.conversation).paired

    def positions(self, index: int) -> tuple[int, int]:
        """Where a test was scored, in either; where it began, in one in which it is not over."""
        test = self._tests[index]
        left, right = (
            scored.turn if scored is not None else begun
            for scored, begun in zip(test.sides, test.begun, strict=True)
        )
        return left, right
