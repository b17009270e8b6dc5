"""How well evidence was found."""

from __future__ import annotations

import pytest

from memreplay.conversations.models import Question
from memreplay.engine.answers import score_retrieval
from memreplay.grading import RetrievalScore
from tests.unit.scoring.samples import choice, hit

SUPPORTED = choice(evidence=("D1:1", "D2:2"), evidence_role="supports")


def test_recall_at_k_is_the_share_of_evidence_in_the_first_k_hits() -> None:
    hits = [hit(1, "D9:9"), hit(2, "D1:1", "D1:2"), *(hit(rank, "D8:1") for rank in range(3, 6)), hit(6, "D2:2")]
    score = score_retrieval(SUPPORTED, hits, has_retriever=True)
    assert score.recall_at == {1: 0.0, 5: 0.5, 10: 1.0}
    assert score.reciprocal_rank == 0.5
    assert score.evidence_in_prompt is True


def test_hits_count_by_their_rank_and_not_by_their_place_in_the_list() -> None:
    score = score_retrieval(SUPPORTED, [hit(2, "D9:9"), hit(1, "D2:2")], has_retriever=True)
    assert (score.recall_at, score.reciprocal_rank) == ({1: 0.5, 5: 0.5, 10: 0.5}, 1.0)


def test_what_the_budget_cut_was_retrieved_but_is_not_in_the_prompt() -> None:
    score = score_retrieval(SUPPORTED, [hit(1, "D1:1"), hit(2, "D2:2", in_prompt=False)], has_retriever=True)
    assert score.recall_at == {1: 0.5, 5: 1.0, 10: 1.0}
    assert score.evidence_in_prompt is False


def test_evidence_is_in_the_prompt_only_where_all_of_it_is() -> None:
    assert score_retrieval(SUPPORTED, [hit(1, "D1:1")], has_retriever=False).evidence_in_prompt is False
    assert score_retrieval(SUPPORTED, [hit(1, "D2:2", "D1:1")], has_retriever=False).evidence_in_prompt is True


def test_turns_that_a_hit_was_distilled_from_are_not_its_text() -> None:
    score = score_retrieval(SUPPORTED, [hit(1, sources=("D1:1", "D2:2"))], has_retriever=True)
    assert score == RetrievalScore(recall_at={1: 0, 5: 0, 10: 0}, reciprocal_rank=0.0, evidence_in_prompt=False)


def test_a_backend_without_a_retriever_has_only_evidence_in_prompt() -> None:
    score = score_retrieval(SUPPORTED, [hit(1, "D1:1", "D2:2")], has_retriever=False)
    assert score == RetrievalScore(evidence_in_prompt=True)


@pytest.mark.parametrize("question", [choice(), choice(evidence=("D1:1",), evidence_role="tempting", abstain=True)])
def test_nothing_is_measured_where_no_evidence_supports_the_answer(question: Question) -> None:
    assert score_retrieval(question, [hit(1, "D1:1")], has_retriever=True) == RetrievalScore()
