"""results.json: its keys, and what is computed from rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memreplay.engine.answers import CUTOFFS
from memreplay.grading import Score
from memreplay.llm.model import TokenUsage
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.question_row import ANSWER_METRICS, QuestionRow, recall_field
from memreplay.scoring.results import RecallResults, Results, RunFacts
from memreplay.scoring.statistics import wilson_interval
from tests.unit.scoring.samples import MODEL, choice, hit, recall, reply, row

RUN = RunFacts(
    id="r1",
    started_at="2026-01-01T00:00:00.000Z",
    finished_at=None,
    memreplay_version="0.1.0",
    settings={"top_k": 10, "temperature": 1 / 3},
    datasets=("d",),
)
ERROR = reply(None, error="timed out", usage=TokenUsage(), cost_usd=None, ms=0.0)


def results_of(*rows: QuestionRow) -> Results:
    return build_results(RUN, rows)


def as_json(*rows: QuestionRow) -> Any:
    return json.loads(results_of(*rows).to_json())


def keys(data: dict[str, Any]) -> str:
    return " ".join(data)


def test_the_keys_are_the_documented_ones_in_their_order() -> None:
    data = as_json(row(choice(), reply("3")), row(recall(), reply("Ida and Bo")))
    assert (
        keys(data)
        == "schema_version run backends comparisons prompt_comparisons option_style answer_key tests_written_usd"
        " fit agreement disagreements questions"
    )
    assert data["schema_version"] == 1 and data["comparisons"] == []
    assert keys(data["run"]) == "id started_at finished_at memreplay_version settings datasets status"
    backend = data["backends"]["rag"]
    assert keys(backend) == (
        "backend model accuracy multiple_choice recall tests retrieval failures tokens cost_usd latency_ms"
        " headline adjusted extraction writing abstention breakdown what_if judge agreement reading other_kinds"
    )
    assert keys(backend["multiple_choice"]) == (
        "total graded correct accuracy accuracy_without_adversarial ci95 unparsed refused errors by_type"
        " confusion_matrix"
    )
    assert keys(backend["recall"]) == (
        "total graded correct accuracy unparsed refused errors exact_match entity_recall f1 ci95"
        " by_type by_location by_salience by_category locomo_f1 longmemeval"
    )
    assert keys(backend["recall"]["by_location"]) == "early middle recent"
    assert keys(backend["recall"]["by_salience"]) == "high medium low"
    assert keys(backend["tokens"]) == "prompt completion cached"
    assert keys(backend["latency_ms"]) == "recall_p50 recall_p95 model_p50 model_p95"
    assert keys(data["questions"][0]).startswith(
        "question_id dataset conversation backend model repeat kind type question expected predicted"
        " predicted_index correct_index score max_score recorded_score outcome reply error evidence evidence_role"
        " hits recall_at_10 evidence_in_prompt failure tokens cost_usd ms counterfactuals cure "
    )


def test_graded_and_errors_are_the_total_and_unparsed_and_refused_are_graded_as_wrong() -> None:
    part = results_of(
        row(choice(), reply("3")),
        row(choice(), reply("0")),
        row(choice(), reply("who knows")),
        row(choice(), reply("no", refused=True)),
        row(choice(), ERROR),
    ).backends["rag"]
    scored = part.multiple_choice
    assert scored is not None
    assert (scored.total, scored.graded, scored.correct) == (5, 4, 1)
    assert (scored.unparsed, scored.refused, scored.errors) == (1, 1, 1)
    assert (part.accuracy, scored.accuracy) == (0.25, 0.25)
    assert scored.ci95 == wilson_interval(1 / 4, 1), "four repeats of one question"


def test_nothing_graded_has_no_accuracy() -> None:
    part = results_of(row(choice(), ERROR)).backends["rag"]
    assert part.accuracy is None and part.multiple_choice is not None
    assert (part.multiple_choice.accuracy, part.multiple_choice.ci95) == (None, None)
    assert (part.cost_usd, part.latency_ms.model_p50) == (None, None)


def test_the_headline_counts_both_kinds_of_question_together() -> None:
    part = results_of(
        row(choice(), reply("3")), row(recall(), reply("Zoe")), row(recall(), reply("Ida and Bo"))
    ).backends["rag"]
    assert part.accuracy == pytest.approx(2 / 3)


def test_adversarial_questions_can_be_left_out_of_the_accuracy() -> None:
    adversarial = choice(type="adversarial", expected="Not answerable", correct_index=8, abstain=True)
    scored = (
        results_of(row(choice(), reply("0")), row(choice(), reply("3")), row(adversarial, reply("8")))
        .backends["rag"]
        .multiple_choice
    )
    assert scored is not None
    assert (scored.accuracy, scored.accuracy_without_adversarial) == (pytest.approx(2 / 3), 0.5)
    assert {name: (group.correct, group.total) for name, group in scored.by_type.items()} == {
        "adversarial": (1, 1),
        "single_hop": (1, 2),
    }


def test_the_confusion_matrix_has_correct_indexes_down_and_predicted_ones_across() -> None:
    scored = (
        results_of(
            row(choice(), reply("3")),
            row(choice(), reply("0")),
            row(choice(), reply("0")),
            row(choice(), reply("?")),
        )
        .backends["rag"]
        .multiple_choice
    )
    assert scored is not None
    matrix = scored.confusion_matrix
    assert (len(matrix), {len(line) for line in matrix}) == (10, {10})
    assert (matrix[3][3], matrix[3][0], sum(map(sum, matrix))) == (1, 2, 3)


def test_a_question_of_more_than_ten_options_widens_the_matrix() -> None:
    letters = tuple(f"option {letter}" for letter in "abcdefghijkl")
    question = choice(choices=letters, expected="option l", correct_index=11)
    scored = results_of(row(question, reply("11"))).backends["rag"].multiple_choice
    assert scored is not None and len(scored.confusion_matrix) == 12
    assert scored.confusion_matrix[11][11] == 1


def test_recall_answers_are_averaged_and_grouped() -> None:
    scored = (
        results_of(
            row(recall(), reply("Ida and Bo")),
            row(recall(type="recent", info_location="recent", salience="low", category="multi"), reply("Ida")),
            row(recall(), ERROR),
        )
        .backends["rag"]
        .recall
    )
    assert scored is not None
    assert (scored.total, scored.graded, scored.correct, scored.errors) == (3, 2, 1, 1)
    assert (scored.exact_match, scored.entity_recall) == (0.5, 0.75)
    assert scored.f1 == pytest.approx((1 + 2 * 1 / 4) / 2)
    assert (scored.by_location["early"].graded, scored.by_location["early"].accuracy) == (1, 1.0)
    assert (scored.by_location["middle"].total, scored.by_location["middle"].accuracy) == (0, None)
    assert (scored.by_salience["low"].accuracy, scored.by_category["multi"].accuracy) == (0.0, 0.0)


def test_a_kind_that_was_not_asked_is_null() -> None:
    backend = as_json(row(choice(), reply("3")))["backends"]["rag"]
    assert (backend["recall"], backend["tests"], backend["retrieval"], backend["failures"]) == (
        None,
        None,
        None,
        {},
    )


def test_retrieval_is_averaged_over_questions_whose_evidence_supports_the_answer() -> None:
    found = choice(evidence=("t1",), evidence_role="supports")
    second, third = (found.model_copy(update={"id": id_, "text": f"{id_}?"}) for id_ in ("second", "third"))
    tempting = choice(evidence=("t1",), evidence_role="tempting", abstain=True)
    retrieval = (
        results_of(
            row(found, reply("3"), hit(1, "t1")),
            row(second, reply("0"), hit(1, "t2"), hit(2, "t1", in_prompt=False)),
            row(third, ERROR, hit(1, "t1")),
            row(tempting, reply("8"), hit(1, "t9")),
            row(found, ERROR, memory_failed=True),
            row(choice(), reply("3"), hit(1, "t9")),
        )
        .backends["rag"]
        .retrieval
    )
    assert retrieval is not None
    assert retrieval.questions == 3
    assert retrieval.recall_at == {"1": pytest.approx(2 / 3), "5": 1.0, "10": 1.0}
    assert retrieval.mrr == pytest.approx((1 + 0.5 + 1) / 3)
    assert retrieval.evidence_in_prompt == pytest.approx(2 / 3)
    assert retrieval.facts == 3 and retrieval.evidence_in_prompt_ci95 == wilson_interval(2, 3)


@pytest.mark.parametrize("backend", ["full_context", "closed_book", "oracle"])
def test_a_backend_without_a_retriever_has_evidence_in_prompt_alone(backend: str) -> None:
    found = choice(evidence=("t1",), evidence_role="supports")
    retrieval = results_of(row(found, reply("3"), hit(1, "t1"), backend=backend)).backends[backend].retrieval
    assert retrieval is not None
    assert (retrieval.recall_at, retrieval.mrr, retrieval.evidence_in_prompt) == (None, None, 1.0)


def test_tokens_and_costs_are_summed() -> None:
    part = results_of(row(choice(), reply("3")), row(choice(), reply("0")), row(choice(), ERROR)).backends["rag"]
    assert (part.tokens.prompt, part.tokens.completion, part.tokens.cached) == (20, 4, 8)
    assert part.cost_usd == pytest.approx(0.02)


def test_a_cost_is_null_where_one_price_is_unknown_and_zero_where_all_are_free() -> None:
    priced, unpriced, free = reply("3"), reply("3", cost_usd=None), reply("3", cost_usd=0.0)
    assert results_of(row(choice(), priced), row(choice(), unpriced)).backends["rag"].cost_usd is None
    assert results_of(row(choice(), free)).backends["rag"].cost_usd == 0.0


def test_latencies_are_those_of_memory_and_of_the_model_apart() -> None:
    latency = (
        results_of(
            row(choice(), reply("3", ms=100.0), recall_ms=1.0),
            row(choice(), reply("3", ms=300.0), recall_ms=3.0),
            row(choice(), ERROR, recall_ms=2.0),
        )
        .backends["rag"]
        .latency_ms
    )
    assert (latency.recall_p50, latency.model_p50) == (2.0, 200.0)
    assert (latency.recall_p95, latency.model_p95) == (pytest.approx(2.9), pytest.approx(290.0))


def test_backends_are_named_with_their_model_only_where_a_run_has_several_models() -> None:
    one = results_of(row(choice(), reply("3")), row(choice(), reply("0"), backend="hybrid"))
    assert list(one.backends) == ["rag", "hybrid"]
    two = results_of(row(choice(), reply("3")), row(choice(), reply("0"), model="other"))
    assert list(two.backends) == [f"rag@{MODEL}", "rag@other"]
    assert [part.model for part in two.backends.values()] == [MODEL, "other"]


def test_a_row_says_everything_about_one_ask() -> None:
    question = choice(evidence=("t1",), evidence_role="supports")
    data = as_json(row(question, reply("Answer: 3"), hit(1, "t1", sources=("t0",))))["questions"][0]
    expected = {
        "question_id": "q",
        "dataset": "d",
        "conversation": "c",
        "kind": "choice",
        "type": "single_hop",
        "other_type": "multi-hop",
        "expected": "quince",
        "predicted": "quince",
        "predicted_index": 3,
        "correct_index": 3,
        "score": 1.0,
        "max_score": 1.0,
        "recorded_score": None,
        "outcome": "correct",
        "reply": "Answer: 3",
        "error": None,
        "evidence": ["t1"],
        "evidence_role": "supports",
        "recall_at_10": 1.0,
        "evidence_in_prompt": True,
        "failure": None,
        "tokens": {"prompt": 10, "completion": 2, "cached": 4},
        "cost_usd": 0.01,
        "ms": 100.0,
        "recall_ms": 5.0,
    }
    assert {key: data[key] for key in expected} == expected
    (shown,) = data["hits"]
    assert shown == {
        "id": "h1",
        "store": "qdrant",
        "rank": 1,
        "score": 1.0,
        "turns": ["t1"],
        "sources": ["t0"],
        "in_prompt": True,
        "tokens": 1,
    }


def test_where_memory_failed_no_model_was_asked_and_nothing_was_paid() -> None:
    question = choice(evidence=("t1",), evidence_role="supports")
    failed = row(question, reply(None, error="no_evidence", cost_usd=None, ms=0.0), memory_failed=True)
    assert (failed.outcome, failed.score, failed.error) == ("error", None, "no_evidence")
    assert (failed.tokens, failed.cost_usd, failed.ms, failed.evidence_in_prompt) == (None, None, None, None)
    assert results_of(failed, row(question, reply("3"), hit(1, "t1"))).backends["rag"].cost_usd == 0.01


def test_what_is_small_is_written_with_its_digits_and_not_as_0() -> None:
    data = as_json(row(recall(), reply("Ida and Bo", cost_usd=1.23456789e-9)))
    assert data["questions"][0]["cost_usd"] == 1.23457e-9


def test_the_file_is_the_same_every_time_with_six_decimals_and_text_as_it_is() -> None:
    rows = [row(recall(expected="Núñez [b]", expected_entities=()), reply("Núñez [b]", cost_usd=1 / 3))]
    text = results_of(*rows).to_json()
    assert text == results_of(*rows).to_json() and text.endswith("}\n")
    data = json.loads(text)
    assert data["questions"][0]["cost_usd"] == data["run"]["settings"]["temperature"] == 0.333333
    assert '"Núñez [b]"' in text


def test_a_run_without_questions_has_no_backends() -> None:
    data = as_json()
    assert (data["backends"], data["questions"]) == ({}, [])


def test_every_metric_is_a_field_of_its_models() -> None:
    assert set(ANSWER_METRICS) <= QuestionRow.model_fields.keys() & RecallResults.model_fields.keys()
    assert set(ANSWER_METRICS) <= Score.model_fields.keys()
    assert {recall_field(k) for k in CUTOFFS} <= QuestionRow.model_fields.keys()
