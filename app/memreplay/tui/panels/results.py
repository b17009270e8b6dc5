"""The results as a document: one block per question, with the answer of each system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Question
from memreplay.scoring.attribution import LABELS, Attributor
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.document import ListDocument
from memreplay.tui.panels.answers import (
    AnswersTable,
    Labels,
    ListedQuestion,
    System,
    is_wrong,
    label_tone,
    place_of,
    sign_of,
)
from memreplay.tui.text import Line, Row, Span, beside, line, one_line, visible, wrapped


@dataclass(frozen=True)
class QuestionFilter:
    """A name, and the questions that pass the filter, in order."""

    name: str
    questions: tuple[ListedQuestion, ...]

    @property
    def in_short(self) -> str:
        return f"{self.name} · {len(self.questions)}"


def labels_of(timeline: Timeline, table: AnswersTable) -> Labels:
    """The failure label of each answer. Slow: it reads every event."""
    attributor = Attributor(timeline)
    found = {place_of(answer): attributor.attribute(answer) for answer in table.all_answers()}
    return {key: one.label for key, one in found.items() if one is not None and one.label is not None}


def filters_of(table: AnswersTable, labels: Labels) -> list[QuestionFilter]:
    """All questions, those that memories disagree on, those not all got right, and one filter per label in use."""
    given = {question: _of_memories(table, question) for question in table.questions}
    wrong = {question: [is_wrong(answer) for answer in answers] for question, answers in given.items()}
    filters = [
        QuestionFilter("all", table.questions),
        QuestionFilter("disagreement", tuple(one for one, outcomes in wrong.items() if len(set(outcomes)) > 1)),
        QuestionFilter("not right", tuple(one for one, outcomes in wrong.items() if any(outcomes))),
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


def _of_memories(table: AnswersTable, listed: ListedQuestion) -> Sequence[Answer]:
    """The scored answers of the memories, or of the controls if only they were asked."""
    answers = [answer for system in table.systems if (answer := table.answer(listed, system)) is not None]
    scored = [answer for answer in answers if answer.scored is not None]
    return [answer for answer in scored if answer.asked.backend not in CONTROLS] or scored


_NARROWEST_COLUMN = 26
_ROWS_OF_ANSWER = 4
_MEASURED_TO_GUESS = 20


class ResultsDocument(ListDocument):
    """One block per question: answers in columns if there is room, else below the question.

    ``questions`` are those that pass the filter; ``labels`` may be partial while attribution is running.
    """

    def __init__(
        self, table: AnswersTable, questions: Sequence[ListedQuestion], labels: Labels | None = None
    ) -> None:
        super().__init__()
        self._table = table
        self._questions = tuple(questions)
        self._labels = labels or {}
        self._numbers = {listed: number for number, listed in enumerate(table.questions, start=1)}
        self._of_several = len({listed.conversation for listed in table.questions}) > 1
        self._column = 0
        self._average_height = lru_cache(maxsize=None)(self._measured_average)

    def __len__(self) -> int:
        return len(self._questions)

    @property
    def column(self) -> int:
        """The index of the system whose answer is selected."""
        return self._column

    @column.setter
    def column(self, place: int) -> None:
        self._column = max(0, min(place, len(self._table.systems) - 1))

    @property
    def selected_question(self) -> ListedQuestion | None:
        """The selected question; None if the filter lets none through."""
        return self._questions[self.cursor] if self._questions else None

    def point_at(self, listed: ListedQuestion | None) -> None:
        """Select a question if it passes the filter, else the first."""
        self.cursor = self._questions.index(listed) if listed in self._questions else 0
        self.point_at_first_wrong()

    @property
    def selected_answer(self) -> Answer | None:
        if self.selected_question is None or not self._table.systems:
            return None
        return self._table.answer(self.selected_question, self._table.systems[self.column])

    def point_at_first_wrong(self) -> None:
        """Select the first answer to this question that is not right; the first one if all are."""
        listed = self.selected_question
        answers = [self._table.answer(listed, system) for system in self._table.systems] if listed else []
        self.column = next((column for column, answer in enumerate(answers) if is_wrong(answer)), 0)

    def guess(self, index: int, width: int) -> int:
        """The average height of the first questions: a run may ask a thousand."""
        return self._average_height(width)

    def _measured_average(self, width: int) -> int:
        first = range(min(_MEASURED_TO_GUESS, len(self)))
        return round(sum(self.height(index, width) for index in first) / len(first))

    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        listed = self._questions[index]
        whose = f"{one_line(listed.conversation)} · " if self._of_several else ""
        asked = question_lines(self._numbers[listed], whose, listed.question)
        answers = [
            answer_lines(self._table, listed, system, self._labels, selected=place == column)
            for place, system in enumerate(self._table.systems)
        ]
        columns = len(answers) + 1
        room = (width - 2 * columns) // columns
        if room >= _NARROWEST_COLUMN:
            return beside([asked, *answers], [room] * columns)
        below = [Row((Span("  "), *row.spans)) for lines in answers for row in wrapped(lines, width - 2)]
        return [*wrapped(asked, width), *below]


def question_lines(number: int, whose: str, question: Question) -> list[Line]:
    """A question: number, conversation and type, text, expected answer."""
    other = f" / {one_line(question.other_type)}" if question.other_type else ""
    return [
        line(Span(f"{number}. {whose}", "dim"), Span(f"{one_line(question.type)}{other}", "title")),
        line(Span(one_line(question.text), "strong")),
        line(Span("expected ", "dim"), Span(one_line(question.expected), "value"), hang=2),
    ]


def answer_lines(
    table: AnswersTable,
    listed: ListedQuestion,
    system: System,
    labels: Labels,
    *,
    selected: bool,
) -> list[Line]:
    """An answer: sign, system and evidence check, then the failure label, then the reply."""
    answer = table.answer(listed, system)
    name = Span(f"{'▸' if selected else ' '}{table.name_of(system)}", "accent" if selected else "key")
    label = labels.get(place_of(answer)) if answer is not None else None
    head = [sign_of(answer), name, Span(_evidence(answer), "dim")]
    said = _said(answer)
    body = [line("  ", said, hang=2, most=_ROWS_OF_ANSWER)] if said.text else []
    failure = [line("  ", Span(label, label_tone(label)), hang=2)] if label else []
    return [line(*head, hang=2), *failure, *body]


def _evidence(answer: Answer | None) -> str:
    if answer is None or answer.scored is None:
        return ""
    complete = answer.scored.retrieval.evidence_in_prompt
    if complete is None:
        return ""
    return " · evidence ✓" if complete else " · evidence ✗"


def _said(answer: Answer | None) -> Span:
    if answer is None or answer.received is None:
        return Span("")
    reply = answer.received.reply
    if reply.error is not None:
        return Span(one_line(reply.error), "bad")
    predicted = answer.scored.score.predicted if answer.scored else None
    return Span(visible(predicted or reply.text or "").replace("\n", " ⏎ "))
