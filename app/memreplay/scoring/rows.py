"""Build the rows of the results from events: one per answer, one per finished test."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_backends.base import Hit
from memreplay.conversations.models import Conversation, Question
from memreplay.conversations.option_style import blind_guess
from memreplay.engine.answers import CUTOFFS
from memreplay.engine.events import (
    AgentReplied,
    AnswerJudged,
    AnswerScored,
    BenchmarkModelAsked,
    ReplayEvent,
    ReplyReceived,
    TestScored,
)
from memreplay.grading import Outcome, RetrievalScore, Score
from memreplay.grading.failures import GradingError, grading_one_answer
from memreplay.grading.judge import is_abstention
from memreplay.llm import AGENT_MODEL
from memreplay.llm.judging import Verdict, read_again
from memreplay.llm.model import Reply
from memreplay.llm.tokens import token_counter
from memreplay.scoring.answer_key import AnswerKey
from memreplay.scoring.attribution import Attribution
from memreplay.scoring.equal_tokens import held_at_tokens
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.holding import Answerable
from memreplay.scoring.published import published_f1
from memreplay.scoring.question_row import ANSWER_METRICS, HitRow, JudgeRow, QuestionRow, Tokens, recall_field
from memreplay.scoring.recut import Ranking
from memreplay.scoring.statistics import mean
from memreplay.scoring.what_if import says_answer

MAX_SCORE = 1.0


def question_row(
    answerable: Answerable,
    conversation: Conversation,
    stages: Stages,
    received: ReplyReceived,
    scored: AnswerScored,
    attribution: Attribution | None = None,
    closed_book_correct: bool | None = None,
    answer_key: AnswerKey | None = None,
    judged: Sequence[AnswerJudged] = (),
    label: Verdict | None = None,
    settings: Mapping[str, Any] | None = None,
) -> QuestionRow:
    """Build the row of an answer. If memory could not be read, no model was called and retrieval is not scored.

    ``settings`` are those of the run; they say at which limits its prompts were cut.
    Tokens and duration of a failed call are null unless the reply reports them. Hits of memories that do not count
    their tokens are counted here. An answer whose figures the rules fail to compute is an error, with its reply.
    """
    question, asked = answerable.question, stages.asked
    reply, score, judge = received.reply, scored.score, _judge_row(judged)
    count = token_counter(asked.model)
    hits = [hit if hit.tokens else hit.model_copy(update={"tokens": count(hit.text)}) for hit in asked.hits]
    model_was_asked = bool(asked.prompt)
    was_metered = model_was_asked and asked.measured
    retrieval = scored.retrieval if model_was_asked else RetrievalScore()
    recall_at = retrieval.recall_at or {}
    try:
        with grading_one_answer():
            ranking = Ranking(conversation, asked.model_copy(update={"hits": tuple(hits)}), settings or {}, count)
            figures = _figures(answerable, stages, ranking, reply, score, retrieval, answer_key)
    except GradingError as error:
        score, figures = Score(outcome="error", score=None, problem=str(error)), {}
        attribution = Attribution(label="error", detail=str(error))
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
        outcome=score.outcome,
        reply=reply.text,
        error=reply.error or score.error or (judge.error if judge is not None else None),
        evidence=question.evidence,
        evidence_role=question.evidence_role,
        hits=tuple(map(_hit_row, hits)),
        evidence_in_prompt=retrieval.evidence_in_prompt,
        failure=attribution.label if attribution else None,
        # A prompt of no tokens is one that the server did not count.
        tokens=_tokens(reply) if was_metered and reply.usage.prompt and asked.model != AGENT_MODEL else None,
        cost_usd=reply.cost_usd if was_metered else None,
        ms=reply.ms if (was_metered and reply.error is None) or reply.ms else None,
        recall_ms=asked.recall_ms if asked.measured or asked.recall_ms else None,
        other_type=question.other_type,
        location=question.info_location,
        salience=question.salience,
        category=question.category,
        reciprocal_rank=retrieval.reciprocal_rank,
        failure_doubt=attribution.doubt if attribution else None,
        failure_loss=attribution.loss if attribution else None,
        failure_detail=attribution.detail if attribution else None,
        failure_writer=attribution.writer if attribution else None,
        failure_ranks=attribution.ranks if attribution else {},
        failure_judge=attribution.judge if attribution else None,
        failure_by_rules=attribution.by_rules if attribution else None,
        closed_book_correct=closed_book_correct,
        decided_by=score.decided_by,
        uncertain=score.uncertain,
        earlier_questions=reply.earlier_questions,
        earlier_conversations=reply.earlier_conversations,
        cut_tokens=sum(cut.tokens for cut in asked.cut),
        abstain=question.abstain,
        grader=score.grader,
        judge=judge,
        label=label,
        **{metric: getattr(score, metric) for metric in ANSWER_METRICS},
        **{recall_field(k): recall_at.get(k) for k in CUTOFFS},
        **figures,
    )


def _figures(
    answerable: Answerable,
    stages: Stages,
    ranking: Ranking,
    reply: Reply,
    score: Score,
    retrieval: RetrievalScore,
    answer_key: AnswerKey | None,
) -> dict[str, Any]:
    """Return the fields of a row that the rules compute from the texts of its answer and its hits."""
    question = answerable.question
    has_ranking = retrieval.recall_at is not None and bool(answerable.evidence)
    if reply.text is not None:
        # It is computed again where it is summed up; here it costs only its own row if it fails.
        published_f1(question.type, question.other_type, question.expected, reply.text)
    return {
        "adjusted": answer_key.adjusted(question, stages.asked, reply, score) if answer_key is not None else None,
        "at_tokens": held_at_tokens(answerable, stages, ranking) if has_ranking else None,
        "answer_in_prompt": None if retrieval.evidence_in_prompt is None else answerable.held_by(stages.in_prompt),
        "answer_said": says_answer(question, (piece.text for piece in stages.in_prompt)),
        "blind_guess": _blind_guess(question),
        "abstained": None if score.outcome == "error" else is_abstention(score.predicted or ""),
    }


def _judge_row(judged: Sequence[AnswerJudged]) -> JudgeRow | None:
    """Return the last judgement; its tokens and price include the earlier ones, which were paid for too."""
    if not judged:
        return None
    last, replies = read_again(judged[-1].judgement), [event.judgement.reply for event in judged]
    costs = [reply.cost_usd for reply in replies if reply.was_billed]
    return JudgeRow(
        model=last.judge,
        rubric=last.rubric,
        verdict=last.verdict,
        reply=last.reply.text,
        error=last.problem,
        calls=sum(bool(event.judgement.prompt) for event in judged),
        tokens=Tokens(
            prompt=sum(reply.usage.prompt for reply in replies),
            completion=sum(reply.usage.completion for reply in replies),
            cached=sum(reply.usage.cached for reply in replies),
        ),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        ms=sum(reply.ms for reply in replies),
    )


def _blind_guess(question: Question) -> float | None:
    """Return the chance that the blind guesser is right; None where there is nothing to choose."""
    if len(question.choices) < 2 or question.correct_index is None:
        return None
    guesses = blind_guess(question.choices)
    return 1 / len(guesses) if question.correct_index in guesses else 0.0


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
        tokens=hit.tokens,
    )


TEST_KINDS = ("agent_replied", "benchmark_model_asked", "test_scored")
"""The events from which the rows of tests are built."""

_EQUAL = 1e-6
_FULL_MARKS = 1 - _EQUAL
_DIGITS = re.compile(r"(\d+)")
_REPEAT = re.compile(r"#\d+")


def rows_of_tests(conversation: Conversation, events: Iterable[ReplayEvent]) -> list[QuestionRow]:
    """Build the rows of a conversation's tests, sorted by dataset and id, not by time."""
    kept = list(events)
    replies = [event for event in kept if isinstance(event, AgentReplied)]
    asked = [event for event in kept if isinstance(event, BenchmarkModelAsked)]
    scored = {event.test_id: event for event in kept if isinstance(event, TestScored)}
    return [
        _row(
            conversation,
            event,
            [reply for reply in replies if reply.test_id == event.test_id],
            [call for call in asked if call.test_id == event.test_id],
        )
        for event in sorted(scored.values(), key=place_of_test)
    ]


