"""Two recordings against each other, question by question, those first on which they disagree most."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from app.replay.aligning import AlignedQuestion, Contender
from app.replay.timeline import Answer
from app.tui.text import Line, Row, Span, Tone, beside, line, one_line
from app.tui.views.answers import sign_of

_ROWS_OF_ANSWER = 3
_SIGN = 2


class CompareDocument:
    """A block a question: what was asked, then what either recording's architectures answered, side by side."""

    def __init__(self, questions: Sequence[AlignedQuestion]) -> None:
        self._questions = questions
        self.cursor = 0
        self._laid_out = lru_cache(maxsize=512)(self._lay_out)

    def __len__(self) -> int:
        return len(self._questions)

    def height(self, index: int, width: int) -> int:
        """Rows that a question takes."""
        return len(self._laid_out(index, width, False))

    def guess(self, index: int, width: int) -> int:
        """Exactly as many."""
        return self.height(index, width)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a question."""
        return self._laid_out(index, width, index == self.cursor)

    def subject(self, index: int) -> None:
        """Nothing: the screen moves through the questions by keys of its own."""

    def _lay_out(self, index: int, width: int, current: bool) -> tuple[Row, ...]:
        aligned = self._questions[index]
        asked = [
            line(
                Span(f"{aligned.disagreement:.0%} disagree  ", "warn"), Span(one_line(aligned.question.type), "dim")
            ),
            line(Span(one_line(aligned.question.text), "strong")),
            line(Span("expected ", "dim"), Span(one_line(aligned.question.expected), "value"), hang=2),
        ]
        column = (width - _SIGN) // 3 - 2
        rows = beside([asked, _side(aligned, 0), _side(aligned, 1)], [column] * 3)
        fill: Tone | None = "current" if current else None
        first = Row((Span("▶ " if current else "  ", "accent"), *rows[0].spans), fill)
        return (first, *(Row((Span("  "), *row.spans), fill) for row in rows[1:]), Row())


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
