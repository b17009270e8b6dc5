"""What a reply was worth, whatever kind of question it answers."""

from __future__ import annotations

from app.answering.model import Reply
from app.conversations.models import Question
from app.scoring.choice import score_choice
from app.scoring.outcomes import Score
from app.scoring.recall import nothing_found, score_recall

_SCORER = {"choice": score_choice, "recall": score_recall}


def score_reply(question: Question, reply: Reply) -> Score:
    """The score of a reply. An error is not a wrong answer; a provider's refusal is, and is counted apart."""
    if reply.error is not None:
        return Score(outcome="error", score=None)
    if reply.refused:
        return _REFUSED[question.kind](question, reply.text)
    return _SCORER[question.kind](question, reply.text or "")


def _refused_choice(question: Question, text: str | None) -> Score:
    return Score(outcome="refused", score=0.0, predicted=text)


def _refused_recall(question: Question, text: str | None) -> Score:
    return nothing_found(question, "refused", text)


_REFUSED = {"choice": _refused_choice, "recall": _refused_recall}
