"""The everyday sentences on a run: what they put first, and what they do not claim."""

from __future__ import annotations

import pytest

from memreplay.scoring.aggregates import build_results
from memreplay.scoring.question_row import QuestionRow, Tokens
from memreplay.views.remarks import conclusions, headline_remarks, remarks
from tests.unit.scoring.samples import MODEL, choice, reply, row
from tests.unit.scoring.test_results import RUN

RIGHT, WRONG = reply("3"), reply("0")
FOUND = choice(evidence=("t1",), evidence_role="supports")


def rows(backend: str, right: int, held: int, *, of: int = 40, model: str = MODEL) -> list[QuestionRow]:
    """Forty questions of four conversations: so many right, so many with the answer in the prompt."""
    return [
        row(FOUND, RIGHT if place < right else WRONG, backend=backend).model_copy(
            update={
                "question_id": str(place),
                "question": f"Which {place}?",
                "conversation": f"c{place % 4}",
                "model": model,
                "answer_in_prompt": place < held,
                "evidence_in_prompt": place < held,
            }
        )
        for place in range(of)
    ]


def said(*groups: list[QuestionRow]) -> list[str]:
    return conclusions(build_results(RUN, [one for group in groups for one in group]))


def test_below_the_floor_what_reaches_the_prompt_is_the_headline() -> None:
    first, second = said(rows("oracle", 18, 40), rows("hybrid", 10, 36), rows("rag", 10, 20))
    assert first == (
        "The reader finds only 18 of 40 answers (45.0 %) with the evidence in front of it (oracle), so that"
        " accuracy says little of the memories. Compare what reaches the prompt: hybrid 90.0 %, rag 50.0 % of"
        " the answers."
    )
    assert second.startswith(
        "hybrid brings more answers into the prompt than rag here: 36 against 20 of the same 40"
    )


def test_accuracy_stands_behind_it_lead_by_lead() -> None:
    groups = rows("hybrid", 18, 36), rows("rag", 4, 20), rows("oracle", 20, 40)
    assert [each.split(" here:")[0] for each in said(*groups)[1:]] == [
        "hybrid brings more answers into the prompt than rag",
        "hybrid is better than rag",
    ]


def test_the_one_table_is_followed_by_what_uncertain_grades_leave_open() -> None:
    group = [
        each.model_copy(update={"uncertain": place < 3}) for place, each in enumerate(rows("rag", 2, 40, of=9))
    ]
    found = headline_remarks(build_results(RUN, group))
    assert "uncertain grades leave open how many are right: rag 0 to 3; --judge decides." in found
    assert not any("uncertain" in each for each in headline_remarks(build_results(RUN, rows("rag", 2, 40, of=9))))


def test_it_says_how_many_verdicts_are_uncertain() -> None:
    group = [
        each.model_copy(update={"failure": "misread", "failure_doubt": "near_answer" if place < 5 else None})
        for place, each in enumerate(rows("rag", 2, 40, of=9))
        if each.outcome == "wrong"
    ]
    assert f"rag lost: {len(group)} misread (3 uncertain)." in headline_remarks(build_results(RUN, group))
    decides = "uncertain stages: memreplay rejudge --rubric stages asks a judge where these answers were lost."
    assert decides in headline_remarks(build_results(RUN, group))
    for answered in ({"failure_judge": "openai/a"}, {"failure_doubt": None}):
        other = [each.model_copy(update=answered) for each in group]
        assert decides not in headline_remarks(build_results(RUN, other))


def test_intervals_over_few_conversations_say_so() -> None:
    def of(questions: int) -> list[str]:
        remarks = headline_remarks(build_results(RUN, rows("rag", 1, 40, of=questions)))
        return [each for each in remarks if each.startswith("95 %")]

    assert of(1) == []
    assert of(2) == ["95 %: intervals over 2 conversations; so few make them wide."]


def test_the_widest_lead_comes_first() -> None:
    found = said(rows("a", 39, 39), rows("b", 24, 24), rows("c", 6, 6), rows("oracle", 40, 40))
    assert [each.split(" here:")[0] for each in found] == [
        "a is better than c", "b is better than c", "a is better than b",
    ]  # fmt: skip


def test_alike_prompts_are_called_so_even_where_accuracy_differs() -> None:
    found = said(rows("oracle", 20, 40), rows("hybrid", 18, 30), rows("rag", 4, 29))
    assert found[1] == (
        "These facts are too few, or the memories too alike, to say which of them brings more into the prompt."
    )
    assert found[2].startswith("hybrid is better than rag here")


def test_prompts_that_differ_are_told_where_accuracy_does_not() -> None:
    second, first = said(rows("oracle", 40, 40), rows("hybrid", 12, 36), rows("rag", 11, 20))
    assert first.startswith("hybrid brings more answers into the prompt than rag here: 36 against 20")
    assert second == "These questions are too few, or the memories too alike, to say which of them answers better."


def test_a_lead_that_is_not_at_equal_tokens_says_so() -> None:
    larger = [
        each.model_copy(update={"tokens": Tokens(prompt=25, completion=1, cached=0)})
        for each in rows("hybrid", 40, 36)
    ]
    (better,) = said(larger, rows("rag", 4, 20))
    assert better == (
        "hybrid is better than rag here: 40 against 4 right of the same 40 questions; not at equal tokens: a prompt"
        " has 25 and 10 on average; other conversations may give another result."
    )
    _, brings, _ = said(rows("oracle", 20, 40), larger, rows("rag", 4, 20))
    assert "of the same 40 facts; not at equal tokens: a prompt has 25 and 10 on average" in brings


def test_the_floor_stands_before_what_fits() -> None:
    found = said(rows("oracle", 20, 40), rows("hybrid", 18, 40), rows("rag", 17, 40))
    assert found[0].startswith("The reader finds only") and found[1].startswith("everything fits")


def test_each_model_below_the_floor_is_named() -> None:
    good = [rows("oracle", 40, 40, model="good"), rows("rag", 30, 30, model="good")]
    poor = [rows("oracle", 8, 40, model="poor"), rows("rag", 5, 30, model="poor")]
    found = [each for each in said(*good, *poor) if "(oracle)" in each]
    assert found == [
        "poor finds only 8 of 40 answers (20.0 %) with the evidence in front of it (oracle), so that accuracy"
        " says little of the memories. Compare what reaches the prompt: rag@poor 75.0 % of the answers."
    ]


@pytest.mark.parametrize("right", [24, 40])
def test_a_reader_that_reads_is_not_named(right: int) -> None:
    assert not any("(oracle)" in each for each in said(rows("oracle", right, 40), rows("rag", 9, 9)))


def test_how_pairs_are_compared_is_said_where_only_prompts_could_be_told_apart() -> None:
    results = build_results(RUN, [*rows("hybrid", 0, 36), *rows("rag", 0, 20)])
    assert any(each.startswith("comparisons: detectable is the smallest") for each in remarks(results))


def test_nothing_is_concluded_of_a_memory_beside_its_controls_alone() -> None:
    found = said(rows("rag", 20, 20), rows("closed_book", 4, 0), rows("oracle", 30, 40))
    assert not [each for each in found if "better" in each]
