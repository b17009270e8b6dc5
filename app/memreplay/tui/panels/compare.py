"""Two recordings compared by the questions that both were asked, or by the tests that both ran."""

from __future__ import annotations

from collections.abc import Sequence

from memreplay.debugger.alignment import AlignedQuestion, Contender, TurnAlignment, align_questions
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.document import ListDocument
from memreplay.tui.panels.answers import sign_of
from memreplay.tui.panels.tests import ScoresDocument, listed_tests, tally_of_tests
from memreplay.tui.text import Line, Row, Span, beside, line, one_line

_ROWS_OF_ANSWER = 3


class CompareDocument(ListDocument):
    """One block per question: the question, then the answers of both recordings side by side."""

    def __init__(self, questions: Sequence[AlignedQuestion]) -> None:
        super().__init__()
        self._questions = questions

    def __len__(self) -> int:
        return len(self._questions)

    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        aligned = self._questions[index]
        asked = [
            line(
                Span(f"{aligned.disagreement:.0%} disagree  ", "warn"), Span(one_line(aligned.question.type), "dim")
            ),
            line(Span(one_line(aligned.question.text), "strong")),
            line(Span("expected ", "dim"), Span(one_line(aligned.question.expected), "value"), hang=2),
        ]
        return beside([asked, _side(aligned, 0), _side(aligned, 1)], [width // 3 - 2] * 3)


def _side(aligned: AlignedQuestion, side: int) -> list[Line]:
    lines: list[Line] = []
    for who, answer in aligned.answers.items():
        if who.side == side:
            lines += _answer(who, answer)
    return lines or [line(Span("not asked", "dim"))]


def _answer(who: Contender, answer: Answer) -> list[Line]:
    assert answer.scored is not None
    said = answer.scored.score.predicted or ""
    head = line(sign_of(answer), Span(f" {one_line(who.backend)}", "key"), Span(f"  {one_line(who.model)}", "dim"))
    return [head, line("  ", one_line(said), hang=2, most=_ROWS_OF_ANSWER)]


class ComparedQuestions:
    """The questions of two recordings, those with the most disagreement first."""

    def __init__(self, left: Timeline, right: Timeline) -> None:
        self._conversation = left.conversation
        self._questions = align_questions(left, right)
        self._turns = TurnAlignment(left.conversation, right.conversation)
        self.document = CompareDocument(self._questions)
        both = [one for one in self._questions if {who.side for who in one.answers} == {0, 1}]
        disagreed = sum(one.disagreement > 0 for one in both)
        self.tally = f"{len(both)} questions in both · answers disagree on {disagreed}"
        self.turns_in_both = self._turns.paired

    def positions(self, index: int) -> tuple[int, int]:
        """Where the evidence of a question was said, in both recordings; the end if it has none."""
        known = self._conversation.turns_by_id
        turns = [known[turn].number for turn in self._questions[index].question.evidence if turn in known]
        left = min(turns, default=len(self._conversation.turns))
        return left, self._turns.to_right(left)


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
