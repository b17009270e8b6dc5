"""Replies of odd forms are graded like any other, and soon: none makes a rule fail."""

from __future__ import annotations

from time import thread_time

import pytest

from memreplay.conversations.models import Question
from memreplay.grading import Outcome
from memreplay.grading.choice import parse_choice
from memreplay.grading.judge import score_recall
from memreplay.scoring.locomo_metric import locomo_f1
from tests.tables import failing


def outcome(expected: str, reply: str, question: str = "How did she feel?", **more: tuple[str, ...]) -> Outcome:
    asked = Question(id="q", kind="recall", type="t", text=question, expected=expected, **more)
    return score_recall(asked, reply).outcome


@pytest.mark.parametrize(
    ("expected", "reply"),
    [
        ("Discouraged but determined", "Not happy, but discouraged but determined."),
        ("Somewhat, but not extremely religious", "But not extremely religious; somewhat."),
        ("Working first, then the total", "First, then working, the total"),
        ("and", "and"),
        ("then", "Then, but and luego"),
        ("But", "but"),
    ],
)
def test_an_answer_may_begin_with_a_joint(expected: str, reply: str) -> None:
    assert outcome(expected, reply) in ("correct", "wrong")
    assert outcome(expected, expected) == "correct"


def test_a_number_of_any_form_and_size_is_read() -> None:
    def check(reply: str) -> None:
        for expected in ("6:40", "three dozen", "£14", "9 km", "12", "7 pm"):
            assert outcome(expected, reply) == "wrong"
            assert outcome(expected, f"{reply}\n{reply}") == "wrong"

    assert (
        failing(
            [
                "1,0001,0001,0001",
                "0,123,456",
                "1.234,567.890",
                "9" * 400,
                "$" + "9" * 350 + " million",
                "9" * 5000,
                "-" + "9" * 309 + "th",
                "a hundred" + " hundred" * 300,
                "two dozen" + " dozen" * 400,
                "two million" * 300,
            ],
            check,
        )
        == []
    )


@pytest.mark.parametrize(
    ("reply", "index"),
    [("İ", None), ("ı", 8), ("option İ", None), ("fıve", None), ("option fİve", 5), ("ſix", 6), ("nıne", None)],
)
def test_a_letter_that_only_differs_in_case_from_a_label_is_that_label_or_none(
    reply: str, index: int | None
) -> None:
    choices = ("red", "blue", "green", "black", "white", "grey", "brown", "pink", "gold", "teal")
    assert parse_choice(reply, choices).index == index


def test_entities_without_a_word_are_in_no_list() -> None:
    entities = ("...", "!", "tea", "milk")
    assert outcome("tea, milk", "tea, milk and honey", expected_entities=entities) in ("correct", "wrong")


def test_the_published_stemmer_reads_a_word_of_any_length() -> None:
    assert locomo_f1(4, "y" * 5000, "y" * 5000) == 1.0
    assert locomo_f1(1, "yes, no", "y" * 5000 + ", no") == 0.5


@pytest.mark.parametrize(
    "reply",
    [
        "14 so\n" * 1000,
        "14" + "\n" * 100_000 + "x",
        "one of a, " * 300 + ". 14 " * 200,
        "he she Ann Lee 14 lent it, " * 300,
        "14 or " * 600,
        "x" * 1_000_000,
        "so " * 2000 + "14 people",
    ],
    ids=["conclusions", "lines", "offers", "clauses", "alternatives", "word", "so"],
)
def test_a_reply_without_end_is_graded_in_a_second(reply: str) -> None:
    began = thread_time()
    outcome("14 people", reply, "Who lent me 14 chairs?")
    outcome("Ann Lee", reply, "Who lent me 14 chairs?")
    assert thread_time() - began < 2.0


def test_an_answer_of_many_items_that_recur_is_looked_for_in_a_second() -> None:
    said = '"May 2025"} \n {"choice": 11, - "never May"} \n ' * 80
    began = thread_time()
    outcome(said, said, "When did she go?")
    assert thread_time() - began < 2.0
