"""Which of the decisions on a turn tells what became of the fact that a question asks for."""

from __future__ import annotations

import pytest

from memory_backends.stores.trace import PromotionDecision, SignificanceFactors
from memreplay.conversations.models import Question
from memreplay.debugger.biography import decisive_judgement
from memreplay.timeline.event_store import DecisionSummary
from memreplay.timeline.timeline import Ledger

FACTORS = SignificanceFactors(certainty=0.9, impact=0.9, age_days=0, accesses=1, age_decay=1, recency_boost=1)
QUESTION = Question(
    id="q",
    kind="recall",
    type="early",
    text="Where does she teach?",
    expected="At Balgillo",
    expected_entities=("Balgillo",),
    evidence=("1",),
    evidence_role="supports",
)


def decided(candidate: str, content: str, decision: str, score: float) -> PromotionDecision:
    return PromotionDecision.model_validate(
        {
            "candidate_id": candidate,
            "content": content,
            "slot": None,
            "sources": ("1",),
            "factors": FACTORS,
            "score": score,
            "threshold": 0.6,
            "decision": decision,
            "justification": "",
        }
    )


def ledger(*entries: tuple[int, PromotionDecision]) -> Ledger:
    made = Ledger(lambda ref: entries[ref][1])
    for ref, (turn, one) in enumerate(entries):
        made.add(turn, ref, DecisionSummary(one.decision, one.sources, one.superseded_id))
    return made


SCHOOL = decided("school", "she teaches at Balgillo Academy", "ADD", 0.7)
WEAK = decided("weak", "a woman taught something", "DROP", 0.3)
STRONG = decided("strong", "eleven years", "DROP", 0.5)
KEPT = decided("kept", "she likes gloves", "ADD", 0.9)


@pytest.mark.parametrize(
    ("judged", "told"),
    [
        ((KEPT, STRONG, SCHOOL), "school"),
        ((KEPT, WEAK, STRONG), "strong"),
        ((KEPT,), "kept"),
    ],
    ids=["what holds the answer", "what was dropped, the most significant first", "what else there is"],
)
def test_the_most_informative_decision_is_named(judged: tuple[PromotionDecision, ...], told: str) -> None:
    found = decisive_judgement(ledger(*((2, one) for one in judged)), "1", QUESTION, until=9)
    assert found is not None
    assert (found[0], found[1].candidate_id) == (2, told)


def test_nothing_tells_of_a_turn_on_which_nothing_was_judged_by_then() -> None:
    known = ledger((4, SCHOOL))
    assert decisive_judgement(known, "1", QUESTION, until=3) is None
    assert decisive_judgement(known, "2", QUESTION, until=9) is None
