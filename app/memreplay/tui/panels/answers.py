"""The answers so far: by question for the panels, and summed up for each architecture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memreplay.conversations.models import Conversation, Question
from memreplay.grading import Outcome
from memreplay.llm import AGENT_MODEL, EXTRACTIVE_MODEL
from memreplay.scoring.attribution import Label
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.panels.panel import View, lines_view, nothing
from memreplay.tui.subjects import AnswerSubject
from memreplay.tui.text import Line, Span, Tone, line, one_line, pad

SIGNS: Final[dict[Outcome, tuple[str, Tone]]] = {
    "correct": ("✓", "good"),
    "wrong": ("✗", "bad"),
    "unparsed": ("?", "warn"),
    "refused": ("⊘", "warn"),
    "error": ("!", "bad"),
}
LEGEND: Final = "✓ right  ✗ wrong  ? unparsed  ⊘ refused  ! error  … asked  • replied  – none"
EVIDENCE_LEGEND: Final = "evidence ✓ all of it stood in the prompt  ✗ some of it was missing"


@dataclass(frozen=True)
class Contestant:
    """Who answered: an architecture through a model."""

    backend: str
    model: str


@dataclass(frozen=True, eq=False)
class Posed:
    """A question of a conversation. Others may have one of the same id: each is equal to itself alone."""

    conversation: str
    question: Question


Labels = Mapping[tuple[str, AskKey], Label]
"""What answers rest on, or where their facts were lost, by :func:`place_of`, as far as that has been worked out."""


@dataclass(frozen=True)
class Summary:
    """The scores of one contestant. Accuracies and shares are None where there was nothing to divide by."""

    contestant: Contestant
    total: int
    correct: int
    errors: int
    unparsed: int
    accuracy: float | None
    evidence_in_prompt: float | None
    recall_at_10: float | None

    @property
    def graded(self) -> int:
        """Answers that were graded: all but the errors."""
        return self.total - self.errors


class AnswersTable:
    """Scheduled answers by question and contestant, of one conversation or of several.

    ``backends`` are all architectures, in the order in which they are to stand.
    """

    def __init__(self, questions: Sequence[Posed], answers: Iterable[Answer], backends: Sequence[str]) -> None:
        self.questions = tuple(questions)
        self._scheduled = [answer for answer in answers if not answer.asked.by_hand]
        asked = {_contestant(answer): None for answer in self._scheduled}
        order = {backend: index for index, backend in enumerate(backends)}
        self.contestants = sorted(asked, key=lambda who: (order[who.backend], who.model))
        self._answers = {
            (answer.asked.conversation, answer.asked.question_id, _contestant(answer)): answer
            for answer in self._scheduled
        }

    @classmethod
    def until(cls, timeline: Timeline, cursor: int) -> AnswersTable:
        """The answers of one conversation, up to a position."""
        given = (answer for answer in timeline.answers() if answer.asked.turn <= cursor)
        return cls(posed_in(timeline.conversation), given, timeline.backends)

    def __len__(self) -> int:
        return len(self._answers)

    def answer(self, posed: Posed, contestant: Contestant) -> Answer | None:
        """What one contestant made of a question."""
        return self._answers.get((posed.conversation, posed.question.id, contestant))

    def all_answers(self) -> Iterable[Answer]:
        """Every answer."""
        return self._answers.values()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked."""
        return tuple(dict.fromkeys(who.model for who in self.contestants))

    def name_of(self, contestant: Contestant) -> str:
        """The architecture, with the model where there are several."""
        several = len(set(self.models) - {AGENT_MODEL}) > 1
        return one_line(f"{contestant.backend}@{contestant.model}" if several else contestant.backend)

    def summary(self, contestant: Contestant) -> Summary:
        """The scores of a contestant so far, of all repeats."""
        given = [answer for answer in self._scheduled if _contestant(answer) == contestant]
        scored = [answer.scored for answer in given if answer.scored is not None]
        outcomes = [event.score.outcome for event in scored]
        graded = len(outcomes) - outcomes.count("error")
        # Where memory could not be read no model was asked: that says nothing of what it would have found.
        found = [answer.scored.retrieval for answer in given if answer.scored is not None and answer.asked.prompt]
        return Summary(
            contestant,
            total=len(outcomes),
            correct=outcomes.count("correct"),
            errors=outcomes.count("error"),
            unparsed=outcomes.count("unparsed"),
            accuracy=outcomes.count("correct") / graded if graded else None,
            evidence_in_prompt=_mean(one.evidence_in_prompt for one in found if one.evidence_in_prompt is not None),
            recall_at_10=_mean(one.recall_at[10] for one in found if one.recall_at),
        )


