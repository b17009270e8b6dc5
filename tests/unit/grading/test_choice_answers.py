"""Natural ways of choosing an option: verbs, words, letters, JSON, and reasoning that ends in an answer."""

from __future__ import annotations

import time
from typing import Literal

import pytest

from memreplay.grading.choice import parse_choice, score_choice
from tests.unit.scoring.samples import choice

CHOICES = (
    "Sweden",
    "Norway",
    "7 May 2023",
    "4 years",
    "Yes",
    "beach, mountains, forest",
    "Denmark",
    "Not answerable",
    "2022",
    "No",
)

CHOSEN: list[tuple[str, int, Literal["label", "text"]]] = [
    ("I'd pick 3", 3, "label"),
    ("I'd pick 3.", 3, "label"),
    ("I would pick option 3.", 3, "label"),
    ("I pick number 3", 3, "label"),
    ("My pick is 3.", 3, "label"),
    ("I choose 3", 3, "label"),
    ("I'll go with 3.", 3, "label"),
    ("I'm going with **3**", 3, "label"),
    ("I would select 3 because they said so.", 3, "label"),
    ("I'd say 3.", 3, "label"),
    ("Let's opt for option 3.", 3, "label"),
    ("My choice: 3", 3, "label"),
    ("Therefore, 3.", 3, "label"),
    ("Therefore the answer must be 3.", 3, "label"),
    ("Elijo la 3.", 3, "label"),
    ("Me quedo con la 3", 3, "label"),
    ("Por lo tanto, la respuesta es la 3.", 3, "label"),
    ("Yo escojo la opción 3.", 3, "label"),
    ("three", 3, "label"),
    ("Three.", 3, "label"),
    ("**Three**", 3, "label"),
    ("Option three", 3, "label"),
    ("Answer: three", 3, "label"),
    ("I'd pick three.", 3, "label"),
    ("The answer is option three.", 3, "label"),
    ("tres", 3, "label"),
    ("La respuesta es la tres.", 3, "label"),
    ("zero", 0, "label"),
    ("D", 3, "label"),
    ("(D)", 3, "label"),
    ("**D**", 3, "label"),
    ("D.", 3, "label"),
    ("d", 3, "label"),
    ("Answer: D", 3, "label"),
    ("Answer: (D)", 3, "label"),
    ("The answer is D.", 3, "label"),
    ("Option D", 3, "label"),
    ("Option J.", 9, "label"),
    ("I'd pick D.", 3, "label"),
    ("La respuesta es D", 3, "label"),
    ("D) 4 years", 3, "label"),
    ("D. 4 years", 3, "label"),
    ("Final answer: B", 1, "label"),
    ('{"choice": {"index": 3}}', 3, "label"),
    ('{"answer": {"choice": {"index": 3, "text": "4 years"}}}', 3, "label"),
    ('{"answer": [3]}', 3, "label"),
    ('{"answer": "D"}', 3, "label"),
    ('{"answer": "three"}', 3, "label"),
    ('{"choice": {"option": "Norway"}}', 1, "text"),
    ("I'd pick Norway.", 1, "text"),
    ("She likes fjords, so the answer is Norway.", 1, "text"),
    ("Final answer: **Norway**", 1, "text"),
    ("She spoke of fjords. The best choice is Norway.", 1, "text"),
    ("Option 0 is Sweden and option 1 is Norway. She has been there for long.\n\nFinal answer: 3", 3, "label"),
    ("Let me see.\n1. Norway: never mentioned.\n2. 7 May 2023: a date.\nSo the answer is 3.", 3, "label"),
    ("Option 1 seems plausible. Option 3 fits better. I'd pick 3.", 3, "label"),
    ("Step 1: read it.\nStep 2: compare.\nAnswer: 3", 3, "label"),
    ("At first I thought the answer is 1. Final answer: 3", 3, "label"),
    ("Answer: 3\n\nExplanation: option 1 would be Norway, which nobody mentions.", 3, "label"),
    ("I considered 0, 1 and 6.\nMy final answer is 3.", 3, "label"),
    ("La opción 1 no encaja.\nRespuesta final: 3", 3, "label"),
    ("Reasoning about it, $\\boxed{3}$", 3, "label"),
]

UNDECIDED = [
    "I'd pick 3 or 4.",
    "I'd pick 3 or maybe 4",
    "I'd pick 3. I'd pick 4.",
    "three or four",
    "Option three or option four",
    "C or D",
    "Answer: C or D",
    "Answer: C\nAnswer: D",
    "I wouldn't pick 3",
    "I would not choose D.",
    "D. Norway",
    "Option D: Norway",
    "three years",
    "Three people came.",
    "A dog.",
    "I think so.",
    "I don't know which to pick.",
    "Answer: K",
    "Plan B worked for her.",
    "She takes vitamin D every day.",
    "La opción a considerar es otra.",
    "I'd say 3 years.",
    "I'd pick 3 apples.",
    '{"answer": [3, 4]}',
    '{"choice": {"index": 3}, "answer": 4}',
    '{"choice": {"reason": 3}}',
    "Final answer: 3\nFinal answer: 4",
    "Answer: 3\n4",
    "The answer is 3. No, the answer is 4.",
    "The answer is not Norway.",
    "I'd pick 12.",
]


@pytest.mark.parametrize(("reply", "index", "decided_by"), CHOSEN)
def test_a_choice_in_words_is_read(reply: str, index: int, decided_by: str) -> None:
    parsed = parse_choice(reply, CHOICES)
    assert (parsed.index, parsed.decided_by) == (index, decided_by)


@pytest.mark.parametrize("reply", UNDECIDED)
def test_an_undecided_reply_is_unparsed(reply: str) -> None:
    parsed = parse_choice(reply, CHOICES)
    assert (parsed.index, parsed.decided_by) == (None, None)


def test_an_option_that_is_a_number_word_or_a_letter_is_named_by_its_text() -> None:
    assert parse_choice("two", ("one", "two", "three")).index == 1
    assert parse_choice("B", ("C", "B", "A")).index == 1


def test_the_score_says_what_decided() -> None:
    assert score_choice(choice(), "I'd pick 3").decided_by == "label"
    assert score_choice(choice(), "quince").decided_by == "text"
    assert score_choice(choice(), "no idea").decided_by is None


@pytest.mark.parametrize(
    "piece",
    ["option ", "answer is ", "answer: ", "3 or ", "3\n", " ", "*", "'", "(", "A. ", "I'd pick ", "x (", "<think>"],
)
def test_a_long_reply_is_read_in_under_a_second(piece: str) -> None:
    started = time.process_time()
    parse_choice("3" + piece * (100_000 // len(piece)) + "x", CHOICES)
    assert time.process_time() - started < 1
