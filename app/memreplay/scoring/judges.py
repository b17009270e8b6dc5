"""The same answers under several judges: accuracy, agreement, ranking, and correction by hand labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import sqrt
from typing import Final

from memory_backends.controls import CONTROLS
from memreplay.scoring.groups import by_conversation
from memreplay.scoring.statistics import (
    Z_95,
    clustered_interval,
    cohens_kappa,
    mcnemar_exact,
    wilson_interval,
)

_CLEAR: Final = 0.05

ENOUGH_LABELS: Final = 30
"""Labels by hand from which on they serve as the reference."""

AnswerKeyOf = tuple[str, str, str, str, int]
"""Conversation, backend, model, question id and repeat of an answer."""

Verdicts = Mapping[AnswerKeyOf, bool]
"""Answers → right or not, by one judge and rubric; answers without a verdict are left out."""

RULES: Final = "rules"
"""The name of the grader's rules beside judges."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Accuracy:
    """The right answers of one system under one judge and rubric.

    The interval is over conversations, or over the ``questions`` where there is only one. Repeats are alike.
    """

    judge: str
    system: str
    right: int
    graded: int
    questions: int
    ci95: Interval | None

    @property
    def share(self) -> float | None:
        return self.right / self.graded if self.graded else None


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
    shares = _shares_right(verdicts)
    by_question = {(key[0], "", key[3]): share for key, share in shares.items()}
    bounds = clustered_interval(by_conversation(by_question, {})) or wilson_interval(
        sum(shares.values()), len(shares)
    )
    return Accuracy(judge, system, sum(verdicts.values()), len(verdicts), len(shares), bounds)


def _shares_right(verdicts: Verdicts) -> dict[tuple[str, str, str, str], float]:
    """Return for each answer the share of its repeats that are right."""
    repeats: dict[tuple[str, str, str, str], list[bool]] = {}
    for key, right in verdicts.items():
        repeats.setdefault(key[:4], []).append(right)
    return {key: sum(found) / len(found) for key, found in repeats.items()}


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


@dataclass(frozen=True)
class Rankings:
    """The systems by falling accuracy under each judge, on the ``answers`` that all of them gave a verdict on.

    Equal systems share a place. Controls are not ranked, and judges without any verdict are left out. ``reversed``
    says whether a judge puts a system before another that a second judge puts before it, and ``clear`` whether two
    judges each do so by more than chance (exact McNemar test over questions, p < 0.05).
    """

    places: dict[str, list[list[str]]]
    answers: int
    reversed: bool
    clear: bool


def rankings(by_judge: Mapping[str, Verdicts]) -> Rankings:
    """Return how the judges rank the systems."""
    heard = {judge: verdicts for judge, verdicts in by_judge.items() if verdicts}
    common = frozenset[AnswerKeyOf].intersection(*map(frozenset, heard.values())) if heard else frozenset()
    alike = {
        judge: {key: verdicts[key] for key in verdicts if key in common and key[1] not in CONTROLS}
        for judge, verdicts in heard.items()
    }
    by_share: dict[str, dict[float, list[str]]] = {}
    for each in sorted(accuracies(alike), key=lambda each: (-(each.share or 0.0), each.system)):
        by_share.setdefault(each.judge, {}).setdefault(each.share or 0.0, []).append(each.system)
    places = {judge: [*by_share[judge].values()] for judge in alike if judge in by_share}
    ahead = {(judge, first, second) for judge, found in places.items() for first, second in _pairs_in(found)}
    reversals = [
        (judge, other, first, second)
        for judge, first, second in ahead
        for other in places
        if (other, second, first) in ahead
    ]
    return Rankings(
        places=places,
        answers=len({key for key in common if key[1] not in CONTROLS}),
        reversed=bool(reversals),
        clear=any(
            _is_clear(alike[judge], first, second) and _is_clear(alike[other], second, first)
            for judge, other, first, second in reversals
        ),
    )


def _pairs_in(places: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield each system with one that stands behind it."""
    for better, worse in combinations(places, 2):
        yield from product(better, worse)


def _is_clear(verdicts: Verdicts, better: str, worse: str) -> bool:
    shares = _shares_right(verdicts)
    of_each = [
        {(key[0], key[3]): share for key, share in shares.items() if system_of((*key, 0)) == system}
        for system in (better, worse)
    ]
    differences = [of_each[0][key] - of_each[1][key] for key in of_each[0] if key in of_each[1]]
    ahead, behind = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return mcnemar_exact(ahead, behind) < _CLEAR


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
        asked = len(_shares_right(verdicts))
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