def posed_in(conversation: Conversation) -> list[Posed]:
    """The questions of a conversation."""
    return [Posed(conversation.id, question) for question in conversation.questions]


def _contestant(answer: Answer) -> Contestant:
    return Contestant(answer.asked.backend, answer.asked.model)


def reader_label(model: str) -> str:
    """The model by its name; the embedded reader is named for what it is."""
    name = one_line(model)
    return f"{name}, an embedded reader and not a language model" if model == EXTRACTIVE_MODEL else name


def sign_of(answer: Answer | None) -> Span:
    """The sign of an answer: one cell."""
    if answer is None:
        return Span("–", "dim")
    if answer.scored is None:
        return Span("•" if answer.received is not None else "…", "dim")
    sign, tone = SIGNS[answer.scored.score.outcome]
    return Span(sign, tone)


def answers_view(timeline: Timeline, cursor: int) -> View:
    """The small panel beside the conversation: a line for each question, a sign for each contestant."""
    table = AnswersTable.until(timeline, cursor)
    by_hand = _by_hand_lines(timeline, cursor)
    if not len(table):
        waiting = nothing("the questions are asked after the last turn")
        return lines_view("answers", [*waiting, *by_hand] if by_hand else waiting)
    lines = []
    for number, posed in enumerate(table.questions, start=1):
        asked = [answer for who in table.contestants if (answer := table.answer(posed, who)) is not None]
        signs = [sign_of(table.answer(posed, who)) for who in table.contestants]
        lines.append(_answered(signs, Span(f"{number}. ", "dim"), posed.question.text, asked))
    names = " ".join(table.name_of(who) for who in table.contestants)
    return lines_view(f"answers · {names}", [*lines, *by_hand])


def _by_hand_lines(timeline: Timeline, cursor: int) -> list[Line]:
    """A line for each question that was asked by hand up to the position, marked as such."""
    groups: dict[tuple[int, str], list[Answer]] = {}
    for answer in timeline.answers():
        if answer.asked.by_hand and answer.asked.turn <= cursor:
            groups.setdefault((answer.asked.turn, answer.asked.question_id), []).append(answer)
    lines = []
    for (turn, question_id), answers in groups.items():
        question = timeline.question(question_id)
        text = question.text if question is not None else answers[0].asked.typed or ""
        lines.append(
            _answered([sign_of(one) for one in answers], Span(f"by hand, turn {turn} ", "warn"), text, answers)
        )
    return lines


def _answered(signs: Sequence[Span], label: Span, text: str, asked: Sequence[Answer]) -> Line:
    """A question with its signs; it leads to why the answer that is not right is what it is."""
    spaced = [part for sign in signs for part in (sign, Span(" "))]
    about = AnswerSubject(key_of(_telling(asked))) if asked else None
    return line(*spaced, label, one_line(text), hang=2 * len(signs), most=2, about=about)


def _telling(answers: Sequence[Answer]) -> Answer:
    """The answer that is looked at first: the first that is not right."""
    wrong = (one for one in answers if one.scored is not None and one.scored.score.outcome != "correct")
    return next(wrong, answers[0])


def key_of(answer: Answer) -> AskKey:
    """Which ask an answer belongs to."""
    asked = answer.asked
    return AskKey(asked.backend, asked.model, asked.question_id, asked.repeat, asked.turn, asked.by_hand)


def place_of(answer: Answer) -> tuple[str, AskKey]:
    """Which ask of a run an answer belongs to."""
    return answer.asked.conversation, key_of(answer)


def summary_lines(table: AnswersTable) -> list[Line]:
    """The scores as a small table, a line for each contestant."""
    rows = [table.summary(who) for who in table.contestants]
    names = max([len("architecture"), *(len(table.name_of(row.contestant)) for row in rows)])
    head = pad("architecture", names) + "   correct  accuracy  errors  unparsed  evidence  recall@10"
    lines = [line(Span(head, "dim"))]
    for row in rows:
        lines.append(
            line(
                Span(pad(table.name_of(row.contestant), names), "strong"),
                Span(f"  {f'{row.correct}/{row.graded}':>8}"),
                Span(f"  {percent(row.accuracy):>8}", "value"),
                Span(f"  {row.errors:>6}", "bad" if row.errors else "dim"),
                Span(f"  {row.unparsed:>8}", "warn" if row.unparsed else "dim"),
                Span(f"  {percent(row.evidence_in_prompt):>8}"),
                Span(f"  {percent(row.recall_at_10):>9}"),
            )
        )
    return lines


def percent(share: float | None) -> str:
    """A share in per cent; an en dash where there is none."""
    return "–" if share is None else f"{share:.0%}"


def _mean(values: Iterable[float]) -> float | None:
    known: Sequence[float] = list(values)
    return sum(known) / len(known) if known else None
