"""Pairs of contestants on the same questions, in numbers and in words."""

from __future__ import annotations

import pytest

from memreplay.scoring.comparisons import Pair, compare_pairs, pairs_within, verdicts_of
from memreplay.scoring.results import Comparison, QuestionRow
from tests.unit.scoring.samples import choice, reply, row

RIGHT, WRONG, ERROR = reply("3"), reply("0"), reply(None, error="timed out")


def pair(*cells: tuple[int, bool, bool]) -> Pair:
    """A pair from (conversation, right in a, right in b), a question each."""
    a = {("d", f"c{conversation}", f"q{place}"): right for place, (conversation, right, _) in enumerate(cells)}
    b = {("d", f"c{conversation}", f"q{place}"): right for place, (conversation, _, right) in enumerate(cells)}
    return Pair("hybrid", "rag", a, b)


def compared(*cells: tuple[int, bool, bool]) -> Comparison:
    (comparison,) = compare_pairs([pair(*cells)])
    return comparison


def test_the_four_cells_and_the_difference_are_counted_on_common_questions() -> None:
    found = compared((1, True, True), (1, True, False), (1, True, False), (2, False, True), (2, False, False))
    assert (found.both_right, found.only_a, found.only_b, found.both_wrong, found.n) == (1, 2, 1, 1, 5)
    assert (found.difference, found.conversations) == (pytest.approx(0.2), 2)
    assert found.ci95 is not None and found.ci95[0] < 0.2 < found.ci95[1]


def test_below_ten_conversations_it_is_mcnemar_and_no_claim_beyond_them() -> None:
    found = compared(*[(conversation, True, False) for conversation in range(9)])
    assert (found.test, found.p_value, found.significant) == ("mcnemar_exact", pytest.approx(2 / 2**9), None)
    assert found.words == (
        "hybrid beats rag on these 9 questions by 100.0 points (95 % 52.9 to 100.0);"
        " 9 only hybrid, 0 only rag; p = 0.0039, which says nothing beyond these 9 conversations"
    )


def test_from_ten_conversations_on_it_is_the_sign_flip_over_them() -> None:
    found = compared(*[(conversation, True, False) for conversation in range(10)])
    assert (found.test, found.p_value, found.significant) == ("sign_flip_exact", pytest.approx(2 / 2**10), True)
    assert found.p_value == found.p_sign_flip and found.p_mcnemar == pytest.approx(2 / 2**10)
    assert found.words.endswith("significant over 10 conversations")


def test_a_lead_that_comes_from_one_conversation_is_not_significant_however_many_questions_it_has() -> None:
    ties = [(conversation, True, True) for conversation in range(11)]
    found = compared(*ties, *[(11, True, False)] * 20)
    assert (found.p_sign_flip, found.significant) == (1.0, False)
    assert found.p_mcnemar is not None and found.p_mcnemar < 1e-4
    assert "is ahead of" in found.words and "not significant" in found.words
    assert found.ci95 is not None and found.ci95[0] < 0


def test_the_sentence_names_the_better_backend_first() -> None:
    found = compared(*[(conversation, False, True) for conversation in range(10)])
    assert found.difference == -1.0
    assert found.words.startswith("rag beats hybrid") and "10 only rag, 0 only hybrid" in found.words
    assert found.ci95 is not None and found.ci95[0] == -1.0


def test_equals_are_called_equal() -> None:
    assert "equally many right on these 2 questions" in compared((1, True, False), (1, False, True)).words


def test_p_values_are_adjusted_for_the_number_of_pairs() -> None:
    strong, weak = pair(*[(1, True, False)] * 10), pair(*[(1, True, False)] * 3, (1, False, True))
    first, second = compare_pairs([weak, strong])
    assert (first.p_holm, second.p_holm) == (pytest.approx(10 / 16), pytest.approx(2 * 2 / 2**10))
    assert (first.p_value, second.p_value) == (pytest.approx(10 / 16), pytest.approx(2 / 2**10))


def test_a_pair_without_a_common_question_says_so_and_takes_no_part_in_the_adjustment() -> None:
    apart = Pair("a", "b", {("d", "c", "1"): True}, {("d", "c", "2"): True})
    nothing, something = compare_pairs([apart, pair(*[(1, True, False)] * 10)])
    assert (nothing.n, nothing.difference, nothing.p_value, nothing.p_holm) == (0, None, None, None)
    assert "no graded question in common" in nothing.words
    assert something.p_holm == something.p_value


def test_an_error_is_no_verdict_and_repeats_are_decided_by_more_than_half() -> None:
    def rows(*answers: object) -> list[QuestionRow]:
        return [row(choice(), answer) for answer in answers]  # type: ignore[arg-type]

    assert verdicts_of(rows(ERROR)) == {}
    assert list(verdicts_of(rows(RIGHT, RIGHT, WRONG)).values()) == [True]
    assert list(verdicts_of(rows(RIGHT, WRONG)).values()) == [False]
    assert list(verdicts_of(rows(RIGHT, ERROR)).values()) == [True]


def test_backends_are_paired_through_one_model_and_models_within_one_backend() -> None:
    rows = {
        f"{backend}@{model}": [row(choice(), RIGHT, backend=backend, model=model)]
        for backend in ("hybrid", "rag")
        for model in ("m", "n")
    }
    assert [(found.a, found.b) for found in pairs_within(rows)] == [
        ("hybrid@m", "hybrid@n"),
        ("hybrid@m", "rag@m"),
        ("hybrid@n", "rag@n"),
        ("rag@m", "rag@n"),
    ]


def test_the_same_question_id_in_two_conversations_is_two_questions() -> None:
    one, other = row(choice(), RIGHT), row(choice(), WRONG).model_copy(update={"conversation": "e"})
    assert len(verdicts_of([one, other])) == 2
