"""Intervals, quantiles, and exact tests for two backends on the same questions.

SciPy would take 0.7 s (``scipy.special``) to 1.6 s (``scipy.stats``) to import, and offers only part of this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from statistics import NormalDist

Z_95 = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""


@lru_cache(maxsize=256)
def t_quantile(freedom: int, confidence: float = 0.95) -> float:
    """Return the t beyond which lies, on both sides together, 1 − ``confidence`` of Student's distribution.

    By bisection of its distribution function. For ``confidence`` 0.95 it is the 0.975 quantile.
    """
    low, high = 0.0, 1.0
    while _t_within(high, freedom) < confidence:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if _t_within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_within(t: float, freedom: int) -> float:
    """P(−t < T < t) of Student's distribution: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * power / (power + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def normal_quantile(confidence: float) -> float:
    """Return the same of the standard normal distribution: 1.96 for 0.95."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson_interval(successes: float, trials: float, z: float = Z_95) -> tuple[float, float] | None:
    """Return the score interval of a proportion, 95 % for the default ``z``; None without trials.

    Wilson, E. B. (1927), "Probable inference, the law of succession, and statistical inference", JASA 22, 209–212:
    ``(p + z²/2n ± z·sqrt(p(1 − p)/n + z²/4n²)) / (1 + z²/n)``. It stays within 0..1 and holds at 0 and n successes.
    For dependent trials pass their effective number, which may be fractional.
    """
    if trials == 0:
        return None
    share, z2 = successes / trials, z * z
    centre = share + z2 / (2 * trials)
    half_width = z * math.sqrt(max(0.0, share * (1 - share)) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    # At 0 and n the ends cancel out but for rounding.
    low = (centre - half_width) / scale if successes else 0.0
    high = (centre + half_width) / scale if successes != trials else 1.0
    return max(0.0, low), min(1.0, high)


def jackknife_variance(clusters: Sequence[tuple[float, int]]) -> float:
    """Return the delete-one-cluster jackknife variance of a ratio of sums; needs at least two clusters.

    ``clusters`` are the sum and the size of each; the ratio is that of all sums to all sizes. (C − 1)/C times the
    squared distances from the ratio of all: CV3 in MacKinnon, Nielsen and Webb (2023), "Cluster-robust inference: a
    guide to empirical practice", Journal of Econometrics 232, 272–299. It remains reliable for few clusters of
    unequal size; for clusters of equal size it is the variance of their mean.
    """
    total, size = sum(part for part, _ in clusters), sum(size for _, size in clusters)
    without = [(total - part) / (size - its_size) for part, its_size in clusters]
    return sum((ratio - total / size) ** 2 for ratio in without) * (len(clusters) - 1) / len(clusters)


def clustered_interval(clusters: Sequence[tuple[float, int]]) -> tuple[float, float] | None:
    """Return the 95 % interval of a rate whose trials are clustered, such as questions of the same conversation.

    ``clusters`` are successes (which may be fractional) and trials of each. The ratio of the clustered to the
    binomial variance of the rate is the design effect, at least 1. Wilson's interval at the effective number of
    trials, with Student's t of C − 1 degrees of freedom, after Korn and Graubard (1998), "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24,
    193–201. None for fewer than two clusters.
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
    """Return the percentile by linear interpolation between the closest ranks; None without values.

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
    """Return the arithmetic mean; None without values."""
    return sum(values) / len(values) if values else None


def mcnemar_exact(b: int, c: int) -> float:
    """Return the two-sided p-value of the hypothesis that disagreements favour both contestants equally often.

    Twice the smaller tail of Binomial(b + c, 1/2), at most 1; 1 if they never disagree. McNemar, Q. (1947),
    "Note on the sampling error of the difference between correlated proportions or percentages", Psychometrika 12.
    """
    n = b + c
    ways = tail = 1
    for k in range(1, min(b, c) + 1):
        ways = ways * (n - k + 1) // k
        tail += ways
    return min(1.0, float(2 * tail / 2**n))


def sign_flip_exact(differences: Sequence[int]) -> float:
    """Return the two-sided p-value of the hypothesis that each conversation favours either contestant equally.

    ``differences`` are, for each conversation, the number of questions only the first has right minus the number
    only the second has right. The p-value is the share of all sign flips whose sum is at least as far from 0 as the
    observed one. As the sums are integers, all 2^C flips are counted exactly by convolution, for any number C of
    conversations. Fisher, R. A. (1935), The Design of Experiments, section 21.
    """
    seen = abs(sum(differences))
    ways = {0: 1}
    for difference in differences:
        flipped: dict[int, int] = {}
        for total, count in ways.items():
            for signed in (total + difference, total - difference):
                flipped[signed] = flipped.get(signed, 0) + count
        ways = flipped
    extreme = sum(count for total, count in ways.items() if abs(total) >= seen)
    return float(extreme / 2 ** len(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple comparisons, keeping their order.

    Holm, S. (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics
    6: the i-th smallest of m is multiplied by m − i + 1, is never below the one before, and at most 1.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def paired_interval(b: float, c: float, n: float, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of the difference of two rates over ``n`` questions; None if ``n`` is 0.

    Agresti, A. and Min, Y. (2005), "Simple improved confidence intervals for comparing matched proportions",
    Statistics in Medicine 24, 729–740: Wald's interval after half a question is added to each cell of the table.
    For dependent questions pass their effective numbers.
    """
    if n == 0:
        return None
    only_a, only_b, total = b + 0.5, c + 0.5, n + 2
    difference = (only_a - only_b) / total
    error = math.sqrt(max(0.0, only_a + only_b - (only_a - only_b) ** 2 / total)) / total
    return _clipped(difference, normal_quantile(confidence) * error)


