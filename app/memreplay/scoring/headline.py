"""The numbers that are quoted of a backend, and what keeps them honest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import combinations

from memreplay.conversations.formats.locomo import ADVERSARIAL
from memreplay.conversations.models import Frozen
from memreplay.scoring.aggregates import cost_of, group_of, tokens_of
from memreplay.scoring.sections import Interval, QuestionRow
from memreplay.scoring.statistics import clustered_interval, mean
from memreplay.text import normalised


class EvidenceByAnswer(Frozen):
    """Graded questions with evidence: did all of it stand in the prompt, and was the answer right?"""

    in_prompt_right: int
    in_prompt_wrong: int
    missing_right: int
    missing_wrong: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.in_prompt_right + self.in_prompt_wrong + self.missing_right + self.missing_wrong


class Headline(Frozen):
    """What is quoted. Shares are 0..1, and null where nothing was measured.

    ``ci95`` takes questions as independent (Wilson); ``ci95_clustered`` allows for questions of one conversation
    being alike. ``closed_book_accuracy`` is the same model's without memory on the same questions, and
    ``normalised_gain`` how much of what it left the memory gained: (accuracy - closed book) / (1 - closed book).
    ``grounded_accuracy`` is the share of graded questions with evidence whose answers are ``grounded``: right, and
    the prompt held the evidence, word for word or distilled. ``repeats_agree`` is how often two repeats of a
    question gave the same answer; null without any.
    """

    accuracy: float | None
    accuracy_without_adversarial: float | None
    ci95: Interval | None
    ci95_clustered: Interval | None
    conversations: int
    closed_book_accuracy: float | None
    normalised_gain: float | None
    grounded_accuracy: float | None
    evidence_in_prompt: float | None
    evidence_by_answer: EvidenceByAnswer | None
    tokens_per_right: float | None
    cost_usd_per_right: float | None
    repeats_agree: float | None


def headline_of(rows: Sequence[QuestionRow]) -> Headline:
    """The headline of one backend through one model."""
    everything = group_of(rows)
    tokens, cost = tokens_of(rows), cost_of(rows)
    used = tokens.prompt + tokens.completion if any(row.tokens is not None for row in rows) else None
    table = _evidence_by_answer(rows)
    by_conversation = _by_conversation(rows)
    closed_book, gain = _closed_book(rows)
    in_prompt = [float(row.evidence_in_prompt) for row in rows if row.evidence_in_prompt is not None]
    return Headline(
        accuracy=everything.accuracy,
        accuracy_without_adversarial=group_of([r for r in rows if r.type != ADVERSARIAL.mc10]).accuracy,
        ci95=everything.ci95,
        ci95_clustered=clustered_interval(by_conversation),
        conversations=len(by_conversation),
        closed_book_accuracy=closed_book,
        normalised_gain=gain,
        grounded_accuracy=mean(_grounded(rows)),
        evidence_in_prompt=mean(in_prompt),
        evidence_by_answer=table,
        tokens_per_right=used / everything.correct if everything.correct and used is not None else None,
        cost_usd_per_right=cost / everything.correct if everything.correct and cost is not None else None,
        repeats_agree=_agreement(rows),
    )


def _by_conversation(rows: Sequence[QuestionRow]) -> list[tuple[int, int]]:
    """Right answers and graded ones of each conversation that has any."""
    right: dict[tuple[str, str], int] = defaultdict(int)
    graded: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        if row.outcome != "error":
            right[row.dataset, row.conversation] += row.outcome == "correct"
            graded[row.dataset, row.conversation] += 1
    return [(right[conversation], total) for conversation, total in graded.items()]


def _evidence_by_answer(rows: Sequence[QuestionRow]) -> EvidenceByAnswer | None:
    cells = [
        (row.evidence_in_prompt, row.outcome == "correct")
        for row in rows
        if row.evidence_in_prompt is not None and row.outcome != "error"
    ]
    if not cells:
        return None
    return EvidenceByAnswer(
        in_prompt_right=cells.count((True, True)),
        in_prompt_wrong=cells.count((True, False)),
        missing_right=cells.count((False, True)),
        missing_wrong=cells.count((False, False)),
    )


def _grounded(rows: Sequence[QuestionRow]) -> list[float]:
    """Of each graded question with evidence: whether its answer is grounded."""
    return [
        float(row.failure == "grounded")
        for row in rows
        if row.evidence_in_prompt is not None and row.outcome != "error"
    ]


def _closed_book(rows: Sequence[QuestionRow]) -> tuple[float | None, float | None]:
    """Accuracy without memory, and the normalised gain, over the graded questions asked without memory too."""
    both = [
        (row.outcome == "correct", row.closed_book_correct)
        for row in rows
        if row.outcome != "error" and row.closed_book_correct is not None
    ]
    accuracy = mean([float(right) for right, _ in both])
    closed_book = mean([float(unaided) for _, unaided in both])
    if accuracy is None or closed_book is None or closed_book == 1:
        return closed_book, None
    return closed_book, (accuracy - closed_book) / (1 - closed_book)


def _agreement(rows: Sequence[QuestionRow]) -> float | None:
    """Of all pairs of repeats of one question, the share that gave the same answer; errors are not counted."""
    answers: dict[tuple[str, str, str], list[Hashable]] = defaultdict(list)
    for row in rows:
        if row.outcome != "error":
            said = row.predicted_index if row.predicted_index is not None else normalised(row.predicted or "")
            answers[row.dataset, row.conversation, row.question_id].append(said)
    pairs = [one == other for said in answers.values() for one, other in combinations(said, 2)]
    return mean([float(agree) for agree in pairs])
