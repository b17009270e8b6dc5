"""The answers so far: by question for the panels, and summed up for each architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from app.answering.model import AGENT_MODEL, EXTRACTIVE_MODEL
from app.conversations.models import Question
from app.replay.timeline import Answer, Timeline
from app.scoring.outcomes import Outcome
from app.tui.text import Line, Span, Tone, line, one_line, pad
from app.tui.views.view import View, lines_view, nothing

SIGNS: Final[dict[Outcome, tuple[str, Tone]]] = {
    "correct": ("✓", "good"),
    "wrong": ("✗", "bad"),
    "unparsed": ("?", "warn"),
    "refused": ("⊘", "warn"),
    "error": ("!", "bad"),
}
LEGEND: Final = "✓ right  ✗ wrong  ? unparsed  ⊘ refused  ! error  … no reply yet  – none"
EVIDENCE_LEGEND: Final = "evidence ✓ all of it stood in the prompt  ✗ some of it was missing"


@dataclass(frozen=True)
class Contestant:
    """Who answered: an architecture through a model."""

    backend: str
    model: str


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
    """Scheduled answers by question and contestant, up to a position."""

    def __init__(self, timeline: Timeline, cursor: int) -> None:
        self.questions: tuple[Question, ...] = timeline.conversation.questions
        found = [
            answer for answer in timeline.answers() if answer.asked.turn <= cursor and not answer.asked.by_hand
        ]
        asked = {Contestant(answer.asked.backend, answer.asked.model): None for answer in found}
        order = {backend: index for index, backend in enumerate(timeline.backends)}
        self.contestants = sorted(asked, key=lambda who: (order[who.backend], who.model))
        self._answers = {
            (answer.asked.question_id, Contestant(answer.asked.backend, answer.asked.model)): answer
            for answer in found
        }

    def __len__(self) -> int:
        return len(self._answers)

    def answer(self, question: Question, contestant: Contestant) -> Answer | None:
        """What one contestant made of a question."""
        return self._answers.get((question.id, contestant))

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked."""
        return tuple(dict.fromkeys(who.model for who in self.contestants))

    def name_of(self, contestant: Contestant) -> str:
        """The architecture, with the model where there are several."""
        several = len(set(self.models) - {AGENT_MODEL}) > 1
        return one_line(f"{contestant.backend}@{contestant.model}" if several else contestant.backend)

    def summary(self, contestant: Contestant) -> Summary:
        """The scores of a contestant so far."""
        given = [answer for (_, who), answer in self._answers.items() if who == contestant]
        scored = [answer.scored for answer in given if answer.scored is not None]
        outcomes = [event.score.outcome for event in scored]
        graded = len(outcomes) - outcomes.count("error")
        recalls = [event.retrieval.recall_at[10] for event in scored if event.retrieval.recall_at]
        return Summary(
            contestant,
            total=len(outcomes),
            correct=outcomes.count("correct"),
            errors=outcomes.count("error"),
            unparsed=outcomes.count("unparsed"),
            accuracy=outcomes.count("correct") / graded if graded else None,
            evidence_in_prompt=_mean(
                event.retrieval.evidence_in_prompt
                for event in scored
                if event.retrieval.evidence_in_prompt is not None
            ),
            recall_at_10=_mean(recalls),
        )


def reader_label(model: str) -> str:
    """The model by its name; the embedded reader is named for what it is."""
    name = one_line(model)
    return f"{name}, an embedded reader and not a language model" if model == EXTRACTIVE_MODEL else name


def sign_of(answer: Answer | None) -> Span:
    """The sign of an answer: one cell."""
    if answer is None:
        return Span("–", "dim")
    if answer.scored is None:
        return Span("…", "dim")
    sign, tone = SIGNS[answer.scored.score.outcome]
    return Span(sign, tone)


def answers_view(timeline: Timeline, cursor: int) -> View:
    """The small panel beside the conversation: a line for each question, a sign for each contestant."""
    table = AnswersTable(timeline, cursor)
    if not len(table):
        return lines_view("answers", nothing("the questions are asked after the last turn"))
    lines = []
    for number, question in enumerate(table.questions, start=1):
        signs = [sign_of(table.answer(question, who)) for who in table.contestants]
        spaced = [part for sign in signs for part in (sign, Span(" "))]
        indent = 2 * len(signs)
        lines.append(line(*spaced, Span(f"{number}. ", "dim"), one_line(question.text), hang=indent, most=2))
    names = " ".join(table.name_of(who) for who in table.contestants)
    return lines_view(f"answers · {names}", lines)


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
