"""Grading replies to multiple-choice and recall questions: the score types."""

from __future__ import annotations

from typing import Literal

from memreplay.conversations.models import Frozen

Outcome = Literal["correct", "wrong", "unparsed", "refused", "error"]

DecidedBy = Literal[
    "exact",
    "equivalent",
    "entities",
    "abstention",
    "denied",
    "hedged",
    "superseded",
    "candidates",
    "no_match",
    "label",
    "text",
    "judge",
]
"""The rule that decided: how an answer was recognised, or why it was not accepted; or that a judge did."""


class GradedByRules(Frozen):
    """What the rules of the grader said of an answer that a judge decided on."""

    outcome: Outcome
    decided_by: DecidedBy | None


class Score(Frozen):
    """The score of one answer. ``score`` is None for an error, which is not a wrong answer.

    ``predicted`` is the option's text, or the reply; ``predicted_index`` is only set for a parsed choice.
    ``exact_match``, ``entity_recall`` (0..1, None without expected entities) and ``f1`` are only set for recall.
    ``grader`` is set if a judge was asked; a judge without a verdict is an error of grading.
    """

    outcome: Outcome
    score: float | None
    predicted: str | None = None
    predicted_index: int | None = None
    exact_match: bool | None = None
    entity_recall: float | None = None
    f1: float | None = None
    decided_by: DecidedBy | None = None
    grader: GradedByRules | None = None


class RetrievalScore(Frozen):
    """How well memory found the evidence. None where it does not apply.

    ``recall_at`` maps k (1, 5, 10) to |evidence ∩ turns of the first k hits| / |evidence|;
    ``reciprocal_rank`` is 1 / rank of the first hit with an evidence turn, 0 without one.
    """

    recall_at: dict[int, float] | None = None
    reciprocal_rank: float | None = None
    evidence_in_prompt: bool | None = None
