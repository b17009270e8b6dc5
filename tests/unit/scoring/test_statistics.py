"""Intervals and percentiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memreplay.scoring.statistics import (
    clustered_interval,
    cohens_kappa,
    jackknife_variance,
    mean,
    percentile,
    t_quantile,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_the_wilson_interval_equals_published_examples(
    successes: int, trials: int, expected: tuple[float, float]
) -> None:
    assert wilson_interval(successes, trials) == pytest.approx(expected, abs=5e-5)


def test_there_is_no_interval_of_nothing() -> None:
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize("trials", [1, 32, 70, 197, 2.5])
def test_the_wilson_interval_of_none_or_all_ends_exactly_at_0_or_1(trials: float) -> None:
    none, every = wilson_interval(0, trials), wilson_interval(trials, trials)
    assert none is not None and every is not None
    assert (none[0], every[1]) == (0.0, 1.0)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_stays_within_bounds(counts: tuple[int, int]) -> None:
    interval = wilson_interval(*counts)
    assert interval is not None
    assert 0 <= interval[0] <= counts[0] / counts[1] + 1e-12
    assert counts[0] / counts[1] - 1e-12 <= interval[1] <= 1


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([7], 95, 7), ([4, 1, 3, 2], 50, 2.5), ([10, 20, 30], 50, 20), (list(range(101)), 95, 95), ([0, 10], 95, 9.5)],
)
def test_percentiles_are_interpolated_between_ranks(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == pytest.approx(expected)


def test_nothing_has_no_percentile_and_no_mean() -> None:
    assert (percentile([], 50), mean([])) == (None, None)


def test_the_t_quantile_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in [*range(1, 80), 100, 1000, 100_000]:
        assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=5e-4)


@pytest.mark.parametrize(("successes", "trials"), [(0, 7), (7, 7), (3, 11), (151, 174), (1, 1986)])
def test_the_score_interval_is_that_of_scipy(successes: int, trials: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high))


def test_clusters_that_are_alike_widen_the_interval_and_those_that_do_not_differ_leave_it_to_students_t() -> None:
    alike, mixed = [(10, 10), (0, 10)] * 6, [(5, 10)] * 12
    wide, narrow = clustered_interval(alike), clustered_interval(mixed)
    assert wide is not None and narrow is not None
    assert narrow == wilson_interval(60, 120, t_quantile(11))
    assert wide[0] < narrow[0] < 0.5 < narrow[1] < wide[1]
    # Twelve conversations that are right or wrong as a whole say as much as twelve questions, less one.
    assert wide == pytest.approx(wilson_interval(5.5, 11, t_quantile(11)))


@pytest.mark.parametrize("clusters", [[], [(3, 4)], [(3, 4), (0, 0)]])
def test_one_conversation_tells_nothing_of_others(clusters: list[tuple[int, int]]) -> None:
    assert clustered_interval(clusters) is None


def test_clusters_that_are_all_right_have_an_interval_all_the_same() -> None:
    low, high = clustered_interval([(5, 5)] * 10) or (0, 0)
    assert 0.85 < low < 1 and high == 1


def test_the_jackknife_by_hand_and_where_clusters_are_of_one_size_the_variance_of_their_mean() -> None:
    # 3/5 in all; without the first 2/3, without the second 1/2.
    assert jackknife_variance([(1, 2), (2, 3)]) == pytest.approx(((2 / 3 - 0.6) ** 2 + (0.5 - 0.6) ** 2) / 2)
    stats = pytest.importorskip("scipy.stats")
    shares = [0.5, 0.25, 1.0, 0.75, 0.0]
    assert jackknife_variance([(int(4 * share), 4) for share in shares]) == pytest.approx(stats.sem(shares) ** 2)


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        ((20, 5, 10, 15), 0.4),  # the worked example of Cohen's kappa: 35 of 50 agree, 25 of them by chance
        ((10, 0, 0, 10), 1.0),
        ((0, 10, 10, 0), -1.0),
        ((5, 5, 0, 0), 0.0),
        ((7, 0, 0, 0), None),
        ((0, 0, 0, 0), None),
    ],
)
def test_kappa_is_agreement_beyond_chance(counts: tuple[int, int, int, int], kappa: float | None) -> None:
    assert cohens_kappa(*counts) == (None if kappa is None else pytest.approx(kappa))
