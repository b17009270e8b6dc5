"""The same answers under several judges: accuracy, agreement, ranking, and correction by hand labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Final

from memreplay.scoring.statistics import Z_95, cohens_kappa, wilson_interval

ENOUGH_LABELS: Final = 30
"""Labels by hand from which on they serve as the reference."""

AnswerKeyOf = tuple[str, str, str, str, int]
"""Conversation, backend, model, question id and repeat of an answer."""

Verdicts = Mapping[AnswerKeyOf, bool]
"""Answers → right or not, by one judge and rubric; answers without a verdict are left out."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Accuracy:
    """The right answers of one system under one judge and rubric.

    Repeats of a question are alike: the interval is over the ``questions``, not over the answers.
    """

    judge: str
    system: str
    right: int
    graded: int
    questions: int

    @property
    def share(self) -> float | None:
        return self.right / self.graded if self.graded else None

    @property
    def ci95(self) -> Interval | None:
        return None if self.share is None else wilson_interval(self.share * self.questions, self.questions)


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of two judges over the ``n`` answers that both have a verdict on."""

    a: str
    b: str
    n: int
    both_right: int
    only_a: int
    only_b: int
    both_wrong: int

    @property
    def share(self) -> float | None:
        return (self.both_right + self.both_wrong) / self.n if self.n else None

    @property
    def kappa(self) -> float | None:
        return cohens_kappa(self.both_right, self.only_a, self.only_b, self.both_wrong)


@dataclass(frozen=True)
class Calibration:
    """A judge against the labels by hand, and its accuracy corrected by both rates (Rogan and Gladen, 1978).

    The correction is None where the judge tells right from wrong no better than chance, or one of the two was never
    labelled.
    """

    judge: str
    labels: int
    sensitivity: float | None
    sensitivity_ci95: Interval | None
    specificity: float | None
    specificity_ci95: Interval | None
    raw: float | None
    corrected: float | None
    corrected_ci95: Interval | None


def system_of(key: AnswerKeyOf) -> str:
    """Return the name of the system that gave an answer."""
    return f"{key[1]}@{key[2]}"


def accuracies(by_judge: Mapping[str, Verdicts]) -> list[Accuracy]:
    """Return the accuracy of each system under each judge, in the order of both."""
    systems = list(dict.fromkeys(system_of(key) for verdicts in by_judge.values() for key in verdicts))
    return [
        _accuracy(judge, system, {key: right for key, right in verdicts.items() if system_of(key) == system})
        for judge, verdicts in by_judge.items()
        for system in systems
    ]


def _accuracy(judge: str, system: str, verdicts: Verdicts) -> Accuracy:
    return Accuracy(judge, system, sum(verdicts.values()), len(verdicts), _questions(verdicts))


def _questions(verdicts: Verdicts) -> int:
    """Return the number of answers, of which repeats count once."""
    return len({key[:4] for key in verdicts})


def agreements(by_judge: Mapping[str, Verdicts]) -> list[PairAgreement]:
    """Return how far each two judges agree."""
    found = []
    for a, b in combinations(by_judge, 2):
        both = [(by_judge[a][key], by_judge[b][key]) for key in by_judge[a] if key in by_judge[b]]
        counts = [both.count(each) for each in ((True, True), (True, False), (False, True), (False, False))]
        found.append(PairAgreement(a, b, len(both), *counts))
    return found


def splits(by_judge: Mapping[str, Verdicts]) -> list[tuple[AnswerKeyOf, dict[str, bool]]]:
    """Return the answers on which judges differ, those first on which they differ most evenly."""
    keys = dict.fromkeys(key for verdicts in by_judge.values() for key in verdicts)
    said = [(key, {judge: each[key] for judge, each in by_judge.items() if key in each}) for key in keys]
    split = [(key, each) for key, each in said if len(set(each.values())) > 1]
    return sorted(split, key=lambda one: abs(sum(one[1].values()) / len(one[1]) - 0.5))


def rankings(found: Sequence[Accuracy]) -> dict[str, list[list[str]]]:
    """Return the systems by falling accuracy under each judge; equal ones share a place."""
    by_judge: dict[str, dict[float, list[str]]] = {}
    for each in sorted(found, key=lambda each: (-(each.share or 0.0), each.system)):
        by_judge.setdefault(each.judge, {}).setdefault(each.share or 0.0, []).append(each.system)
    return {each.judge: [*by_judge[each.judge].values()] for each in found}


def contradicts(ranked: Mapping[str, Sequence[Sequence[str]]]) -> bool:
    """Return whether one judge puts a system before another that a second judge puts before it."""
    before = {
        (first, second)
        for places in ranked.values()
        for better, worse in combinations(places, 2)
        for first in better
        for second in worse
    }
    return any((second, first) in before for first, second in before)


def calibrations(by_judge: Mapping[str, Verdicts], labels: Verdicts) -> list[Calibration]:
    """Return each judge against the labels by hand; nothing where there are fewer than :data:`ENOUGH_LABELS`."""
    if len(labels) < ENOUGH_LABELS:
        return []
    return [_calibration(judge, verdicts, labels) for judge, verdicts in by_judge.items()]


def _calibration(judge: str, verdicts: Verdicts, labels: Verdicts) -> Calibration:
    both = [(label, verdicts[key]) for key, label in labels.items() if key in verdicts]
    right = [said for label, said in both if label]
    wrong = [not said for label, said in both if not label]
    sensitivity = sum(right) / len(right) if right else None
    specificity = sum(wrong) / len(wrong) if wrong else None
    raw = sum(verdicts.values()) / len(verdicts) if verdicts else None
    corrected, bounds = None, None
    if raw is not None and sensitivity is not None and specificity is not None:
        asked = _questions(verdicts)
        found = rogan_gladen(raw, asked, sensitivity, len(right), specificity, len(wrong))
        corrected, bounds = found or (None, None)
    return Calibration(
        judge=judge,
        labels=len(both),
        sensitivity=sensitivity,
        sensitivity_ci95=wilson_interval(sum(right), len(right)) if right else None,
        specificity=specificity,
        specificity_ci95=wilson_interval(sum(wrong), len(wrong)) if wrong else None,
        raw=raw,
        corrected=corrected,
        corrected_ci95=bounds,
    )


def rogan_gladen(
    raw: float, n: int, sensitivity: float, n_right: int, specificity: float, n_wrong: int
) -> tuple[float, Interval] | None:
    """Return the share of right answers corrected for a judge's two error rates, with its 95 % interval.

    The interval adds the variances of all three estimates (delta method) and is clipped to 0..1. None for a judge
    that is no better than chance.
    """
    informedness = sensitivity + specificity - 1
    if informedness <= 0:
        return None
    estimate = min(1.0, max(0.0, (raw + specificity - 1) / informedness))
    variance = (
        raw * (1 - raw) / n
        + estimate**2 * sensitivity * (1 - sensitivity) / n_right
        + (1 - estimate) ** 2 * specificity * (1 - specificity) / n_wrong
    ) / informedness**2
    half = Z_95 * sqrt(variance)
    return estimate, (max(0.0, estimate - half), min(1.0, estimate + half))