def clustered_difference_interval(
    clusters: Sequence[tuple[int, int]], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of :func:`paired_interval` for questions clustered by conversation, with a jackknife
    standard error.

    ``clusters`` are, for each conversation, the number of questions only the first has right minus the number only
    the second has right, and the number of questions. Student's t with C − 1 degrees of freedom; None with fewer
    than two conversations.
    """
    filled = [(difference, size) for difference, size in clusters if size]
    if len(filled) < 2:
        return None
    mean = sum(difference for difference, _ in filled) / sum(size for _, size in filled)
    return _clipped(mean, t_quantile(len(filled) - 1, confidence) * math.sqrt(jackknife_variance(filled)))


def _clipped(centre: float, half_width: float) -> tuple[float, float]:
    return max(-1.0, centre - half_width), min(1.0, centre + half_width)


def cohens_kappa(both: int, only_a: int, only_b: int, neither: int) -> float | None:
    """Return the agreement of two raters beyond chance, from the counts of a two by two table.

    Cohen, J. (1960), "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20,
    37–46. None without observations, and if both raters give everything the same rating: then chance explains all.
    """
    n = both + only_a + only_b + neither
    if n == 0:
        return None
    rated_a, rated_b = both + only_a, both + only_b
    by_chance = (rated_a * rated_b + (n - rated_a) * (n - rated_b)) / n**2
    return None if by_chance == 1 else ((both + neither) / n - by_chance) / (1 - by_chance)


def paired_variance(b: int, c: int, n: int) -> float:
    """Return the variance of the difference of two rates over ``n`` questions, where ``b`` and ``c`` differ."""
    return (b + c - (b - c) ** 2 / n) / n**2


_EXACT_POWER = 50
"""Questions up to which the power of the exact test is computed; beyond, it is that of a normal distribution."""


def detectable_difference(
    discordant: float, n: float, confidence: float = 0.95, power: float = 0.8
) -> float | None:
    """Return the smallest difference of two rates that McNemar's test over ``n`` questions finds with this power.

    Of few questions it is the power of the exact test, which finds nothing in five. Of many it is that of Connor,
    R. J. (1987), "Sample size for testing differences in proportions for the paired-sample design", Biometrics 43,
    207–211: ``n = (z₁ √ψ + z₂ √(ψ − δ²))² / δ²``, solved for the difference δ, where ψ is the share of
    ``discordant`` questions, which only one of the two has right, z₁ the quantile of the two-sided test and z₂ that
    of the power. No difference exceeds ψ: where none up to it is found, ψ grows with δ. None if not even the
    difference of 1 is found. For dependent questions pass their effective numbers, for one of several tests its
    own confidence.
    """
    z_test, z_power = normal_quantile(confidence), NormalDist().inv_cdf(power)

    def is_found(difference: float) -> bool:
        share = max(discordant / n, difference)
        if n <= _EXACT_POWER:
            return _power_of_mcnemar(difference, share, int(n), 1 - confidence) >= power
        spread = math.sqrt(max(0.0, share - difference * difference))
        return difference * math.sqrt(n) >= z_test * math.sqrt(share) + z_power * spread

    if n == 0 or not is_found(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(12 if n <= _EXACT_POWER else 50):
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high


_NEGLIGIBLE = 1e-7


def _power_of_mcnemar(difference: float, discordant: float, n: int, level: float) -> float:
    """Return the probability that the exact test over ``n`` questions finds a difference.

    On a share ``discordant`` of them only one of the two is right.
    """
    favoured = (discordant + difference) / (2 * discordant) if discordant else 0.5
    found = 0.0
    for differing in range(1, n + 1):
        likely = math.comb(n, differing) * discordant**differing * (1 - discordant) ** (n - differing)
        if likely < _NEGLIGIBLE:
            continue
        found += likely * sum(
            math.comb(differing, against)
            * (
                favoured ** (differing - against) * (1 - favoured) ** against
                + favoured**against * (1 - favoured) ** (differing - against)
            )
            for against in range(_most_against(differing, level) + 1)
        )
    return found


@cache
def _most_against(differing: int, level: float) -> int:
    """Return the most disagreements for the worse one that the exact test still calls significant; -1 if none."""
    against = 0
    while 2 * against < differing and mcnemar_exact(differing - against, against) < level:
        against += 1
    return against - 1
