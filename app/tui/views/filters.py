"""Which questions of the results to look at: all, those that the memories disagree on, or those of one failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.replay.asks import Answer
from app.replay.timeline import Timeline
from app.scoring.attribution import LABELS, Attributor
from app.tui.views.answers import AnswersTable, Labels, Posed, place_of
from memory_backends.controls import CONTROLS


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
