"""What the three architectures of the hand-made run answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memreplay.conversations.models import Conversation
from memreplay.engine.events import AnswerScored, QuestionAsked, ReplayEvent, ReplyReceived
from memreplay.grading import Outcome, RetrievalScore, Score
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.model import PromptMessage, Reply

_REPLIES: dict[tuple[str, str], tuple[Outcome, str]] = {
    ("q1", "hybrid"): ("correct", "Marta Vidal"),
    ("q1", "rag"): ("error", "the collection does not answer"),
    ("q1", "full_context"): ("wrong", "The conversation does not say."),
    ("q2", "hybrid"): ("wrong", "5432"),
    ("q2", "rag"): ("correct", "Port 6543, because 5432 was taken."),
    ("q2", "full_context"): ("correct", "6543"),
    ("q3", "hybrid"): ("correct", "Girona"),
    ("q3", "rag"): ("unparsed", "Barcelona or Girona"),
    ("q3", "full_context"): ("correct", "Girona"),
}


def answers(known: Conversation) -> Iterator[ReplayEvent]:
    """Each question asked of each architecture after the last turn: right, wrong, unparsed, and an error."""
    for (question_id, backend), (outcome, text) in _REPLIES.items():
        place: dict[str, Any] = {
            "conversation": known.id,
            "turn": len(known.turns),
            "backend": backend,
            "model": EXTRACTIVE_MODEL,
            "question_id": question_id,
        }
        prompt = (PromptMessage(role="user", segments=("context", "question")),)
        yield QuestionAsked(**place, hits=(), cut=(), context_tokens=80, prompt=prompt, recall_ms=1.0)
        failed = outcome == "error"
        yield ReplyReceived(**place, reply=Reply(text=None if failed else text, error=text if failed else None))
        score = None if failed else float(outcome == "correct")
        retrieval = RetrievalScore(
            recall_at={1: 1.0, 5: 1.0, 10: 1.0} if backend != "full_context" else None,
            reciprocal_rank=1.0 if backend != "full_context" else None,
            evidence_in_prompt=None if failed else outcome != "wrong",
        )
        scored = Score(outcome=outcome, score=score, predicted=None if failed else text)
        yield AnswerScored(**place, score=scored, retrieval=retrieval)