def cost_of_writing(events: Iterable[ReplayEvent]) -> float | None:
    """Return the cost of generating the tests: the model calls outside of any test. None if no cost is known."""
    calls = [event for event in events if isinstance(event, BenchmarkModelAsked) and not event.test_id]
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    return sum(costs) if costs else None


def outcome_of_test(scored: TestScored) -> Outcome:
    """Correct at full score, wrong below. An ungraded test is an error, not a wrong answer."""
    score = scored.recorded_score if scored.score is None else scored.score
    if score is None:
        return "error"
    return "correct" if score >= scored.max_score * _FULL_MARKS else "wrong"


def place_of_test(scored: TestScored) -> tuple[str, list[tuple[int, str]]]:
    """Sort key: dataset, then id in natural order."""
    parts = _DIGITS.split(scored.test_id)
    return scored.dataset, [(int(part) if place % 2 else 0, part) for place, part in enumerate(parts)]


def differs_from_record(scored: TestScored) -> bool:
    """Return whether the recorded and the new score of a test differ."""
    if scored.score is None or scored.recorded_score is None:
        return False
    return abs(scored.score - scored.recorded_score) > _EQUAL


def _row(
    conversation: Conversation,
    scored: TestScored,
    replies: Sequence[AgentReplied],
    asked: Sequence[BenchmarkModelAsked],
) -> QuestionRow:
    outcome = outcome_of_test(scored)
    name, repeat = _name_and_repeat(conversation, scored)
    answered = [event.reply for event in replies if event.prompt]
    costs = [reply.cost_usd for reply in answered if reply.was_billed]
    benchmark = [call.cost_usd for call in asked if call.cost_usd is not None]
    return QuestionRow(
        question_id=scored.test_id,
        dataset=conversation.dataset,
        conversation=name,
        backend=scored.backend,
        model=scored.model,
        repeat=repeat,
        kind="test",
        type=scored.dataset,
        question="\n".join(scored.questions),
        expected=scored.expected,
        predicted="\n".join(scored.responses),
        score=scored.score,
        max_score=scored.max_score,
        recorded_score=scored.recorded_score,
        outcome=outcome,
        reply="\n".join(scored.responses),
        error=scored.ungraded,
        tokens=_test_tokens(answered) if answered else None,
        cost_usd=sum(cost or 0.0 for cost in costs) if costs and None not in costs else None,
        ms=mean([reply.ms for reply in answered]),
        reasoning=scored.reasoning,
        distance_tokens=scored.distance_tokens,
        benchmark_cost_usd=sum(benchmark) if benchmark else None,
    )


def _name_and_repeat(conversation: Conversation, scored: TestScored) -> tuple[str, int]:
    """Return the conversation's name without backend and model, and the 0-based repeat."""
    for owner in (f"@{scored.backend}@{scored.model}", f"@{scored.backend}"):
        name, found, mark = conversation.id.rpartition(owner)
        if found and (not mark or _REPEAT.fullmatch(mark)):
            return name, int(mark[1:]) - 1 if mark else 0
    return conversation.id, 0


def _test_tokens(replies: Sequence[Reply]) -> Tokens:
    return Tokens(
        prompt=sum(reply.usage.prompt for reply in replies),
        completion=sum(reply.usage.completion for reply in replies),
        cached=sum(reply.usage.cached for reply in replies),
    )
