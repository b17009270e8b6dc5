"""The results as a document: a block a question, with what each architecture answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.conversations.models import Question
from app.replay.asks import Answer, AskKey
from app.scoring.attribution import Label
from app.tui.text import Line, Row, Span, beside, line, one_line, visible, wrapped
from app.tui.views.answers import AnswersTable, Contestant, key_of, sign_of
from app.tui.views.listed import ListedDocument

_NARROWEST_COLUMN = 26
_ROWS_OF_ANSWER = 4


class ResultsDocument(ListedDocument):
    """Questions beside the answers where there is room for columns, above them where there is not.

    ``labels`` say where the fact of an answer was lost, as far as that has been worked out; ``questions`` are those
    that are looked at.
    """

    def __init__(
        self, table: AnswersTable, questions: Sequence[Question], labels: Mapping[AskKey, Label] | None = None
    ) -> None:
        super().__init__()
        self._table = table
        self._questions = tuple(questions)
        self._labels = labels or {}
        self._numbers = {question.id: number for number, question in enumerate(table.questions, start=1)}
        self._column = 0

    def __len__(self) -> int:
        return len(self._questions)

    @property
    def column(self) -> int:
        """Whose answer is pointed at."""
        return self._column

    @column.setter
    def column(self, place: int) -> None:
        self._column = max(0, min(place, len(self._table.contestants) - 1))

    @property
    def question(self) -> Question | None:
        """The question that is pointed at; None where none is looked at."""
        return self._questions[self.cursor] if self._questions else None

    def point_at(self, question: Question | None) -> None:
        """Point at a question where it is among those looked at, else at the first."""
        self.cursor = self._questions.index(question) if question in self._questions else 0
        self.point_at_first_wrong()

    def chosen(self) -> Answer | None:
        """The answer that is pointed at."""
        if self.question is None or not self._table.contestants:
            return None
        return self._table.answer(self.question, self._table.contestants[self.column])

    def point_at_first_wrong(self) -> None:
        """Point at the first answer to this question that is not right; at the first of all where all are."""
        question = self.question
        answers = [self._table.answer(question, who) for who in self._table.contestants] if question else []
        wrong = (
            column
            for column, answer in enumerate(answers)
            if answer is not None and answer.scored is not None and answer.scored.score.outcome != "correct"
        )
        self.column = next(wrong, 0)

    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        """A question beside its answers where there is room for columns, above them where there is not."""
        question = self._questions[index]
        asked = question_lines(self._numbers[question.id], question)
        answers = [
            answer_lines(self._table, question, who, self._labels, pointed_at=place == column)
            for place, who in enumerate(self._table.contestants)
        ]
        columns = len(answers) + 1
        room = (width - 2 * columns) // columns
        if room >= _NARROWEST_COLUMN:
            return beside([asked, *answers], [room] * columns)
        below = [Row((Span("  "), *row.spans)) for lines in answers for row in wrapped(lines, width - 2)]
        return [*wrapped(asked, width), *below]


def question_lines(number: int, question: Question) -> list[Line]:
    """A question: number and type, text, and what was expected."""
    other = f" / {one_line(question.other_type)}" if question.other_type else ""
    return [
        line(Span(f"{number}. ", "dim"), Span(f"{one_line(question.type)}{other}", "title")),
        line(Span(one_line(question.text), "strong")),
        line(Span("expected ", "dim"), Span(one_line(question.expected), "value"), hang=2),
    ]


def answer_lines(
    table: AnswersTable,
    question: Question,
    contestant: Contestant,
    labels: Mapping[AskKey, Label],
    *,
    pointed_at: bool,
) -> list[Line]:
    """An answer: sign and architecture, whether all evidence stood in the prompt, what was lost, what was said."""
    answer = table.answer(question, contestant)
    name = Span(f"{'▸' if pointed_at else ' '}{table.name_of(contestant)}", "accent" if pointed_at else "key")
    label = labels.get(key_of(answer)) if answer is not None else None
    head = [sign_of(answer), name, Span(_evidence(answer), "dim")]
    said = _said(answer)
    body = [line("  ", said, hang=2, most=_ROWS_OF_ANSWER)] if said.text else []
    told = [line("  ", Span(label, "dim"), hang=2)] if label else []
    return [line(*head, hang=2), *body, *told]


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
