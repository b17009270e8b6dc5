"""Intervals and percentiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.scoring.statistics import mean, percentile, wilson_interval


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
