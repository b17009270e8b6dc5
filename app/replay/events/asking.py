"""What comes of a question."""

from __future__ import annotations

from typing import Literal

from app.answering.model import PromptMessage, Reply
from app.replay.events.base import AskEvent
from app.scoring.outcomes import RetrievalScore, Score
from memory_backends.base import Cut, Hit, WhyEmpty

ASK_KINDS = ("question_asked", "reply_received", "answer_scored")
"""The kinds of :class:`AskEvent`, in their order."""


class QuestionAsked(AskEvent):
    """A question is on its way: what memory gave for it, and the prompt as it is sent. ``recall_ms`` of wall time.

    ``prompt`` is empty where memory failed: then no model is asked. ``choice_order`` is set where the options were
    shown in another order than the dataset's: the dataset's index of each option, as they stood in the prompt.
    ``typed`` is the text of a question that the user typed in; None for one of the dataset's.
    """

    kind: Literal["question_asked"] = "question_asked"
    hits: tuple[Hit, ...]
    missed: tuple[Hit, ...] = ()
    why_empty: WhyEmpty | None = None
    cut: tuple[Cut, ...]
    context_tokens: int
    prompt: tuple[PromptMessage, ...]
    recall_ms: float
    choice_order: tuple[int, ...] = ()
    typed: str | None = None


class ReplyReceived(AskEvent):
    """The reply, as it came. It is on disk before anything else happens with it."""

    kind: Literal["reply_received"] = "reply_received"
    reply: Reply


class AnswerScored(AskEvent):
    """What the reply was worth."""

    kind: Literal["answer_scored"] = "answer_scored"
    score: Score
    retrieval: RetrievalScore
