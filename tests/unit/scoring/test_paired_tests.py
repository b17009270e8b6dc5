"""The paired tests against cases worked by hand, and against scipy on generated ones."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memreplay.scoring.statistics import (
    clustered_difference_interval,
    holm,
    mcnemar_exact,
    paired_interval,
    sign_flip_exact,
)
from tests.tables import failing

counts = st.integers(0, 400)


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 2 / 32), (0, 6, 2 / 64), (3, 1, 10 / 16), (2, 2, 1.0)],
)
def test_mcnemar_by_hand(b: int, c: int, p: float) -> None:
    assert mcnemar_exact(b, c) == pytest.approx(p)


@settings(max_examples=60, deadline=None)
@given(counts, counts)
def test_mcnemar_is_the_binomial_test_of_scipy(b: int, c: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    assert mcnemar_exact(b, c) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_of_many_questions_neither_overflows_nor_vanishes() -> None:
    assert 0 < mcnemar_exact(5000, 6000) < 1e-20


def test_sign_flips_by_hand() -> None:
    def check(differences: list[int], p: float) -> None:
        assert sign_flip_exact(differences) == pytest.approx(p)

    assert (
        failing(
            [
                ([], 1.0),
                ([3], 1.0),
                ([1, 1], 0.5),
                ([1, 1, 1, 1, 1], 2 / 32),
                ([2, -1], 1.0),
                ([3, 1, 1], 2 / 8),
                ([4, 0, 0], 1.0),
                ([3, 2, -1], 4 / 8),
            ],
            check,
        )
        == []
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9))
def test_sign_flips_are_those_of_full_enumeration(differences: list[int]) -> None:
    seen = abs(sum(differences))
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True))
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    assert sign_flip_exact(differences) == sum(abs(total) >= seen for total in sums) / len(sums)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=10))
def test_sign_flips_are_the_permutation_test_of_scipy(differences: list[int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = stats.permutation_test(
        (differences,), sum, permutation_type="samples", vectorized=False, n_resamples=float("inf")
    )
    # scipy doubles the smaller tail; the distribution is symmetric, so the two differ only where the sum is 0.
    expected = 1.0 if sum(differences) == 0 else found.pvalue
    assert sign_flip_exact(differences) == pytest.approx(expected)


def test_sign_flips_of_two_hundred_conversations_are_exact_and_quick() -> None:
    assert sign_flip_exact([1] * 200) == pytest.approx(2 / 2**200)


def test_holm_by_hand_keeps_the_order_given_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_paired_interval_by_hand() -> None:
    # 31 against 12 of 100: cells 31.5 and 12.5 of 102.
    low, high = paired_interval(31, 12, 100) or (0, 0)
    centre, error = 19 / 102, (44 - 19**2 / 102) ** 0.5 / 102
    assert (low, high) == pytest.approx((centre - 1.959964 * error, centre + 1.959964 * error))
    assert paired_interval(0, 0, 0) is None
    assert paired_interval(0, 0, 3) == pytest.approx((-0.391993, 0.391993), abs=1e-5)


def test_the_clustered_interval_is_that_of_the_mean_where_clusters_are_of_one_question() -> None:
    stats = pytest.importorskip("scipy.stats")
    differences = [1, 0, -1, 1, 1, 0, 0, 1, -1, 1, 1]
    found = clustered_difference_interval([(difference, 1) for difference in differences])
    mean, error = sum(differences) / 11, stats.sem(differences)
    assert found == pytest.approx(stats.t.interval(0.95, 10, mean, error), abs=1e-4)
    assert clustered_difference_interval([(1, 4)]) is None
    assert clustered_difference_interval([(1, 4), (0, 0)]) is None
