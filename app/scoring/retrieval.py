"""How well a memory found the evidence of a question."""

from __future__ import annotations

from collections.abc import Sequence

from app.conversations.models import Question
from app.scoring.outcomes import RetrievalScore
from memory_backends.base import Hit
from memory_backends.controls import CONTROLS

CUTOFFS = (1, 5, 10)
"""The values of k in recall@k."""

UNRANKED_BACKENDS = CONTROLS | {"full_context"}
"""They retrieve nothing in order of rank, so recall@k and the reciprocal rank mean nothing for them."""


def score_retrieval(question: Question, hits: Sequence[Hit], has_retriever: bool) -> RetrievalScore:
    """Recall@k, reciprocal rank, and whether all evidence stands in the prompt.

    They apply where evidence supports the answer: all are None elsewhere. Only turns whose verbatim text stands in
    a hit count. A hit that the budget cut was retrieved, but is not in the prompt.
    """
    if question.evidence_role != "supports" or not question.evidence:
        return RetrievalScore()
    evidence = frozenset(question.evidence)
    in_prompt = frozenset(turn for hit in hits if hit.in_prompt for turn in hit.turns)
    if not has_retriever:
        return RetrievalScore(evidence_in_prompt=evidence <= in_prompt)
    ranked = sorted(hits, key=lambda hit: hit.rank)
    return RetrievalScore(
        recall_at={k: _found(evidence, ranked[:k]) / len(evidence) for k in CUTOFFS},
        reciprocal_rank=_reciprocal_rank(evidence, ranked),
        evidence_in_prompt=evidence <= in_prompt,
    )


def _found(evidence: frozenset[str], hits: Sequence[Hit]) -> int:
    return len(evidence.intersection(turn for hit in hits for turn in hit.turns))


def _reciprocal_rank(evidence: frozenset[str], ranked: Sequence[Hit]) -> float:
    for place, hit in enumerate(ranked, start=1):
        if not evidence.isdisjoint(hit.turns):
            return 1 / place
    return 0.0
