"""The results as a document: a block a question, with what each architecture answered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from app.conversations.models import Question
from app.replay.timeline import Answer
from app.tui.text import Line, Row, Span, Tone, beside, line, one_line, visible, wrapped
from app.tui.views.answers import AnswersTable, Contestant, sign_of

_NARROWEST_COLUMN = 26
_ROWS_OF_ANSWER = 4
_SIGN = 2


class ResultsDocument:
    """Questions beside the answers where there is room for columns, above them where there is not."""

    def __init__(self, table: AnswersTable) -> None:
        self._table = table
        self.cursor = 0
        self.column = 0
        self._laid_out = lru_cache(maxsize=512)(self._lay_out)

    def __len__(self) -> int:
        return len(self._table.questions)

    def height(self, index: int, width: int) -> int:
        """Rows that a question takes."""
        return len(self._laid_out(index, width, None))

    def guess(self, index: int, width: int) -> int:
        """Exactly as many."""
        return self.height(index, width)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a question."""
        return self._laid_out(index, width, self.column if index == self.cursor else None)

    def subject(self, index: int) -> None:
        """Nothing: the screen moves through questions and answers by keys of its own."""

    def chosen(self) -> Answer | None:
        """The answer that is pointed at."""
        return self._table.answer(self._table.questions[self.cursor], self._table.contestants[self.column])

    def point_at_first_wrong(self) -> None:
        """Point at the first answer to this question that is not right; at the first of all where all are."""
        question = self._table.questions[self.cursor]
        answers = [self._table.answer(question, who) for who in self._table.contestants]
        wrong = (
            column
            for column, answer in enumerate(answers)
            if answer is not None and answer.scored is not None and answer.scored.score.outcome != "correct"
        )
        self.column = next(wrong, 0)

    def _lay_out(self, index: int, width: int, column_here: int | None) -> tuple[Row, ...]:
        current = column_here is not None
        question = self._table.questions[index]
        asked = question_lines(index + 1, question)
        answers = [
            answer_lines(self._table, question, who, pointed_at=column == column_here)
            for column, who in enumerate(self._table.contestants)
        ]
        inner = width - _SIGN
        columns = len(answers) + 1
        column = (inner - 2 * columns) // columns
        if column >= _NARROWEST_COLUMN:
            rows = beside([asked, *answers], [column] * columns)
        else:
            rows = wrapped(asked, inner) + [
                Row((Span("  "), *row.spans)) for lines in answers for row in wrapped(lines, inner - 2)
            ]
        sign = Span("▶ " if current else "  ", "accent")
        fill: Tone | None = "current" if current else None
        first = Row((sign, *rows[0].spans), fill)
        rest = [Row((Span("  "), *row.spans), fill) for row in rows[1:]]
        return (first, *rest, Row())


def question_lines(number: int, question: Question) -> list[Line]:
    """A question: number and type, text, and what was expected."""
    other = f" / {one_line(question.other_type)}" if question.other_type else ""
    return [
        line(Span(f"{number}. ", "dim"), Span(f"{one_line(question.type)}{other}", "title")),
        line(Span(one_line(question.text), "strong")),
        line(Span("expected ", "dim"), Span(one_line(question.expected), "value"), hang=2),
    ]


def answer_lines(
    table: AnswersTable, question: Question, contestant: Contestant, *, pointed_at: bool
) -> list[Line]:
    """An answer: sign and architecture, whether all evidence stood in the prompt, and what was said."""
    answer = table.answer(question, contestant)
    name = Span(f"{'▸' if pointed_at else ' '}{table.name_of(contestant)}", "accent" if pointed_at else "key")
    head = [sign_of(answer), name, Span(_evidence(answer), "dim")]
    said = _said(answer)
    body = [line("  ", said, hang=2, most=_ROWS_OF_ANSWER)] if said.text else []
    return [line(*head, hang=2), *body]


def _evidence(answer: Answer | None) -> str:
    if answer is None or answer.scored is None:
        return ""
    stood = answer.scored.retrieval.evidence_in_prompt
    if stood is None:
        return ""
    return " · evidence ✓" if stood else " · evidence ✗"


def _said(answer: Answer | None) -> Span:
    if answer is None or answer.received is None:
        return Span("")
    reply = answer.received.reply
    if reply.error is not None:
        return Span(one_line(reply.error), "bad")
    predicted = answer.scored.score.predicted if answer.scored else None
    return Span(visible(predicted or reply.text or "").replace("\n", " ⏎ "))
