"""Scoring replies."""

from __future__ import annotations

import pytest

from memreplay.conversations.registry import load
from memreplay.engine.answers import score_reply
from memreplay.grading import Outcome
from memreplay.grading.judge import score_recall
from tests.tables import failing
from tests.unit.scoring.samples import choice, recall, reply


def test_a_choice_is_correct_if_its_index_is() -> None:
    def check(text: str, outcome: Outcome, predicted: str, index: int | None) -> None:
        score = score_reply(choice(), reply(text))
        assert (score.outcome, score.predicted, score.predicted_index) == (outcome, predicted, index)
        assert score.score == (1.0 if outcome == "correct" else 0.0)
        assert (score.exact_match, score.entity_recall, score.f1) == (None, None, None)

    assert (
        failing(
            [
                ("3", "correct", "quince", 3),
                ("Answer Index: 3", "correct", "quince", 3),
                ("quince", "correct", "quince", 3),
                ("0", "wrong", "apple", 0),
                ("10", "unparsed", "10", None),
                ("", "unparsed", "", None),
                ("3 or 4", "unparsed", "3 or 4", None),
                ("8", "wrong", "Not answerable", 8),
            ],
            check,
        )
        == []
    )


def test_the_gold_option_of_an_adversarial_choice_is_that_it_was_not_said() -> None:
    question = choice(expected="Not answerable", correct_index=8, abstain=True, type="adversarial")
    assert score_reply(question, reply("8")).outcome == "correct"
    assert score_reply(question, reply("3")).outcome == "wrong"


@pytest.mark.parametrize(
    ("text", "outcome", "exact", "entities", "f1"),
    [
        ("Ida and Bo", "correct", True, 1.0, 1.0),
        ("**ÍDA and bo!**", "correct", True, 1.0, 1.0),
        ("Bo, with Ida", "correct", False, 1.0, 2 * 2 / 6),
        ("Ida comes", "wrong", False, 0.5, 2 * 1 / 5),
        ("Idaho and Bobby", "wrong", False, 0.0, 2 * 1 / 6),
        ("Nobody", "wrong", False, 0.0, 0.0),
    ],
)
def test_a_recall_answer_is_right_on_an_exact_match_or_with_all_entities(
    text: str, outcome: Outcome, exact: bool, entities: float, f1: float
) -> None:
    score = score_reply(recall(), reply(text))
    assert (score.outcome, score.exact_match, score.entity_recall) == (outcome, exact, entities)
    assert score.f1 == pytest.approx(f1)
    assert score.predicted == text


def test_without_expected_entities_only_an_exact_match_is_right() -> None:
    question = recall(expected_entities=(), expected="7 May 2023")
    assert score_reply(question, reply("It was on 7 May, 2023.")).outcome == "correct"
    wrong = score_reply(question, reply("It was on 7 May."))
    assert (wrong.outcome, wrong.entity_recall) == ("wrong", None)


def test_f1_counts_a_repeated_word_as_often_as_it_is_expected() -> None:
    score = score_reply(recall(expected="no no yes", expected_entities=()), reply("no no no"))
    assert score.f1 == pytest.approx(2 * 2 / 6)


def test_reasoning_before_the_answer_is_ignored() -> None:
    thought = "<think>It may be Ida and Bo, or not.</think>It was Zoe."
    assert score_reply(recall(), reply(thought)).outcome == "wrong"
    assert score_reply(recall(), reply("<think>Ida and Bo")).outcome == "unparsed"


@pytest.mark.parametrize("text", ["I don't know.", "The conversation does not mention who comes along."])
def test_an_abstention_is_correct_only_if_it_was_never_said(text: str) -> None:
    answerable, never_said = recall(), recall(abstain=True, expected="Not answerable", expected_entities=())
    wrong = score_reply(answerable, reply(text))
    assert (wrong.outcome, wrong.exact_match, wrong.entity_recall, wrong.f1) == ("wrong", False, 0.0, 0.0)
    right = score_reply(never_said, reply(text))
    assert (right.outcome, right.score, right.exact_match, right.f1) == ("correct", 1.0, None, None)
    assert score_reply(never_said, reply("Ida comes along.")).outcome == "wrong"


@pytest.mark.parametrize(
    ("text", "is_right"),
    [("About 4 February 2024.", True), ("On 1 February 2024.", True), ("On 12 February 2024.", False),
     ("About 4 February 2023.", False), ("In 2024.", False)],
)  # fmt: skip
def test_a_day_that_is_only_about_right_is_right_where_the_answer_is_only_about_a_day(
    text: str, is_right: bool
) -> None:
    about = recall(text="When did the dog arrive?", expected="Around 3 February 2024", expected_entities=())
    exactly = recall(text="When did the dog arrive?", expected="3 February 2024", expected_entities=())
    assert (score_reply(about, reply(text)).outcome == "correct") is is_right
    assert score_reply(exactly, reply(text)).outcome == "wrong"


def test_an_adverb_at_the_beginning_is_nobodys_name() -> None:
    asked = recall(text="Which rolls did Asta suggest trying?", expected="salmon rolls", expected_entities=())
    assert score_reply(asked, reply("Definitely try the salmon rolls first.")).outcome == "correct"
    assert score_reply(asked, reply("Runa tried the salmon rolls.")).outcome == "wrong"


@pytest.mark.parametrize("text", ["", "  \n", None])
def test_a_blank_reply_is_unparsed_and_wrong(text: str | None) -> None:
    for question in (choice(), recall(), recall(abstain=True)):
        score = score_reply(question, reply(text))
        assert (score.outcome, score.score) == ("unparsed", 0.0)


def test_an_error_is_not_a_wrong_answer() -> None:
    for question in (choice(), recall()):
        score = score_reply(question, reply(None, error="timed out"))
        assert (score.outcome, score.score, score.predicted) == ("error", None, None)


def test_a_refusal_by_the_provider_is_wrong_even_if_abstaining_is_correct() -> None:
    for question in (choice(), recall(), recall(abstain=True)):
        score = score_reply(question, reply("I cannot help with that.", refused=True))
        assert (score.outcome, score.score) == ("refused", 0.0)


def test_the_expected_answer_of_every_shipped_question_is_correct() -> None:
    questions = [question for conversation in load([]) for question in conversation.questions]
    assert questions
    wrong = [q.id for q in questions if score_reply(q, reply(q.expected)).outcome != "correct"]
    assert wrong == []


def test_no_doubt_is_no_denial() -> None:
    asked = recall(text="Does she play the harp?", expected="No", expected_entities=())
    assert score_recall(asked, "No doubt she does.").outcome == "wrong"
    assert score_recall(asked, "No, she does not.").outcome == "correct"
    assert score_recall(asked, "No question, she does not play.").outcome == "correct"
