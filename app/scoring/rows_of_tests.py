"""From the events of a run of tests to its rows in the results: one for each test that is over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from app.answering.model import Reply
from app.conversations.models import Conversation
from app.replay.events import AgentReplied, BenchmarkModelAsked, ReplayEvent, TestScored
from app.scoring.outcomes import Outcome
from app.scoring.sections import QuestionRow, Tokens
from app.scoring.statistics import mean

TEST_KINDS = ("agent_replied", "benchmark_model_asked", "test_scored")
"""The events that the rows are made from."""

_EQUAL = 1e-6
_FULL_MARKS = 1 - _EQUAL
_DIGITS = re.compile(r"(\d+)")
_REPEAT = re.compile(r"#\d+")


def rows_of_tests(conversation: Conversation, events: Iterable[ReplayEvent]) -> list[QuestionRow]:
    """The rows of a conversation's tests, by dataset and then by id: whichever was over first."""
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
    """What the model cost that wrote the tests: its calls are of no test. None where no cost is known."""
    calls = [event for event in events if isinstance(event, BenchmarkModelAsked) and not event.test_id]
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    return sum(costs) if costs else None


def outcome_of_test(scored: TestScored) -> Outcome:
    """Correct at full score, wrong below. What nobody could grade is an error and not a wrong answer."""
    score = scored.recorded_score if scored.score is None else scored.score
    if score is None:
        return "error"
    return "correct" if score >= scored.max_score * _FULL_MARKS else "wrong"


def place_of_test(scored: TestScored) -> tuple[str, list[tuple[int, str]]]:
    """By dataset, and then by id with numbers as numbers."""
    parts = _DIGITS.split(scored.test_id)
    return scored.dataset, [(int(part) if place % 2 else 0, part) for place, part in enumerate(parts)]


def differs_from_record(scored: TestScored) -> bool:
    """Whether a test has a score on record and we come to another."""
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
    costs = [reply.cost_usd for reply in answered if reply.error is None]
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
        predicted_index=None,
        correct_index=None,
        score=scored.score,
        max_score=scored.max_score,
        recorded_score=scored.recorded_score,
        outcome=outcome,
        reply="\n".join(scored.responses),
        error=scored.ungraded,
        evidence=(),
        evidence_role=None,
        hits=(),
        recall_at_10=None,
        evidence_in_prompt=None,
        failure=None,
        failure_loss=None,
        failure_detail=None,
        failure_ranks={},
        closed_book_correct=None,
        adjusted=None,
        tokens=_tokens(answered) if answered else None,
        cost_usd=sum(cost or 0.0 for cost in costs) if costs and None not in costs else None,
        ms=mean([reply.ms for reply in answered]),
        recall_ms=None,
        other_type=None,
        location=None,
        salience=None,
        category=None,
        exact_match=None,
        entity_recall=None,
        f1=None,
        recall_at_1=None,
        recall_at_5=None,
        reciprocal_rank=None,
        reasoning=scored.reasoning,
        distance_tokens=scored.distance_tokens,
        benchmark_cost_usd=sum(benchmark) if benchmark else None,
    )


def _name_and_repeat(conversation: Conversation, scored: TestScored) -> tuple[str, int]:
    """The conversation without whose it is, and its repeat from 0: rows of one test stand beside each other."""
    for owner in (f"@{scored.backend}@{scored.model}", f"@{scored.backend}"):
        name, found, mark = conversation.id.rpartition(owner)
        if found and (not mark or _REPEAT.fullmatch(mark)):
            return name, int(mark[1:]) - 1 if mark else 0
    return conversation.id, 0


def _tokens(replies: Sequence[Reply]) -> Tokens:
    return Tokens(
        prompt=sum(reply.usage.prompt for reply in replies),
        completion=sum(reply.usage.completion for reply in replies),
        cached=sum(reply.usage.cached for reply in replies),
    )
