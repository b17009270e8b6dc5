"""CIAR significance: the score that decides whether a candidate is promoted to long-term memory.

``certainty × impact × exp(−0.1 · age in days) × recency boost``, where the boost is ``1 + 0.05 · ln(1 + accesses)``
and never more than 1.3. At :data:`PROMOTION_THRESHOLD` or above a candidate is promoted.
"""

from __future__ import annotations

from datetime import datetime
from math import exp, log

from memory_backends.operations import SignificanceFactors

PROMOTION_THRESHOLD = 0.6
DECAY_PER_DAY = 0.1
BOOST_PER_LOG_ACCESS = 0.05
MOST_BOOST = 1.3

_SECONDS_A_DAY = 86_400.0


def age_in_days(said_at: datetime | None, now: datetime | None) -> float:
    """Days between two dates of the conversation; 0 where either is unknown, or where ``now`` is the earlier."""
    if said_at is None or now is None:
        return 0.0
    return max(0.0, (now - said_at).total_seconds() / _SECONDS_A_DAY)


def factors_of(certainty: float, impact: float, age_days: float, accesses: int) -> SignificanceFactors:
    """The factors of a significance. ``certainty`` and ``impact`` lie in 0..1; ``accesses`` counts mentions."""
    return SignificanceFactors(
        certainty=certainty,
        impact=impact,
        age_days=age_days,
        accesses=accesses,
        age_decay=exp(-DECAY_PER_DAY * age_days),
        recency_boost=min(MOST_BOOST, 1.0 + BOOST_PER_LOG_ACCESS * log(1 + accesses)),
    )


def significance(factors: SignificanceFactors) -> float:
    """The score: the product of the factors."""
    return factors.certainty * factors.impact * factors.age_decay * factors.recency_boost
