"""What a recorded reply is worth: from the events of its ask alone."""

from __future__ import annotations

from typing import Any

from app.answering.model import Reply
from app.answering.model_names import AGENT_MODEL
from app.conversations.models import Question
from app.replay.events import AnswerScored, AskEvent, QuestionAsked
from app.replay.shuffling import with_order
from app.scoring.outcomes import RetrievalScore, Score
from app.scoring.replies import score_reply
from app.scoring.retrieval import UNRANKED_BACKENDS, score_retrieval


def score_answer(question: Question, asked: QuestionAsked, reply: Reply) -> AnswerScored:
    """What a reply is worth, and how well memory found the evidence: from what was recorded alone.

    Nobody knows what an agent has looked up, so its retrieval is not scored.
    """
    if asked.model == AGENT_MODEL:
        retrieval = RetrievalScore()
    else:
        retrieval = score_retrieval(question, asked.hits, asked.backend not in UNRANKED_BACKENDS)
    score = _score_as_shown(question, asked.choice_order, reply)
    return AnswerScored(**ask_fields(asked), score=score, retrieval=retrieval)


def ask_fields(asked: QuestionAsked) -> dict[str, Any]:
    """What all events of one ask have in common."""
    return asked.model_dump(include=set(AskEvent.model_fields))


def _score_as_shown(question: Question, order: tuple[int, ...], reply: Reply) -> Score:
    """The score of a reply that counts options as they stood in the prompt; its index is the dataset's again."""
    score = score_reply(with_order(question, order), reply)
    if not order or score.predicted_index is None:
        return score
    return score.model_copy(update={"predicted_index": order[score.predicted_index]})
