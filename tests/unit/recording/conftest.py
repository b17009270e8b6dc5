"""A small conversation and the events of its replay."""

from __future__ import annotations

import pytest

from memory_backends.base import Hit
from memory_backends.stores.trace import AppendChange, MemoryOperation
from memreplay.conversations.models import Conversation, Question, Session, Turn
from memreplay.engine.events import (
    AnswerScored,
    ConversationClosed,
    ConversationOpened,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    StoreOperated,
    TurnPlayed,
)
from memreplay.grading import RetrievalScore, Score
from memreplay.llm.model import PromptMessage, Reply

CONTEXT = "User: my cat is called [bold]Brisa[/] \x1b[31m\n" * 8


@pytest.fixture
def conversation() -> Conversation:
    return Conversation(
        id="tiny-01",
        dataset="tiny-01",
        sessions=(Session(number=1, id="1"),),
        turns=(
            Turn(id="1", number=1, session=1, role="user", speaker=None, text=CONTEXT),
            Turn(id="2", number=2, session=1, role="assistant", speaker=None, text="Noted."),
        ),
        questions=(
            Question(
                id="tiny-01-q1",
                kind="recall",
                type="early",
                text="The cat's name?",
                expected="Brisa",
                evidence=("1",),
            ),
            Question(id="tiny-01-q2", kind="recall", type="early", text="And the dog's?", expected="Toro"),
        ),
    )


@pytest.fixture
def events() -> list[ReplayEvent]:
    ask = {
        "conversation": "tiny-01",
        "turn": 2,
        "backend": "full_context",
        "model": "m",
        "question_id": "tiny-01-q1",
    }
    hit = Hit(id="h", store="redis", place="full_history:x", rank=1, score=None, text=CONTEXT, turns=("1",))
    operation = MemoryOperation(
        store="redis",
        command="APPEND",
        key="full_history:x",
        change=AppendChange(offset=0, text=CONTEXT),
        ms=0.1,
        phase="observe",
        actor="full_context",
        turns=("1", "2"),
    )
    return [
        ConversationOpened(conversation="tiny-01", turn=0, backend="full_context"),
        TurnPlayed(conversation="tiny-01", turn=1),
        TurnPlayed(conversation="tiny-01", turn=2),
        StoreOperated(conversation="tiny-01", turn=2, backend="full_context", operation=operation),
        QuestionAsked(
            **ask,
            hits=(hit,),
            cut=(),
            context_tokens=80,
            prompt=(PromptMessage(role="user", segments=("Conversation History:\n", CONTEXT, "\nAnswer:")),),
            recall_ms=1.0,
        ),
        ReplyReceived(**ask, reply=Reply(text="Brisa")),
        AnswerScored(
            **ask,
            score=Score(outcome="correct", score=1.0, predicted="Brisa", exact_match=True, f1=1.0),
            retrieval=RetrievalScore(recall_at={1: 1.0}, reciprocal_rank=1.0, evidence_in_prompt=True),
        ),
        ConversationClosed(conversation="tiny-01", turn=3, backend="full_context", status="resolved"),
    ]
