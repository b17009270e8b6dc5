"""Scoring of a reply to a multiple-choice question."""

from __future__ import annotations

from app.answering.choice_parsing import parse_choice
from app.conversations.models import Question
from app.scoring.outcomes import Score


def score_choice(question: Question, text: str) -> Score:
    """Correct where the index that the reply names is the correct one; a reply that names none is unparsed."""
    index = parse_choice(text, question.choices).index
    if index is None:
        return Score(outcome="unparsed", score=0.0, predicted=text)
    correct = index == question.correct_index
    return Score(
        outcome="correct" if correct else "wrong",
        score=1.0 if correct else 0.0,
        predicted=question.choices[index],
        predicted_index=index,
    )
