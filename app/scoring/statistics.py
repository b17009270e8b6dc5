"""Intervals and percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

Z_95 = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""


def wilson_interval(successes: int, trials: int) -> tuple[float, float] | None:
    """The 95 % score interval of a proportion; None without trials.

    Wilson, E. B. (1927), "Probable inference, the law of succession, and statistical inference", JASA 22, 209–212:
    ``(p + z²/2n ± z·sqrt(p(1 − p)/n + z²/4n²)) / (1 + z²/n)``. It stays within 0..1 and holds at 0 and n successes.
    """
    if trials == 0:
        return None
    share, z2 = successes / trials, Z_95 * Z_95
    centre = share + z2 / (2 * trials)
    half_width = Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    return max(0.0, (centre - half_width) / scale), min(1.0, (centre + half_width) / scale)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The percentile by linear interpolation between the closest ranks; None without values.

    Definition 7 of Hyndman and Fan (1996), "Sample quantiles in statistical packages", The American Statistician
    50, 361–365: the value at 0-based position ``(n − 1) · percent / 100`` of the sorted values; NumPy's default.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None without values."""
    return sum(values) / len(values) if values else None
