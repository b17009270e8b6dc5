"""Two recordings against each other, question by question, those first on which they disagree most."""

from __future__ import annotations

from collections.abc import Sequence

from app.replay.aligning import AlignedQuestion, Contender
from app.replay.asks import Answer
from app.tui.text import Line, Row, Span, beside, line, one_line
from app.tui.views.answers import sign_of
from app.tui.views.listed import ListedDocument

_ROWS_OF_ANSWER = 3


class CompareDocument(ListedDocument):
    """A block a question: what was asked, then what either recording's architectures answered, side by side."""

    def __init__(self, questions: Sequence[AlignedQuestion]) -> None:
        super().__init__()
        self._questions = questions

    def __len__(self) -> int:
        return len(self._questions)

    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        """A question between the two sides."""
        aligned = self._questions[index]
        asked = [
            line(
                Span(f"{aligned.disagreement:.0%} disagree  ", "warn"), Span(one_line(aligned.question.type), "dim")
            ),
            line(Span(one_line(aligned.question.text), "strong")),
            line(Span("expected ", "dim"), Span(one_line(aligned.question.expected), "value"), hang=2),
        ]
        return beside([asked, _side(aligned, 0), _side(aligned, 1)], [width // 3 - 2] * 3)


def tally(questions: Sequence[AlignedQuestion]) -> str:
    """How many questions both recordings were asked, and on how many their answers disagree."""
    both = [one for one in questions if {who.side for who in one.answers} == {0, 1}]
    return f"{len(both)} questions in both · answers disagree on {sum(one.disagreement > 0 for one in both)}"


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
