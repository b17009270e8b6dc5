"""The numbers that are quoted."""

from __future__ import annotations

from typing import Any

import pytest

from memreplay.llm.model import TokenUsage
from memreplay.scoring.aggregates import headline_of
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.statistics import clustered_interval, wilson_interval
from tests.unit.scoring.samples import choice, hit, recall, reply, row

RIGHT, WRONG, ERROR = reply("3"), reply("0"), reply(None, error="timed out", usage=TokenUsage(), cost_usd=None)
FOUND = choice(evidence=("t1",), evidence_role="supports")


def asked(answer: Any, *, in_prompt: bool = True, **changes: Any) -> QuestionRow:
    return row(FOUND, answer, hit(1, "t1", in_prompt=in_prompt)).model_copy(update=changes)


def test_evidence_in_the_prompt_is_crossed_with_right_answers() -> None:
    grounded = asked(RIGHT, failure="grounded")
    rows = [grounded, grounded, asked(WRONG), asked(RIGHT, in_prompt=False, failure="lucky"), asked(ERROR)]
    rows = [row.model_copy(update={"question_id": str(place)}) for place, row in enumerate(rows)]
    headline = headline_of([*rows, row(choice(), RIGHT)])
    table = headline.evidence_by_answer
    assert table is not None
    assert (table.in_prompt_right, table.in_prompt_wrong, table.missing_right, table.missing_wrong) == (2, 1, 1, 0)
    assert headline.grounded_accuracy == 0.5
    assert headline.evidence_in_prompt == pytest.approx(4 / 5)


def test_the_gain_is_what_memory_adds_to_what_the_model_knows_alone() -> None:
    rows = [
        asked(RIGHT, closed_book_correct=True),
        asked(RIGHT, closed_book_correct=False),
        asked(RIGHT, closed_book_correct=False),
        asked(WRONG, closed_book_correct=False),
        asked(WRONG, closed_book_correct=None),
        asked(ERROR, closed_book_correct=True),
    ]
    headline = headline_of(rows)
    assert headline.closed_book_accuracy == 0.25
    assert headline.normalised_gain == pytest.approx((0.75 - 0.25) / 0.75)


def test_the_gain_is_over_the_better_of_closed_book_and_blind_guesser_with_and_without_adversarial() -> None:
    rows = [
        asked(RIGHT, closed_book_correct=False, blind_guess=1.0),
        asked(RIGHT, closed_book_correct=False, blind_guess=0.5),
        asked(WRONG, closed_book_correct=False, blind_guess=0.0),
        asked(RIGHT, closed_book_correct=True, blind_guess=0.0, abstain=True),
    ]
    headline = headline_of(rows)
    assert (headline.closed_book_accuracy, headline.blind_guesser_accuracy) == (0.25, 0.375)
    assert headline.normalised_gain == pytest.approx((0.75 - 0.375) / (1 - 0.375))
    # Without the adversarial question: 2 of 3 right, closed book none, the guesser 1.5 of 3.
    assert headline.normalised_gain_without_adversarial == pytest.approx((2 / 3 - 0.5) / 0.5)
    assert headline.accuracy_without_adversarial == pytest.approx(2 / 3)


def test_repeats_are_one_question_in_every_interval() -> None:
    once = [asked(RIGHT, question_id="a"), asked(WRONG, question_id="b", conversation="other")]
    thrice = [row.model_copy(update={"repeat": repeat}) for row in once for repeat in range(3)]
    assert headline_of(thrice).ci95 == headline_of(once).ci95 == wilson_interval(1, 2)
    assert (
        headline_of(thrice).ci95_clustered
        == headline_of(once).ci95_clustered
        == clustered_interval([(1, 1), (0, 1)])
    )
    mixed = [*thrice[:2], asked(WRONG, question_id="a", repeat=2), *thrice[3:]]
    assert headline_of(mixed).ci95 == wilson_interval(2 / 3, 2)


def test_there_is_no_gain_where_the_model_was_not_asked_alone_or_knows_all_alone() -> None:
    assert headline_of([asked(RIGHT)]).normalised_gain is None
    alone = headline_of([asked(RIGHT, closed_book_correct=True)])
    assert (alone.closed_book_accuracy, alone.normalised_gain) == (1.0, None)


def test_a_right_answer_costs_what_all_answers_cost() -> None:
    headline = headline_of([asked(RIGHT), asked(RIGHT), asked(WRONG), asked(ERROR)])
    assert headline.tokens_per_right == (3 * 12) / 2
    assert headline.cost_usd_per_right == pytest.approx(0.03 / 2)
    nothing = headline_of([asked(WRONG)])
    assert (nothing.tokens_per_right, nothing.cost_usd_per_right) == (None, None)


def test_conversations_widen_the_interval() -> None:
    rows = [asked(RIGHT, conversation=str(n % 4), question_id=str(n), question=f"{n}?") for n in range(8)]
    rows += [asked(WRONG, conversation="4", question_id=str(n), question=f"{n}?") for n in range(3)]
    headline = headline_of([*rows, asked(ERROR, conversation="5")])
    assert headline.conversations == 5
    assert headline.ci95 == wilson_interval(8, 11)
    assert headline.ci95_clustered == clustered_interval([(2, 2)] * 4 + [(0, 3)])


def test_adversarial_questions_of_either_kind_can_be_left_out() -> None:
    adversarial = recall(type="adversarial", abstain=True, expected="Not answerable", expected_entities=())
    headline = headline_of([asked(WRONG), row(adversarial, reply("It was not mentioned."))])
    assert (headline.accuracy, headline.accuracy_without_adversarial) == (0.5, 0.0)


def test_repeats_agree_as_often_as_two_of_them_gave_the_same_answer() -> None:
    def repeats(*answers: Any, id_: str) -> list[QuestionRow]:
        return [asked(answer, question_id=id_, repeat=n) for n, answer in enumerate(answers)]

    rows = repeats(RIGHT, RIGHT, WRONG, id_="a") + repeats(RIGHT, RIGHT, id_="b") + repeats(RIGHT, ERROR, id_="c")
    assert headline_of(rows).repeats_agree == pytest.approx((1 + 1) / (3 + 1))
    assert headline_of([asked(RIGHT)]).repeats_agree is None


def test_nothing_graded_has_no_numbers() -> None:
    headline = headline_of([row(choice(), ERROR)])
    assert headline.model_dump(exclude={"conversations"}) == dict.fromkeys(
        set(type(headline).model_fields) - {"conversations"}
    )
