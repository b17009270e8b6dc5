"""Tests and intervals for two contestants that answered the same questions.

All are exact and need nothing but integers. ``b`` is how many questions only the first has right, ``c`` how many
only the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from app.scoring.statistics import Z_95, jackknife_variance, t_quantile


def mcnemar_exact(b: int, c: int) -> float:
    """The two-sided p-value that questions on which two contestants disagree fall to either side equally often.

    Twice the smaller tail of Binomial(b + c, 1/2), at most 1; 1 where they never disagree. McNemar, Q. (1947),
    "Note on the sampling error of the difference between correlated proportions or percentages", Psychometrika 12.
    """
    n = b + c
    ways = tail = 1
    for k in range(1, min(b, c) + 1):
        ways = ways * (n - k + 1) // k
        tail += ways
    return min(1.0, float(2 * tail / 2**n))


def sign_flip_exact(differences: Sequence[int]) -> float:
    """The two-sided p-value that each conversation could as well have favoured the other contestant.

    ``differences`` are, for each conversation, the questions only the first has right less those only the second
    has. The p-value is the share of all ways to flip their signs whose sum is at least as far from 0 as the one
    seen. Since the sums are integers, all 2^C ways are counted exactly by convolution, for any number C of
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
    """P-values adjusted for their number, in the order given.

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


def paired_interval(b: int, c: int, n: int) -> tuple[float, float] | None:
    """The 95 % interval of the difference of two rates over ``n`` questions; None without any.

    Agresti, A. and Min, Y. (2005), "Simple improved confidence intervals for comparing matched proportions",
    Statistics in Medicine 24, 729–740: Wald's interval after half a question is added to each cell of the table.
    """
    if n == 0:
        return None
    only_a, only_b, total = b + 0.5, c + 0.5, n + 2
    difference = (only_a - only_b) / total
    error = math.sqrt(max(0.0, only_a + only_b - (only_a - only_b) ** 2 / total)) / total
    return _clipped(difference, Z_95 * error)


def clustered_difference_interval(clusters: Sequence[tuple[int, int]]) -> tuple[float, float] | None:
    """The same where questions come in conversations: the standard error is the jackknife's over conversations.

    ``clusters`` are, for each conversation, the questions only the first has right less those only the second has,
    and its number of questions. Student's t with C − 1 degrees of freedom; None with fewer than two conversations.
    """
    filled = [(difference, size) for difference, size in clusters if size]
    if len(filled) < 2:
        return None
    mean = sum(difference for difference, _ in filled) / sum(size for _, size in filled)
    return _clipped(mean, t_quantile(len(filled) - 1) * math.sqrt(jackknife_variance(filled)))


def _clipped(centre: float, half_width: float) -> tuple[float, float]:
    return max(-1.0, centre - half_width), min(1.0, centre + half_width)
