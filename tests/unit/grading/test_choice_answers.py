"""Natural ways of choosing an option: verbs, words, letters, JSON, and reasoning that ends in an answer."""

from __future__ import annotations

import time

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

CHOSEN = [
    ("I'd pick 3", 3),
    ("I'd pick 3.", 3),
    ("I would pick option 3.", 3),
    ("I pick number 3", 3),
    ("My pick is 3.", 3),
    ("I choose 3", 3),
    ("I'll go with 3.", 3),
    ("I'm going with **3**", 3),
    ("I would select 3 because they said so.", 3),
    ("I'd say 3.", 3),
    ("Let's opt for option 3.", 3),
    ("My choice: 3", 3),
    ("Therefore, 3.", 3),
    ("Therefore the answer must be 3.", 3),
    ("Elijo la 3.", 3),
    ("Me quedo con la 3", 3),
    ("Por lo tanto, la respuesta es la 3.", 3),
    ("Yo escojo la opción 3.", 3),
    ("three", 3),
    ("Three.", 3),
    ("**Three**", 3),
    ("Option three", 3),
    ("Answer: three", 3),
    ("I'd pick three.", 3),
    ("The answer is option three.", 3),
    ("tres", 3),
    ("La respuesta es la tres.", 3),
    ("zero", 0),
    ("D", 3),
    ("(D)", 3),
    ("**D**", 3),
    ("D.", 3),
    ("d", 3),
    ("Answer: D", 3),
    ("Answer: (D)", 3),
    ("The answer is D.", 3),
    ("Option D", 3),
    ("Option J.", 9),
    ("I'd pick D.", 3),
    ("La respuesta es D", 3),
    ("D) 4 years", 3),
    ("It was long, and since she did not stay for five years: **3**", 3),
    ("D. 4 years", 3),
    ("Final answer: B", 1),
    ('{"choice": {"index": 3}}', 3),
    ('{"answer": {"choice": {"index": 3, "text": "4 years"}}}', 3),
    ('{"answer": [3]}', 3),
    ('{"answer": "D"}', 3),
    ('{"answer": "three"}', 3),
    ('{"choice": {"option": "Norway"}}', 1),
    ("I'd pick Norway.", 1),
    ("She likes fjords, so the answer is Norway.", 1),
    ("Final answer: **Norway**", 1),
    ("She spoke of fjords. The best choice is Norway.", 1),
    ("Option 0 is Sweden and option 1 is Norway. She has been there for long.\n\nFinal answer: 3", 3),
    ("Let me see.\n1. Norway: never mentioned.\n2. 7 May 2023: a date.\nSo the answer is 3.", 3),
    ("Option 1 seems plausible. Option 3 fits better. I'd pick 3.", 3),
    ("Step 1: read it.\nStep 2: compare.\nAnswer: 3", 3),
    ("At first I thought the answer is 1. Final answer: 3", 3),
    ("Answer: 3\n\nExplanation: option 1 would be Norway, which nobody mentions.", 3),
    ("I considered 0, 1 and 6.\nMy final answer is 3.", 3),
    ("La opción 1 no encaja.\nRespuesta final: 3", 3),
    ("Reasoning about it, $\\boxed{3}$", 3),
    ("Choice: 3 ✅", 3),
    ("👉 3", 3),
    ("3️⃣", 3),
    ("I considered 1 but 3 fits better.", 3),
    ("1? No, 3.", 3),
    ("Not 1. 3.", 3),
    ("Creo que 3", 3),
    ("It cannot be 0, it cannot be 1, so it must be 3.", 3),
    ("Not 0, not 1, and not 6: it has to be 3.", 3),
    ("Ni la 0 ni la 1: es la 3.", 3),
    ("0: not warm enough. 1: not far enough. That leaves 3.", 3),
    ("0 and 1 – too cold, no beach\n6 – not yet\n3 – she said so\n\n=> 3", 3),
    ("Option 1 – Norway. Options 0 and 2 would not fit, and option 6 bores her.", 1),
    ("3: she doesn't like the cold.", 3),
    ("Unless she has changed her mind, it's 3.", 3),
    ("While option 0 isn't bad, option 3 is better.", 3),
    ("**Answer: 3**\n\nOptions 0 and 2 ignore what she said.", 3),
    ("Answer: 1\n\nWait, that was before the move, so the answer is 3.", 3),
    ("I first had 1 in mind, but on reflection it's 3.", 3),
    ("Antwort: D. Das hat sie gesagt.", 3),
    ("0 ❌ too cold\n1 ❌ no\n3 ✅ she said so", 3),
    ("Between 1 and 3 I lean towards 3.", 3),
    ("Final choice: Norway (a trip to Sweden or Denmark wouldn't suit her).", 1),
    ("I'd choose Norway rather than Sweden.", 1),
    ("My recommendation would be Norway. If money were an issue, Denmark could be an alternative.", 1),
    ("Descarto Suecia y Denmark. Tampoco le gusta Sweden. Me quedo con Norway.", 1),
    ("“Not answerable”: nobody mentions it.", 7),
]

UNDECIDED = [
    "3 (counting from 1)",
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
    "Not 0 and not 3. It could be 1 or 2.",
    "Option 0 is ruled out, and so is option 1. Beyond that, the notes do not say.",
    "If she likes fjords, Norway; if she likes cities, Denmark.",
    "It isn't beach, mountains, forest.",
    "It's not the case that 2 is right.",
    "Option 1? I don't think so.",
    '{"answer": "Option 3 is wrong"}',
]


def test_a_choice_in_words_is_read() -> None:
    read = [(reply, index, parse_choice(reply, CHOICES).index) for reply, index in CHOSEN]
    assert [row for row in read if row[1] != row[2]] == []


def test_an_undecided_reply_is_unparsed() -> None:
    read = [(reply, parse_choice(reply, CHOICES)) for reply in UNDECIDED]
    assert [row for row in read if (row[1].index, row[1].decided_by) != (None, None)] == []


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


def test_what_an_option_denies_is_no_denial() -> None:
    plans = ("Yearly, no pool", "Monthly, no pool", "Monthly, with pool")
    assert parse_choice("Monthly, no pool! (A yearly one would tie him down.)", plans).index == 1
    assert (
        parse_choice("Not the yearly one, so monthly, with pool. Yearly, no pool makes no sense.", plans).index == 2
    )
