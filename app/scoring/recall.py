"""Scoring of a reply to a recall question.

Replies are compared without the reasoning that a model put before its answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from app.answering.reasoning import without_reasoning
from app.answering.refusals import says_not_said
from app.conversations.models import Question
from app.conversations.normalise import normalised, stands_in
from app.scoring.outcomes import Outcome, Score


def score_recall(question: Question, text: str) -> Score:
    """Correct on an exact match, or where there are expected entities and the reply holds all of them.

    Where the right answer is that it was never said, saying so is correct; elsewhere it is wrong. A reply without
    an answer is unparsed.
    """
    answer = without_reasoning(text)
    if not answer.strip():
        return nothing_found(question, "unparsed", text)
    if question.abstain:
        return _judged(says_not_said(text), text)
    if says_not_said(text):
        return nothing_found(question, "wrong", text)
    exact = stands_in(question.expected, answer)
    found = _share_found(question.expected_entities, answer)
    return _judged(exact or found == 1.0, text).model_copy(
        update={"exact_match": exact, "entity_recall": found, "f1": token_f1(question.expected, answer)}
    )


def nothing_found(question: Question, outcome: Outcome, text: str | None) -> Score:
    """The score of a reply that holds no answer."""
    if question.abstain:
        return Score(outcome=outcome, score=0.0, predicted=text)
    entities = 0.0 if question.expected_entities else None
    return Score(outcome=outcome, score=0.0, predicted=text, exact_match=False, entity_recall=entities, f1=0.0)


def token_f1(expected: str, answer: str) -> float:
    """Harmonic mean of precision and recall over the words of both, normalised, as multisets; 0..1."""
    wanted, given = normalised(expected).split(), normalised(answer).split()
    shared = (Counter(wanted) & Counter(given)).total()
    return 2 * shared / (len(wanted) + len(given)) if shared else 0.0


def _share_found(entities: Sequence[str], answer: str) -> float | None:
    if not entities:
        return None
    return sum(stands_in(entity, answer) for entity in entities) / len(entities)


def _judged(correct: bool, text: str) -> Score:
    return Score(outcome="correct" if correct else "wrong", score=1.0 if correct else 0.0, predicted=text)
