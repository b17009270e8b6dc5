"""Judges against each other and against labels by hand."""

from __future__ import annotations

import pytest

from memreplay.scoring.judges import (
    AnswerKeyOf,
    accuracies,
    calibrations,
    rankings,
    rogan_gladen,
)


def key(number: int, system: str = "a") -> AnswerKeyOf:
    return "c", system, "m", f"q{number}", 0


def test_a_correction_undoes_the_judges_errors() -> None:
    # Of 1,000 answers 600 are right; the judge finds 90 % of those, and accepts 20 % of the others.
    found = rogan_gladen((0.9 * 600 + 0.2 * 400) / 1000, 1000, 0.9, 300, 0.8, 300)
    assert found is not None
    estimate, (low, high) = found
    assert estimate == pytest.approx(0.6) and low < 0.6 < high
    assert high - low > 2 * 1.96 * (0.6 * 0.4 / 1000) ** 0.5, "wider than that of the raw share"


def test_nothing_is_corrected_for_a_judge_no_better_than_chance() -> None:
    assert rogan_gladen(0.5, 100, 0.5, 20, 0.5, 20) is None


def test_labels_count_from_thirty_on() -> None:
    labels = {key(number): number % 2 == 0 for number in range(30)}
    generous = {"j": dict.fromkeys(labels, True) | {key(99): True}}
    assert calibrations(generous, dict(list(labels.items())[:29])) == []
    (found,) = calibrations(generous, labels)
    assert (found.labels, found.sensitivity, found.specificity) == (30, 1.0, 0.0)
    assert found.corrected is None


def test_the_ranking_can_depend_on_the_judge() -> None:
    one = {key(1, "a"): True, key(1, "b"): False}
    other = {key(1, "a"): False, key(1, "b"): True}
    found = rankings({"x": one, "y": other})
    assert found.places == {"x": [["a@m"], ["b@m"]], "y": [["b@m"], ["a@m"]]}
    assert found.reversed and not found.clear, "one answer may be chance"
    many = [
        {key(number, system): right for number in range(9) for (_, system, *_), right in each.items()}
        for each in (one, other)
    ]
    assert rankings({"x": many[0], "y": many[1]}).clear


def test_a_judge_that_calls_all_alike_contradicts_none() -> None:
    one = {key(1, "a"): False, key(1, "b"): True}
    found = rankings({"x": one, "y": dict.fromkeys(one, True)})
    assert found.places == {"x": [["b@m"], ["a@m"]], "y": [["a@m", "b@m"]]} and not found.reversed


def test_systems_are_ranked_on_what_all_judges_judged_without_controls_and_judges_that_gave_no_verdict() -> None:
    one = {key(1, "a"): True, key(2, "a"): True, key(1, "b"): False, key(1, "closed_book"): True}
    other = {key(1, "a"): True, key(1, "b"): False, key(2, "b"): True, key(1, "closed_book"): True}
    found = rankings({"x": one, "y": other, "silent": {}})
    assert found.places == {"x": [["a@m"], ["b@m"]], "y": [["a@m"], ["b@m"]]} and found.answers == 2


def test_repeats_of_a_question_make_its_interval_no_narrower() -> None:
    once = {key(number): number < 3 for number in range(6)}
    twice = once | {(*one[:4], 1): right for one, right in once.items()}
    (first,), (second,) = accuracies({"x": once}), accuracies({"x": twice})
    assert (first.graded, second.graded, first.ci95) == (6, 12, second.ci95)
