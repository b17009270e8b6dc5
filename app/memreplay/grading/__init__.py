"""What a reply was worth."""

from __future__ import annotations

from typing import Literal

from memreplay.conversations.models import Frozen

Outcome = Literal["correct", "wrong", "unparsed", "refused", "error"]


class Score(Frozen):
    """One answer, scored. ``score`` is None where the outcome is an error: an error is not a wrong answer.

    ``predicted`` is the option's text, or the reply; ``predicted_index`` is set for a parsed choice only.
    ``exact_match``, ``entity_recall`` (0..1, None without expected entities) and ``f1`` are for recall only.
    """

    outcome: Outcome
    score: float | None
    predicted: str | None = None
    predicted_index: int | None = None
    exact_match: bool | None = None
    entity_recall: float | None = None
    f1: float | None = None


class RetrievalScore(Frozen):
    """How well the evidence was found. None where it does not apply.

    ``recall_at`` maps k (1, 5, 10) to |evidence ∩ turns of the first k hits| / |evidence|;
    ``reciprocal_rank`` is 1 / rank of the first hit with any evidence turn, 0 where there is none.
    """

    recall_at: dict[int, float] | None = None
    reciprocal_rank: float | None = None
    evidence_in_prompt: bool | None = None
