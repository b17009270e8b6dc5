"""From the events of a run of tests to rows and sums."""

from __future__ import annotations

from typing import Any

from memreplay.conversations.models import Conversation
from memreplay.engine.events import AgentReplied, BenchmarkModelAsked, ReplayEvent, TestScored
from memreplay.llm.model import PromptMessage, Reply, TokenUsage
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.points import tests_of as sum_of_tests
from memreplay.scoring.results import RunFacts
from memreplay.scoring.rows import rows_of_tests

AT: dict[str, Any] = {"conversation": "c@rag", "turn": 2, "backend": "rag"}
PROMPT = (PromptMessage(role="user", segments=("Hello",)),)


def conversation() -> Conversation:
    return Conversation(id="c@rag", dataset="d", sessions=(), turns=(), questions=(), conversing=True)


def scored(test: str, score: float | None, **more: Any) -> TestScored:
    return TestScored(
        **AT,
        **{
            "model": "m",
            "test_id": test,
            "dataset": test.partition(" - ")[0],
            "score": score,
            "max_score": 1,
            "reasoning": ("because",),
            "ungraded": None if score is not None else "no judge",
            "questions": ("Where?",),
            "responses": ("Here.",),
            "expected": "Here",
            "distance_tokens": 100,
            **more,
        },
    )


def replied(test: str | None, **more: Any) -> AgentReplied:
    reply = Reply(text="Here.", usage=TokenUsage(prompt=10, completion=2, cached=4), ms=8, **more)
    return AgentReplied(**AT, model="m", test_id=test, prompt=PROMPT, reply=reply)


def judged(test: str, cost: float | None) -> BenchmarkModelAsked:
    return BenchmarkModelAsked(**AT, test_id=test, model="j", reply="yes", error=None, cost_usd=cost)


def rows(*events: ReplayEvent) -> list:
    return rows_of_tests(conversation(), events)


def test_a_row_has_the_tokens_and_costs_of_its_own_messages() -> None:
    events = [replied("A - 0", cost_usd=0.5), replied("A - 0", cost_usd=0.25), replied("B - 0", cost_usd=9.0)]
    (row,) = rows(*events, judged("A - 0", 0.125), judged("B - 0", 7.0), scored("A - 0", 1.0))
    assert (row.tokens.prompt, row.tokens.completion, row.tokens.cached) == (20, 4, 8)
    assert (row.cost_usd, row.benchmark_cost_usd, row.ms) == (0.75, 0.125, 8)
    assert (row.conversation, row.dataset, row.type, row.kind) == ("c", "d", "A", "test")
    assert (row.question, row.reply, row.expected) == ("Where?", "Here.", "Here")


def test_an_unknown_price_is_null() -> None:
    (row,) = rows(replied("A - 0", cost_usd=0.5), replied("A - 0"), scored("A - 0", 1.0))
    assert row.cost_usd is None and row.benchmark_cost_usd is None


def test_full_marks_are_right_less_is_wrong_and_no_grade_is_an_error() -> None:
    found = rows(scored("A - 0", 1.0), scored("A - 1", 0.8), scored("A - 2", None))
    assert [row.outcome for row in found] == ["correct", "wrong", "error"]
    assert found[2].error == "no judge"
    sums = sum_of_tests(found)
    assert (sums.total, sums.graded, sums.correct, sums.errors) == (3, 2, 1, 1)
    assert (sums.score, sums.max_score) == (1.8, 2)


def test_the_ltm_score_is_over_tests_with_full_marks() -> None:
    found = rows(
        scored("A - 0", 1.0, distance_tokens=100),
        scored("B - 0", 1.0, distance_tokens=300),
        scored("B - 1", 0.5, distance_tokens=900),
    )
    sums = sum_of_tests(found)
    assert (sums.ltm_score, sums.by_dataset["A"].ltm_score, sums.by_dataset["B"].ltm_score) == (200, 100, 300)
    assert sum_of_tests(found[2:]).ltm_score is None


def test_tests_are_a_section_of_their_own_and_count_in_the_headline() -> None:
    facts = RunFacts(id="r", started_at="", finished_at=None, memreplay_version="0", settings={}, datasets=())
    results = build_results(facts, rows(scored("A - 0", 1.0), scored("A - 1", 0.0), scored("A - 2", None)))
    backend = results.backends["rag"]
    assert backend.accuracy == 0.5
    assert backend.multiple_choice is None and backend.recall is None
    assert backend.tests is not None and backend.tests.score == 1
    assert backend.latency_ms.recall_p50 is None
    assert '"not_recomputed": []' in results.to_json()
