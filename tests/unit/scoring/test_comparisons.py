"""Pairs of contestants on the same questions, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memreplay.scoring.comparisons import Pair, compare_pairs, pairs_within, prompts_within, verdicts_of
from memreplay.scoring.groups import by_conversation, facts_of, group_of, shares_right
from memreplay.scoring.question_row import QuestionRow, Tokens
from memreplay.scoring.results import Comparison
from memreplay.scoring.statistics import detectable_difference, paired_interval
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
        " 9 only hybrid, 0 only rag; p = 0.0039, which holds for these 9 conversations alone;"
        " detectable from 81.5 points on"
    )


def test_tests_are_called_so() -> None:
    (found,) = compare_pairs([replace(pair((1, True, False), (1, True, True)), asked="test")])
    assert "hybrid is ahead of rag on these 2 tests by 50.0 points" in found.words


def test_from_ten_conversations_on_it_is_the_sign_flip_over_them() -> None:
    found = compared(*[(conversation, True, False) for conversation in range(10)])
    assert (found.test, found.p_value, found.significant) == ("sign_flip_exact", pytest.approx(2 / 2**10), True)
    assert found.p_value == found.p_sign_flip and found.p_mcnemar == pytest.approx(2 / 2**10)
    assert "significant over 10 conversations" in found.words


def test_a_lead_that_comes_from_one_conversation_is_not_significant_however_many_questions_it_has() -> None:
    ties = [(conversation, True, True) for conversation in range(11)]
    found = compared(*ties, *[(11, True, False)] * 20)
    assert (found.p_sign_flip, found.significant, found.smallest_p) == (1.0, None, 1.0)
    assert found.p_mcnemar is not None and found.p_mcnemar < 1e-4
    assert "is ahead of" in found.words and "only 1 of them differs, and then p is never below 1" in found.words
    assert found.detectable is None and "detect" not in found.words
    assert found.ci95 is not None and found.ci95[0] < 0


def test_only_conversations_that_differ_can_decide() -> None:
    ties = [(conversation, True, True) for conversation in range(30)]

    def differing(number: int) -> Comparison:
        return compared(*ties[: 34 - number], *[(34 + place % number, True, False) for place in range(618)])

    few, enough = differing(4), differing(8)
    assert (few.conversations, few.conversations_differing) == (34, 4)
    assert (few.p_value, few.smallest_p, few.significant) == (pytest.approx(0.125), 0.125, None)
    assert "only 4 of them differ, and then p is never below 0.12" in few.words and few.detectable is None
    assert (enough.p_value, enough.smallest_p, enough.significant) == (pytest.approx(2 / 2**8), 2 / 2**8, True)
    assert enough.detectable is not None


def test_too_few_conversations_for_an_adjusted_p_are_too_few() -> None:
    ties = [(conversation, True, True) for conversation in range(28)]
    differ = [(28 + conversation, True, False) for conversation in range(6) for _ in range(9)]
    alone, family = compare_pairs([pair(*ties, *differ)]), compare_pairs([pair(*ties, *differ)] * 3)
    assert alone[0].significant and alone[0].smallest_p == 2 / 2**6
    assert {(found.significant, found.smallest_p, found.detectable) for found in family} == {(None, 6 / 2**6, None)}
    assert all("only 6 of them differ, and then p is never below 0.094" in found.words for found in family)
    assert not any("too few questions" in found.words for found in family)


def test_the_smallest_p_counts_what_the_other_pairs_leave_of_the_family() -> None:
    ties = [(conversation, True, True) for conversation in range(28)]
    strong = pair(*((conversation, True, False) for conversation in range(34)))
    weak = pair(*ties, *((28 + conversation, True, False) for conversation in range(6)))
    found = compare_pairs([strong, strong, weak])[-1]
    assert (found.p_holm, found.smallest_p, found.significant) == (2 / 2**6, 2 / 2**6, True)
    assert found.detectable is None and "detect" not in found.words


def test_conversations_without_any_difference_decide_nothing() -> None:
    found = compared(*[(conversation, True, True) for conversation in range(12)])
    assert "none of them differ, and then p is never below 1" in found.words and found.significant is None


CELLS = st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(st.lists(CELLS, min_size=1, max_size=4))
def test_an_interval_without_0_never_stands_beside_a_failed_test_without_the_reason(
    pairs: list[list[tuple[int, bool, bool]]],
) -> None:
    for found in compare_pairs([pair(*cells) for cells in pairs]):
        p, interval = found.p_holm, found.ci95_adjusted
        assert p is not None and interval is not None
        assert found.smallest_p is None or p >= found.smallest_p - 1e-12
        if found.difference and (interval[0] > 0 or interval[1] < 0) and p >= 0.05:
            assert "decides" in found.words or "never below" in found.words
        if found.detectable is not None and found.smallest_p is not None:
            assert found.smallest_p < 0.05
        if "significant over" in found.words:
            assert found.significant == (" not significant" not in found.words)


def test_equal_prompts_of_several_models_are_one_pair() -> None:
    def rows(backend: str, model: str, held: bool) -> list[QuestionRow]:
        changes = {"model": model, "answer_in_prompt": held}
        return [row(choice(), RIGHT, backend=backend).model_copy(update=changes)]

    contestants = {
        f"{backend}@{model}": rows(backend, model, backend == "hybrid")
        for model in ("one", "two")
        for backend in ("hybrid", "rag")
    }
    assert [(each.a, each.b) for each in prompts_within(contestants, "answer_in_prompt")] == [
        ("hybrid@one", "rag@one")
    ]


def twins(backend: str, *, right: bool = True, held: bool = True, facts: int = 10) -> list[QuestionRow]:
    """Facts of one conversation, each asked in words and with options."""
    return [
        row(choice(), RIGHT if right else WRONG, backend=backend).model_copy(
            update={
                "question": f"Which {place // 2}?",
                "question_id": str(place),
                "kind": ("recall", "choice")[place % 2],
                "answer_in_prompt": held,
            }
        )
        for place in range(2 * facts)
    ]


def test_facts_that_are_asked_twice_narrow_no_interval_where_all_are_right_or_wrong() -> None:
    for right in (True, False):
        rows = twins("hybrid", right=right)
        assert group_of(rows).ci95 == group_of([each for each in rows if each.kind == "recall"]).ci95
        clusters = by_conversation(shares_right(rows), facts_of(rows))
        assert clusters == [(10.0 if right else 0.0, 10)]


def test_a_fact_that_is_asked_twice_counts_once_in_what_reaches_the_prompt() -> None:
    rows = {"hybrid": twins("hybrid"), "rag": twins("rag", held=False), "oracle": twins("oracle")}
    (found,) = compare_pairs(prompts_within(rows, "answer_in_prompt"))
    assert (found.a, found.b, found.metric, found.n, found.only_a) == ("hybrid", "rag", "answer_in_prompt", 10, 10)
    assert found.words.startswith("hybrid beats rag in answers that reach the prompt on these 10 facts by 100")


def test_what_reaches_prompts_of_unequal_size_is_not_compared_at_equal_tokens() -> None:
    rows = {"hybrid": twins("hybrid", held=False), "rag": twins("rag")}
    rows["hybrid"] = [
        each.model_copy(update={"tokens": Tokens(prompt=5, completion=1, cached=0)}) for each in rows["hybrid"]
    ]
    (found,) = compare_pairs(prompts_within(rows, "answer_in_prompt"))
    assert (found.tokens_a, found.tokens_b) == (5, 10)
    assert found.words.endswith("; not at equal tokens: a prompt has 10 and 5 on average"), "the leader's first"


def test_facts_that_are_asked_twice_make_no_difference_more_certain() -> None:
    def of(facts: int) -> Comparison:
        rows = {"hybrid": twins("hybrid", facts=facts), "rag": twins("rag", right=False, facts=facts)}
        (found,) = compare_pairs(pairs_within(rows, {}))
        return found

    five = of(5)
    assert (five.n, five.test, five.p_value) == (10, "sign_flip_facts", pytest.approx(2 / 2**5))
    assert five.p_mcnemar == pytest.approx(2 / 2**10)
    assert five.ci95 == paired_interval(5, 0, 5)
    assert five.detectable == detectable_difference(5, 5)


def test_questions_of_one_kind_are_facts_of_their_own_even_if_they_are_worded_alike_and_name_no_evidence() -> None:
    rows = {
        name: [each for each in twins(name, right=name == "hybrid") if each.kind == "recall"]
        for name in ("hybrid", "rag")
    }
    alike = {name: [each.model_copy(update={"question": "Which?"}) for each in its] for name, its in rows.items()}
    assert compare_pairs(pairs_within(alike, {})) == compare_pairs(pairs_within(rows, {}))


def test_a_question_asked_again_word_for_word_is_one_fact_if_its_evidence_is_the_same() -> None:
    def facts(**same: object) -> int:
        rows = [each for each in twins("hybrid") if each.kind == "recall"]
        return len({*facts_of(each.model_copy(update={"question": "Which?", **same}) for each in rows).values()})

    assert (facts(evidence=("t1",)), facts()) == (1, 10)


def test_two_datasets_with_the_same_facts_have_the_same_conversations() -> None:
    def rows(backend: str, right: bool) -> list[QuestionRow]:
        again = {"dataset": "options", "kind": "choice"}
        found = [
            each.model_copy(update={"evidence": (f"t{place}",), "conversation": f"c{place // 2}"})
            for place, each in enumerate(twins(backend, right=right))
            if each.kind == "recall"
        ]
        return [*found, *(each.model_copy(update=again) for each in found)]

    (found,) = compare_pairs(pairs_within({"hybrid": rows("hybrid", True), "rag": rows("rag", False)}, {}))
    assert (found.n, found.conversations, found.p_value) == (20, 10, pytest.approx(2 / 2**10))


def test_the_sentence_names_the_better_backend_first() -> None:
    found = compared(*[(conversation, False, True) for conversation in range(10)])
    assert found.difference == -1.0
    assert found.words.startswith("rag beats hybrid") and "10 only rag, 0 only hybrid" in found.words
    assert found.ci95 is not None and found.ci95[0] == -1.0


def test_equals_are_called_equal() -> None:
    assert "equally many right on these 2 questions" in compared((1, True, False), (1, False, True)).words


def test_the_detectable_difference_is_that_of_the_level_at_which_the_pair_is_judged() -> None:
    cells = [(1, True, False)] * 30 + [(1, False, True)] * 20 + [(1, True, True)] * 150
    (alone,), family = compare_pairs([pair(*cells)]), compare_pairs([pair(*cells)] * 3)
    assert alone.detectable is not None and alone.detectable == detectable_difference(50, 200)
    assert {found.detectable for found in family} == {detectable_difference(50, 200, 1 - 0.05 / 3)}
    assert all(found.detectable > alone.detectable for found in family if found.detectable)


def test_where_questions_of_a_conversation_are_alike_only_a_larger_difference_is_detected() -> None:
    def ten_conversations(are_alike: bool) -> Comparison:
        return compared(
            *(
                (conversation, (conversation % 2 == 0) == (are_alike or place % 2 == 0), place % 5 > 0)
                for conversation in range(10)
                for place in range(20)
            )
        )

    alike, mixed = ten_conversations(True), ten_conversations(False)
    assert alike.n == mixed.n and alike.detectable is not None and mixed.detectable is not None
    assert alike.detectable > 1.5 * mixed.detectable


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
    assert [(found.a, found.b) for found in pairs_within(rows, {})] == [
        ("hybrid@m", "hybrid@n"),
        ("hybrid@m", "rag@m"),
        ("hybrid@n", "rag@n"),
        ("rag@m", "rag@n"),
    ]


def test_pairs_with_a_control_are_not_adjusted_and_do_not_weaken_the_others() -> None:
    memories = pair(*[(conversation, True, False) for conversation in range(10)])
    control = replace(memories, b="closed_book", has_control=True)
    first, second = compare_pairs([control, memories])
    assert (first.p_holm, first.ci95_adjusted, first.family) == (None, None, 0)
    assert first.p_value == pytest.approx(2 / 2**10) and "p = 0.002 not adjusted" in first.words
    assert (second.p_holm, second.family, second.ci95_adjusted) == (second.p_value, 1, second.ci95)


def test_the_interval_beside_an_adjusted_p_is_at_bonferronis_level() -> None:
    cells = [(1, True, False)] * 8 + [(1, False, True)] * 2 + [(1, True, True)] * 30
    first, *_ = compare_pairs([pair(*cells)] * 3)
    # Half a question is added to each cell; the quantile is that of 0.05 / 3 on both sides together.
    centre = (8.5 - 2.5) / 42
    error = math.sqrt(11 - 6 * 6 / 42) / 42
    assert first.ci95 == pytest.approx((centre - 1.95996 * error, centre + 1.95996 * error), abs=1e-5)
    assert first.ci95_adjusted == pytest.approx((centre - 2.39398 * error, centre + 2.39398 * error), abs=1e-5)
    assert first.ci95_adjusted is not None
    low, high = first.ci95_adjusted
    assert f"(95 % adjusted {100 * low:.1f} to {100 * high:.1f})" in first.words
    assert f"p = {first.p_holm:.2g} adjusted" in first.words


def test_a_lead_that_an_assumed_limit_explains_names_no_winner() -> None:
    ahead = pair(*[(conversation, True, False) for conversation in range(10)], (0, True, True))
    cut = frozenset(list(ahead.verdicts_b)[:10])
    (limited,) = compare_pairs([replace(ahead, cut_b=cut)])
    assert (limited.decided_by_default_limit, limited.significant) == (True, None)
    assert limited.words.startswith(
        "a default may decide between hybrid and rag, so neither is called better: 10 of rag's 11 prompts"
    )
    assert "beats" not in limited.words and "10 of the 10 questions that only hybrid has right" in limited.words
    (turned,) = compare_pairs([Pair("rag", "hybrid", ahead.verdicts_b, ahead.verdicts_a, cut_a=cut)])
    assert turned.words == limited.words
    (free,) = compare_pairs([replace(ahead, cut_b=frozenset(list(cut)[:9]))])
    assert (free.decided_by_default_limit, free.significant) == (False, True)


def test_a_limit_is_assumed_where_none_is_given_and_the_window_is_unknown() -> None:
    def cut_in_pairs(model: str, settings: dict[str, object]) -> frozenset[object]:
        rows = {
            name: [row(choice(), RIGHT, backend=name, model=model).model_copy(update={"cut_tokens": tokens})]
            for name, tokens in (("full_context", 7), ("rag", 0))
        }
        (found,) = pairs_within(rows, settings)
        assert found.cut_b == frozenset()
        return found.cut_a

    assert cut_in_pairs("ollama/unheard-of", {}) == {("d", "c", "q")}
    assert cut_in_pairs("ollama/unheard-of", {"context_tokens": 500}) == frozenset()
    assert cut_in_pairs("gpt-4o-mini", {}) == frozenset()


def test_the_same_question_id_in_two_conversations_is_two_questions() -> None:
    one, other = row(choice(), RIGHT), row(choice(), WRONG).model_copy(update={"conversation": "e"})
    assert len(verdicts_of([one, other])) == 2


def test_a_comparison_says_so_where_one_memory_gave_the_model_more_to_read() -> None:
    cells = pair(*[(conversation, True, False) for conversation in range(10)])
    (unequal,) = compare_pairs([replace(cells, tokens_a=3000.0, tokens_b=1500.0)])
    assert unequal.words.endswith("; not at equal tokens: a prompt has 3,000 and 1,500 on average")
    (turned,) = compare_pairs(
        [Pair("rag", "hybrid", cells.verdicts_b, cells.verdicts_a, tokens_a=1500.0, tokens_b=3000.0)]
    )
    assert turned.words == unequal.words
    alike = compare_pairs(
        [
            replace(cells, tokens_a=1550.0, tokens_b=1500.0),
            replace(cells, has_control=True, tokens_a=9.0, tokens_b=1.0),
        ]
    )
    assert not any("equal tokens" in found.words for found in alike)
