from __future__ import annotations

from datetime import datetime
from math import exp, log

import pytest

from memory_backends.hybrid.consolidation import PROMOTION_THRESHOLD, age_in_days, factors_of, significance

SAID = datetime(2023, 5, 8, 13, 56)


def test_is_the_product_of_its_factors():
    factors = factors_of(certainty=0.9, impact=0.8, age_days=2.0, accesses=3)
    assert significance(factors) == pytest.approx(0.9 * 0.8 * exp(-0.2) * (1 + 0.05 * log(4)))


def test_a_fresh_fact_that_was_said_once_is_worth_certainty_times_impact():
    assert significance(factors_of(0.95, 1.0, 0.0, 0)) == pytest.approx(0.95)


def test_the_boost_of_repeated_mention_has_a_limit():
    assert factors_of(1.0, 1.0, 0.0, 10).recency_boost == pytest.approx(1 + 0.05 * log(11))
    assert factors_of(1.0, 1.0, 0.0, 10**6).recency_boost == 1.3


def test_a_week_takes_a_certain_fact_below_the_threshold():
    assert significance(factors_of(1.0, 1.0, 5.0, 0)) >= PROMOTION_THRESHOLD
    assert significance(factors_of(1.0, 1.0, 7.0, 0)) < PROMOTION_THRESHOLD


@pytest.mark.parametrize(
    ("said_at", "now", "days"),
    [
        (SAID, datetime(2023, 5, 10, 1, 56), 1.5),
        (SAID, None, 0.0),
        (None, SAID, 0.0),
        (SAID, datetime(2023, 5, 1), 0.0),
    ],
)
def test_age_is_the_conversations_own(said_at, now, days):
    assert age_in_days(said_at, now) == pytest.approx(days)
