"""Two runs, paired by question."""

from __future__ import annotations

from typing import Any

import pytest

from memreplay.errors import UsageError
from memreplay.grading import Outcome
from memreplay.scoring.run_comparison import AnswerRow, compare_runs


def answer(
    id_: str, outcome: Outcome, backend: str = "rag", model: str = "m", repeat: int = 0, **more: Any
) -> AnswerRow:
    fields = {"question": f"{id_}?", "expected": "x", "predicted": outcome, "error": None, "failure": None} | more
    return AnswerRow(
        question_id=id_, dataset="d", conversation="c", backend=backend, model=model, repeat=repeat,
        outcome=outcome, **fields,
    )  # fmt: skip


def kinds(first: list[AnswerRow], second: list[AnswerRow]) -> list[tuple[str, str]]:
    return [(change.question_id, change.kind) for change in compare_runs(first, second).changes]


def test_changes_are_sorted_by_what_changed_and_within_it_stay_in_order() -> None:
    before = [
        answer("same", "correct"),
        answer("said", "wrong", predicted="blue"),
        answer("why", "wrong", failure="cut"),
        answer("failed", "correct"),
        answer("gained", "wrong"),
        answer("lost", "correct"),
        answer("lost too", "correct"),
    ]
    after = [
        answer("lost too", "refused"),
        answer("same", "correct"),
        answer("said", "wrong", predicted="red"),
        answer("why", "wrong", failure="misread"),
        answer("failed", "error", predicted=None, error="timed out"),
        answer("gained", "correct"),
        answer("lost", "wrong"),
    ]
    found = compare_runs(before, after)
    assert [(change.question_id, change.kind) for change in found.changes] == [
        ("lost", "lost"),
        ("lost too", "lost"),
        ("gained", "gained"),
        ("failed", "error"),
        ("why", "other_failure"),
        ("said", "other_answer"),
    ]
    assert found.alike == 1
    assert (found.changes[3].was, found.changes[3].now) == ("correct", "timed out")


def test_the_statistics_are_those_of_the_paired_questions() -> None:
    before = [answer(str(n), "wrong") for n in range(10)]
    after = [answer(str(n), "correct") for n in range(5, 12)]
    (found,) = compare_runs(before, after).comparisons
    assert (found.a, found.b, found.n, found.only_a, found.only_b) == ("A rag", "B rag", 5, 0, 5)
    assert found.words.startswith("B rag is ahead of A rag on these 5 questions by 100.0 points")


def test_backends_are_paired_by_name_and_those_without_a_partner_are_named() -> None:
    before = [answer("q", "correct", "rag"), answer("q", "wrong", "hybrid")]
    after = [answer("q", "correct", "rag"), answer("q", "wrong", "oracle")]
    found = compare_runs(before, after)
    assert [comparison.a for comparison in found.comparisons] == ["A rag"]
    assert found.unpaired == ("A hybrid", "B oracle")


def test_two_lone_contestants_are_paired_whatever_they_are() -> None:
    found = compare_runs([answer("q", "wrong", "rag")], [answer("q", "correct", "hybrid", "n")])
    assert [(one.a, one.b) for one in found.comparisons] == [("A rag", "B hybrid")]
    assert found.changes[0].contestant == "rag → hybrid"


def test_a_run_of_several_models_meets_a_run_of_one_at_that_model() -> None:
    several = [answer("q", "wrong", "rag", "m"), answer("q", "correct", "rag", "n")]
    found = compare_runs(several, [answer("q", "correct", "rag", "n"), answer("q", "correct", "hybrid", "n")])
    assert [(one.a, one.b) for one in found.comparisons] == [("A rag@n", "B rag")]
    assert found.alike == 1


def test_repeats_are_paired_one_by_one() -> None:
    before = [answer("q", "correct", repeat=0), answer("q", "wrong", repeat=1)]
    after = [answer("q", "correct", repeat=0), answer("q", "correct", repeat=1)]
    assert kinds(before, after) == [("q", "gained")]


def test_a_label_that_an_older_run_does_not_know_is_no_change() -> None:
    assert kinds([answer("q", "correct")], [answer("q", "correct", failure="grounded")]) == []


@pytest.mark.parametrize("other", [[], [answer("another", "correct")], [answer("q", "correct", "oracle")] * 2])
def test_runs_without_anything_in_common_are_refused(other: list[AnswerRow]) -> None:
    mine = [answer("q", "correct"), answer("q", "correct", "hybrid")]
    with pytest.raises(UsageError, match="nothing in common"):
        compare_runs(mine, other)


def test_a_lead_that_an_assumed_limit_may_have_caused_names_no_winner() -> None:
    before = [answer(str(n), "correct") for n in range(5)]
    after = [answer(str(n), "wrong", cut_tokens=900) for n in range(5)]
    limited, given = {"context_tokens": None}, {"context_tokens": 500}
    (found,) = compare_runs(before, after, limited, limited).comparisons
    assert found.decided_by_default_limit and found.words.startswith("a default may decide between A rag and B rag")
    for settings in (given, None):
        (found,) = compare_runs(before, after, settings, settings).comparisons
        assert not found.decided_by_default_limit and "points" in found.words


def test_two_memories_whose_prompts_always_held_the_answer_cannot_differ() -> None:
    held = [answer(str(n), "correct", answer_in_prompt=True) for n in range(4)]
    missed = [answer(str(n), "correct", answer_in_prompt=n > 1) for n in range(4)]
    (remark,) = compare_runs(held, held).remarks
    assert remark.startswith("everything fits: the prompts of A rag and B rag both held the answer to 4 of 4")
    assert compare_runs(held, missed).remarks == ()


def test_runs_that_were_graded_by_different_judges_are_compared_by_the_rules() -> None:
    judge = {"model": "strict", "rubric": "plain"}
    by_rules = {"outcome": "correct", "decided_by": "exact"}
    judged = answer("q", "wrong", predicted="It is.", grader=by_rules, judge=judge, failure="misread")
    before = [judged, answer("p", "wrong")]
    after = [answer("q", "correct", predicted="It is.", failure="grounded"), answer("p", "wrong")]
    found = compare_runs(before, after)
    assert not found.changes, "of an answer that the judge graded otherwise, the stage is not known"
    assert [comparison.both_right for comparison in found.comparisons] == [1]
    assert "strict decided in A and no judge in B" in found.remarks[0]
    assert compare_runs(before, before).remarks == ()
