"""A judge's checklist, and what is done with a broken one."""

from __future__ import annotations

import json

import pytest

from memreplay.goodai.evaluation import rouge_l, standardise
from memreplay.goodai.interface import Ungraded, sanitize_and_parse_json
from memreplay.goodai.language_model import LLMReply
from tests.unit.goodai.driving import Lines, judge


def verdict(*checklists):
    return json.dumps([{"question_nr": n, "checklist": list(c)} for n, c in enumerate(checklists, start=1)])


def judged(reply, questions=3):
    dataset = Lines()
    dataset.use_language_model(judge(reply))
    many = ["x"] * questions
    return dataset.evaluate_correct_gpt(many, many, many)


def test_an_answer_is_right_that_refers_to_the_expected_one_and_has_its_number():
    score, maximum, reasons = judged(verdict(("yes", "no", "no"), ("Yes", "yes", "no"), ("no", "yes", "yes")))

    assert (score, maximum, len(reasons)) == (1, 3, 3)


_NO_ANSWERS = "of the judge's reply does not have three answers, each yes or no"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I would rather not.", "is not JSON"),
        ("", "is not JSON"),
        (verdict(("yes", "no", "no")), "has 1 checklist for 3 questions"),
        (verdict(("yes", "no"), ("yes", "no"), ("yes", "no")), f"Checklist 1 {_NO_ANSWERS}"),
        (verdict(("yes", "no", "no"), ("maybe", "no", "no"), ("yes", "no", "no")), f"Checklist 2 {_NO_ANSWERS}"),
        ("[1, 2, 3]", f"Checklist 1 {_NO_ANSWERS}"),
        ('[{"verdict": "yes"}, {}, {}]', f"Checklist 1 {_NO_ANSWERS}"),
        ('{"checklist": 3}', "has 1 checklist for 3 questions"),
        ("3", "has 1 checklist for 3 questions"),
        ("null", "has 1 checklist for 3 questions"),
    ],
)
def test_a_broken_reply_is_ungraded_and_not_zero_and_a_sentence_says_why(reply, why):
    with pytest.raises(Ungraded, match=why):
        judged(reply)


def test_a_judge_that_fails_or_is_missing_is_ungraded():
    dataset = Lines()
    with pytest.raises(Ungraded):
        dataset.evaluate_correct_gpt(["x"], ["x"], ["x"])
    dataset.use_language_model(lambda request: LLMReply(None, error="quota used up"))
    with pytest.raises(Ungraded, match="quota used up"):
        dataset.evaluate_correct_gpt(["x"], ["x"], ["x"])


def test_text_of_a_user_reaches_the_judge_as_it_is():
    seen = []

    def ask(request):
        seen.append(request.context[-1]["content"])
        return LLMReply(verdict(("yes", "no", "no")))

    dataset = Lines()
    dataset.use_language_model(ask)
    dataset.evaluate_correct_gpt(["{0} %s {name}"], ["[bold]é[/]"], ["\\u0041"])

    (entry,) = json.loads(seen[0])
    assert (entry["question"], entry["answer_given"], entry["expected_answer"]) == (
        "{0} %s {name}",
        "[bold]é[/]",
        "\\u0041",
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2]", [1, 2]),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here you are: {"a": [1]} Bye!', {"a": [1]}),
        ("As in [ref], the list is [3].", [3]),
    ],
)
def test_json_is_found_in_a_reply(text, value):
    assert sanitize_and_parse_json(text) == value


def test_a_reply_without_json_is_a_value_error():
    with pytest.raises(ValueError, match="no JSON"):
        sanitize_and_parse_json("No [list and no {object.")


def test_rouge_l_is_of_stemmed_words_in_their_order():
    assert rouge_l("Stick to your diets.", "stick to YOUR diet") == 1.0
    assert rouge_l("one two three four", "one three") == pytest.approx(2 / 3)
    assert rouge_l("anything", "") == 0.0


def test_punctuation_and_case_are_folded():
    assert standardise("It's here - Now!") == "its here  now"
