"""The results as a document: a block a question, with what each architecture answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Question
from memreplay.scoring.attribution import LABELS, Attributor
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.document import ListedDocument
from memreplay.tui.panels.answers import AnswersTable, Contestant, Labels, Posed, place_of, sign_of
from memreplay.tui.text import Line, Row, Span, beside, line, one_line, visible, wrapped


@dataclass(frozen=True)
class QuestionFilter:
    """A name, and the questions that it lets through, in their order."""

    name: str
    questions: tuple[Posed, ...]

    @property
    def in_short(self) -> str:
        """The name with the number of questions."""
        return f"{self.name} · {len(self.questions)}"


def labels_of(timeline: Timeline, table: AnswersTable) -> Labels:
    """What each answer rests on, or where its fact was lost. It reads all that happened: it may take long."""
    attributor = Attributor(timeline)
    found = {place_of(answer): attributor.attribute(answer) for answer in table.all_answers()}
    return {key: one.label for key, one in found.items() if one is not None and one.label is not None}


def filters_of(table: AnswersTable, labels: Labels) -> list[QuestionFilter]:
    """All; those on which the memories disagree; those that one has not right; one for each label that occurs."""
    given = {question: _of_memories(table, question) for question in table.questions}
    outcomes = {question: [_is_right(answer) for answer in answers] for question, answers in given.items()}
    filters = [
        QuestionFilter("all", table.questions),
        QuestionFilter("disagreement", tuple(one for one, right in outcomes.items() if len(set(right)) > 1)),
        QuestionFilter("not right", tuple(one for one, right in outcomes.items() if False in right)),
    ]
    named = {one: {labels.get(place_of(answer)) for answer in answers} for one, answers in given.items()}
    counts = Counter(label for of_question in named.values() for label in of_question)
    return [
        *filters,
        *(
            QuestionFilter(label, tuple(question for question, found in named.items() if label in found))
            for label in LABELS
            if counts[label]
        ),
    ]


def _of_memories(table: AnswersTable, posed: Posed) -> Sequence[Answer]:
    """The scored answers of what is compared: of the memories, or of the controls where there are no others."""
    answers = [answer for who in table.contestants if (answer := table.answer(posed, who)) is not None]
    scored = [answer for answer in answers if answer.scored is not None]
    return [answer for answer in scored if answer.asked.backend not in CONTROLS] or scored


def _is_right(answer: Answer) -> bool:
    return answer.scored is not None and answer.scored.score.outcome == "correct"


_NARROWEST_COLUMN = 26
_ROWS_OF_ANSWER = 4
_MEASURED_TO_GUESS = 20


class ResultsDocument(ListedDocument):
    """Questions beside the answers where there is room for columns, above them where there is not.

    ``labels`` say where the fact of an answer was lost, as far as that has been worked out; ``questions`` are those
    that are looked at.
    """

    def __init__(self, table: AnswersTable, questions: Sequence[Posed], labels: Labels | None = None) -> None:
        super().__init__()
        self._table = table
        self._questions = tuple(questions)
        self._labels = labels or {}
        self._numbers = {posed: number for number, posed in enumerate(table.questions, start=1)}
        self._of_several = len({posed.conversation for posed in table.questions}) > 1
        self._column = 0
        self._usual_height = lru_cache(maxsize=None)(self._mean_height)

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
    def posed(self) -> Posed | None:
        """The question that is pointed at; None where none is looked at."""
        return self._questions[self.cursor] if self._questions else None

    def point_at(self, posed: Posed | None) -> None:
        """Point at a question where it is among those looked at, else at the first."""
        self.cursor = self._questions.index(posed) if posed in self._questions else 0
        self.point_at_first_wrong()

    def chosen(self) -> Answer | None:
        """The answer that is pointed at."""
        if self.posed is None or not self._table.contestants:
            return None
        return self._table.answer(self.posed, self._table.contestants[self.column])

    def point_at_first_wrong(self) -> None:
        """Point at the first answer to this question that is not right; at the first of all where all are."""
        posed = self.posed
        answers = [self._table.answer(posed, who) for who in self._table.contestants] if posed else []
        wrong = (
            column
            for column, answer in enumerate(answers)
            if answer is not None and answer.scored is not None and answer.scored.score.outcome != "correct"
        )
        self.column = next(wrong, 0)

    def guess(self, index: int, width: int) -> int:
        """What the first questions take on an average: a run may ask a thousand."""
        return self._usual_height(width)

    def _mean_height(self, width: int) -> int:
        first = range(min(_MEASURED_TO_GUESS, len(self)))
        return round(sum(self.height(index, width) for index in first) / len(first))

    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        """A question beside its answers where there is room for columns, above them where there is not."""
        posed = self._questions[index]
        whose = f"{one_line(posed.conversation)} · " if self._of_several else ""
        asked = question_lines(self._numbers[posed], whose, posed.question)
        answers = [
            answer_lines(self._table, posed, who, self._labels, pointed_at=place == column)
            for place, who in enumerate(self._table.contestants)
        ]
        columns = len(answers) + 1
        room = (width - 2 * columns) // columns
        if room >= _NARROWEST_COLUMN:
            return beside([asked, *answers], [room] * columns)
        below = [Row((Span("  "), *row.spans)) for lines in answers for row in wrapped(lines, width - 2)]
        return [*wrapped(asked, width), *below]


def question_lines(number: int, whose: str, question: Question) -> list[Line]:
    """A question: number, whose it is and type, text, and what was expected."""
    other = f" / {one_line(question.other_type)}" if question.other_type else ""
    return [
        line(Span(f"{number}. {whose}", "dim"), Span(f"{one_line(question.type)}{other}", "title")),
        line(Span(one_line(question.text), "strong")),
        line(Span("expected ", "dim"), Span(one_line(question.expected), "value"), hang=2),
    ]


def answer_lines(
    table: AnswersTable,
    posed: Posed,
    contestant: Contestant,
    labels: Labels,
    *,
    pointed_at: bool,
) -> list[Line]:
    """An answer: sign and architecture, whether all evidence stood in the prompt, what was lost, what was said."""
    answer = table.answer(posed, contestant)
    name = Span(f"{'▸' if pointed_at else ' '}{table.name_of(contestant)}", "accent" if pointed_at else "key")
    label = labels.get(place_of(answer)) if answer is not None else None
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
