"""Intervals of one rate, quantiles and percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

Z_95 = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""


T_975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""The 0.975 quantile of Student's t for 1 to 30 degrees of freedom."""


def t_quantile(freedom: int) -> float:
    """The 0.975 quantile of Student's t, right to three decimals.

    From a table up to 30 degrees of freedom, above by the expansion of Cornish and Fisher to the second order.
    """
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    z = Z_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def wilson_interval(successes: float, trials: float, z: float = Z_95) -> tuple[float, float] | None:
    """The score interval of a proportion, 95 % for the default ``z``; None without trials.

    Wilson, E. B. (1927), "Probable inference, the law of succession, and statistical inference", JASA 22, 209–212:
    ``(p + z²/2n ± z·sqrt(p(1 − p)/n + z²/4n²)) / (1 + z²/n)``. It stays within 0..1 and holds at 0 and n successes.
    Trials that are not independent go in as an effective number of them, which need not be whole.
    """
    if trials == 0:
        return None
    share, z2 = successes / trials, z * z
    centre = share + z2 / (2 * trials)
    half_width = z * math.sqrt(max(0.0, share * (1 - share)) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    return max(0.0, (centre - half_width) / scale), min(1.0, (centre + half_width) / scale)


def jackknife_variance(clusters: Sequence[tuple[int, int]]) -> float:
    """The variance of a ratio of sums, from what becomes of it when each of at least two clusters is left out.

    ``clusters`` are the sum and the size of each; the ratio is that of all sums to all sizes. (C − 1)/C times the
    squared distances from the ratio of all: CV3 in MacKinnon, Nielsen and Webb (2023), "Cluster-robust inference: a
    guide to empirical practice", Journal of Econometrics 232, 272–299. It stays honest where clusters are few and
    of unequal size; where they are of one size it is the variance of their mean.
    """
    total, size = sum(part for part, _ in clusters), sum(size for _, size in clusters)
    without = [(total - part) / (size - its_size) for part, its_size in clusters]
    return sum((ratio - total / size) ** 2 for ratio in without) * (len(clusters) - 1) / len(clusters)


def clustered_interval(clusters: Sequence[tuple[int, int]]) -> tuple[float, float] | None:
    """The 95 % interval of a rate whose trials come in clusters: questions of the same conversation.

    ``clusters`` are successes and trials of each. The ratio of the clustered to the binomial variance of the rate
    is the design effect, never taken below 1. Wilson's interval at the effective number of trials, with Student's t
    of C − 1 degrees of freedom, after Korn and Graubard (1998), "Confidence intervals for proportions with small
    expected number of positive counts estimated from survey data", Survey Methodology 24, 193–201. None below two
    clusters.
    """
    filled = [(right, trials) for right, trials in clusters if trials]
    if len(filled) < 2:
        return None
    successes, total = sum(right for right, _ in filled), sum(trials for _, trials in filled)
    rate = successes / total
    binomial = rate * (1 - rate) / total
    effect = max(1.0, jackknife_variance(filled) / binomial) if binomial else 1.0
    return wilson_interval(successes / effect, total / effect, t_quantile(len(filled) - 1))


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
