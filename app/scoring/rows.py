"""From the events of one ask to its row in the results."""

from __future__ import annotations

from app.answering.model import Reply
from app.answering.model_names import AGENT_MODEL
from app.conversations.models import Conversation, Question
from app.replay.events import AnswerScored, QuestionAsked, ReplyReceived
from app.scoring.answer_key import Adjusted
from app.scoring.attribution import Attribution
from app.scoring.outcomes import RetrievalScore
from app.scoring.sections import HitRow, QuestionRow, Tokens
from memory_backends.base import Hit

MAX_SCORE = 1.0


def question_row(
    question: Question,
    conversation: Conversation,
    asked: QuestionAsked,
    received: ReplyReceived,
    scored: AnswerScored,
    attribution: Attribution | None = None,
    closed_book_correct: bool | None = None,
    adjusted: Adjusted | None = None,
) -> QuestionRow:
    """The row. Where memory could not be read no model was asked, and retrieval is not counted.

    What a call took that ended in an error is null, unless the reply tells it all the same.
    """
    reply, score = received.reply, scored.score
    model_was_asked = bool(asked.prompt)
    usage = reply.usage
    is_counted = reply.error is None or usage.prompt + usage.completion > 0
    retrieval = scored.retrieval if model_was_asked else RetrievalScore()
    recall_at = retrieval.recall_at or {}
    return QuestionRow(
        question_id=question.id,
        dataset=conversation.dataset,
        conversation=conversation.id,
        backend=asked.backend,
        model=asked.model,
        repeat=asked.repeat,
        kind=question.kind,
        type=question.type,
        question=question.text,
        expected=question.expected,
        predicted=score.predicted,
        predicted_index=score.predicted_index,
        correct_index=question.correct_index,
        score=score.score,
        max_score=MAX_SCORE,
        recorded_score=None,
        outcome=score.outcome,
        reply=reply.text,
        error=reply.error,
        evidence=question.evidence,
        evidence_role=question.evidence_role,
        hits=tuple(map(_hit_row, asked.hits)),
        recall_at_10=recall_at.get(10),
        evidence_in_prompt=retrieval.evidence_in_prompt,
        failure=attribution.label if attribution else None,
        tokens=_tokens(reply) if model_was_asked and is_counted and asked.model != AGENT_MODEL else None,
        cost_usd=reply.cost_usd if model_was_asked else None,
        ms=reply.ms if model_was_asked and (reply.error is None or reply.ms) else None,
        recall_ms=asked.recall_ms,
        other_type=question.other_type,
        location=question.info_location,
        salience=question.salience,
        category=question.category,
        exact_match=score.exact_match,
        entity_recall=score.entity_recall,
        f1=score.f1,
        recall_at_1=recall_at.get(1),
        recall_at_5=recall_at.get(5),
        reciprocal_rank=retrieval.reciprocal_rank,
        failure_loss=attribution.loss if attribution else None,
        failure_detail=attribution.detail if attribution else None,
        failure_ranks=attribution.ranks if attribution else {},
        closed_book_correct=closed_book_correct,
        adjusted=adjusted,
        earlier_questions=reply.earlier_questions,
        earlier_conversations=reply.earlier_conversations,
    )


def _tokens(reply: Reply) -> Tokens:
    return Tokens(prompt=reply.usage.prompt, completion=reply.usage.completion, cached=reply.usage.cached)


def _hit_row(hit: Hit) -> HitRow:
    return HitRow(
        id=hit.id,
        store=hit.store,
        rank=hit.rank,
        score=hit.score,
        turns=hit.turns,
        sources=hit.sources,
        in_prompt=hit.in_prompt,
    )
