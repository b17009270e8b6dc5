"""Questions, events and rows for the tests of scoring."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memory_backends.base import Excerpt, Hit
from memory_backends.retrieval.rendering import BETWEEN_HITS
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.answers import UNRANKED_BACKENDS, score_reply, score_retrieval
from memreplay.engine.events import AnswerScored, QuestionAsked, ReplyReceived
from memreplay.llm.model import PromptMessage, Reply, TokenUsage
from memreplay.llm.tokens import token_counter
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.holding import Answerable
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.rows import question_row
from memreplay.scoring.stored import StoredMemory

MODEL = "stub/model"


def choice(**changes: Any) -> Question:
    """Which fruit? The quince, at index 3."""
    fruits = ("apple", "banana", "cherry", "quince", "elder", "fig", "grape", "lime", "Not answerable", "kiwi")
    fields = {
        "id": "q",
        "kind": "choice",
        "type": "single_hop",
        "other_type": "multi-hop",
        "text": "Which fruit?",
        "expected": "quince",
        "choices": fruits,
        "correct_index": 3,
    }
    return Question.model_validate(fields | changes)


def recall(**changes: Any) -> Question:
    """Who comes along? Ida and Bo."""
    fields = {
        "id": "q",
        "kind": "recall",
        "type": "early",
        "text": "Who comes along?",
        "expected": "Ida and Bo",
        "expected_entities": ("Ida", "Bo"),
        "info_location": "early",
        "salience": "high",
        "category": "identity",
    }
    return Question.model_validate(fields | changes)


def hit(
    rank: int,
    *turns: str,
    in_prompt: bool = True,
    sources: tuple[str, ...] = (),
    text: str = "",
    tokens: int = 0,
    excerpts: tuple[Excerpt, ...] = (),
) -> Hit:
    """A hit of these turns, in a text of so many tokens."""
    return Hit(
        id=f"h{rank}",
        store="qdrant",
        place="p",
        rank=rank,
        score=1 / rank,
        text=text or " ".join(["text"] * max(tokens, 1)),
        tokens=tokens,
        turns=turns,
        sources=sources,
        excerpts=excerpts,
        in_prompt=in_prompt,
    )


def stages_of(hits: Iterable[Hit]) -> Stages:
    """What an answer was read from, of a memory of which only these hits are known."""
    asked = QuestionAsked(
        conversation="c", turn=4, backend="rag", model=MODEL, question_id="q", hits=tuple(hits), cut=(),
        context_tokens=3, recall_ms=5.0, prompt=(PromptMessage(role="user", segments=("x",)),),
    )  # fmt: skip
    return Stages(asked, StoredMemory(()), {})


def reply(text: str | None = None, **changes: Any) -> Reply:
    """A reply of ten prompt tokens that cost a cent and took 100 ms."""
    fields = {"text": text, "usage": TokenUsage(prompt=10, completion=2, cached=4), "cost_usd": 0.01, "ms": 100.0}
    return Reply.model_validate(fields | changes)


def row(
    question: Question,
    answer: Reply,
    *hits: Hit,
    backend: str = "rag",
    model: str = MODEL,
    memory_failed: bool = False,
    recall_ms: float = 5.0,
) -> QuestionRow:
    """The row of an ask, made through its events as a run makes them."""
    of = {"conversation": "c", "turn": 4, "backend": backend, "model": model, "question_id": question.id}
    prompt = () if memory_failed else (PromptMessage(role="user", segments=("x",)),)
    tokens = token_counter(model)(BETWEEN_HITS.join(hit.text for hit in hits if hit.in_prompt))
    asked = QuestionAsked(**of, hits=hits, cut=(), context_tokens=tokens, prompt=prompt, recall_ms=recall_ms)
    scored = AnswerScored(
        **of,
        score=score_reply(question, answer),
        retrieval=score_retrieval(question, hits, backend not in UNRANKED_BACKENDS),
    )
    conversation = Conversation(id="c", dataset="d", sessions=(), turns=(), questions=(question,))
    stages = Stages(asked, StoredMemory(()), {})
    return question_row(Answerable(question, {}), conversation, stages, ReplyReceived(**of, reply=answer), scored)
