"""A question asked in words and the same one asked by choice are told apart in a list of changed answers."""

from __future__ import annotations

from memreplay.scoring.run_comparison import Change
from memreplay.views.comparison import RegressionDocument


def changed(question_id: str) -> Change:
    return Change(
        kind="gained", contestant="rag", dataset="d", conversation="c", question_id=question_id,
        question="Where does Marta live?", expected="Girona", was="Vic", now="Girona", failure_was="cut",
        failure_now="grounded", outcome_was="wrong", outcome_now="correct", of_a=("rag", "m"), of_b=("rag", "m"),
        repeat=0,
    )  # fmt: skip


def test_questions_by_choice_are_marked_only_where_others_stand_beside_them() -> None:
    changes = [changed("q1"), changed("q1-mc")]
    marked = RegressionDocument(changes, {("c", "q1-mc")})
    texts = [marked.rows(place, 80)[-1].text for place in range(2)]
    assert "≡" not in texts[0] and "≡ Where does Marta live?" in texts[1]
    assert all("≡" not in RegressionDocument(changes).rows(place, 80)[-1].text for place in range(2))
