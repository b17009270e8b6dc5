"""Parsing the index of an option from a reply."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memreplay.grading.choice import parse_choice

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

READ_RIGHTLY = [
    ("3", 3),
    ("0", 0),
    ("9", 9),
    (" 3\n", 3),
    ("**3**", 3),
    ("`3`", 3),
    ("'3'", 3),
    ("“3”", 3),
    ("(3)", 3),
    ("[3]", 3),
    ("{3}", 3),
    ("#3", 3),
    ("3.", 3),
    ("3,", 3),
    ("3)", 3),
    ("3!", 3),
    ("3:", 3),
    ("$\\boxed{3}$", 3),
    ('{"answer": 3}', 3),
    ('{"answer": "3"}', 3),
    ('{"choice_index": 3, "confidence": 0.9}', 3),
    ('{"index": 1, "answer": "Norway"}', 1),
    ('```json\n{"answer": 3}\n```', 3),
    ("3. some text", 3),
    ("3: some text", 3),
    ("3. 4 years", 3),
    ("**3.** 4 years", 3),
    ("2. 7 May 2023", 2),
    ("9. No", 9),
    ("9, No", 9),
    ("1) Norway", 1),
    ("Answer Index: 3", 3),
    ("Answer Index: **3**", 3),
    ("**Answer Index:** 3", 3),
    ("Answer: 3", 3),
    ("Answer:3", 3),
    ("Answer - 3", 3),
    ("Answer: [3]", 3),
    ("Answer: 3 (4 years)", 3),
    ("The answer is 3", 3),
    ("The answer is 3.", 3),
    ("The answer is option 3.", 3),
    ("The correct answer index is 3", 3),
    ("Final answer: 3", 3),
    ("Option 3", 3),
    ("option #3", 3),
    ("**Option 3:** 4 years", 3),
    ("I would choose option 3 because they said so.", 3),
    ("La respuesta es 3", 3),
    ("Opción 3", 3),
    ("3\n\nBecause they said so.", 3),
    ("She lived there for long.\n\nAnswer: 3", 3),
    ("<think>5 or 6, or option 7?</think>3", 3),
    ("<thinking>\n5\n</thinking>\n\nAnswer: 3", 3),
    ("so it must be 5\n</think>\n3", 3),
    ("Norway", 1),
    ("norway", 1),
    ("**Norway**.", 1),
    ('"Norway"', 1),
    ("Answer: Norway", 1),
    ("The correct answer is **Norway**.", 1),
    ("Norway (1)", 1),
    ("Answer: 7 May 2023", 2),
    ("7 May 2023", 2),
    ("Answer: 4 years", 3),
    ("2022", 8),
    ("yes", 4),
    ("Not answerable.", 7),
    ("beach,  mountains,\nforest", 5),
]

NOT_READ = [
    "",
    "   \n",
    "**",
    "10",
    "Answer: 10",
    "42",
    "99999999999999999999999",
    "-3",
    "−3",
    "Answer: -3",
    "3.5",
    "3,5",
    "03",
    "3%",
    "3/10",
    "3:30",
    "1 of 10",
    "3 or 4",
    "3 and 4",
    "3, 4",
    "3-4",
    "3 o 4",
    "Option 3 or option 4",
    "Options 3 and 4",
    "Option 3. Option 4.",
    "between 3 and 5",
    "Answer: 3\nAnswer: 4",
    "3\n4",
    "3. Norway",
    "1. Sweden",
    "Option 3: Norway",
    "Answer: 3 (Norway)",
    "Norway\n3",
    "7. 7 May 2023",
    '{"index": 3, "answer": "Norway"}',
    '{"answer": true}',
    '{"answer": null}',
    '{"answer": 3.5}',
    '{"confidence": 3}',
    "Sweden or Norway",
    "Finland",
    "not option 3",
    "Option 3 is incorrect.",
    "The answer is not 3",
    "The answer is 8 May 2023",
    "8 May 2023",
    "3. May 2024",
    "Answer: 5 years",
    "Answer: 3 cats",
    "I don't know.",
    "<think>the answer is 3",
    "<think>3</think>",
    "３",
]


def test_a_reply_that_names_one_option_is_read() -> None:
    read = [(reply, index, parse_choice(reply, CHOICES).index) for reply, index in READ_RIGHTLY]
    assert [row for row in read if row[1] != row[2]] == []


def test_a_reply_that_does_not_is_unparsed_with_a_reason() -> None:
    read = [(reply, parse_choice(reply, CHOICES)) for reply in NOT_READ]
    assert [row for row in read if row[1].index is not None or not row[1].reason] == []


def test_a_date_is_not_an_index_even_if_no_option_is_that_date() -> None:
    assert parse_choice("Answer: 7 May 2023", ("a", "b", "c", "d", "e", "f", "g", "h")).index is None


def test_a_bare_number_is_an_index_even_if_the_options_are_numbers() -> None:
    assert parse_choice("1", ("2", "3", "1")).index == 1
    assert parse_choice("Answer: 1", ("2", "3", "1")).index == 1


def test_two_options_with_the_same_text_are_ambiguous() -> None:
    assert parse_choice("Norway", ("Norway", "norway.")).index is None


def test_the_number_of_options_decides_what_is_in_range() -> None:
    assert parse_choice("3", ("a", "b", "c")).index is None
    assert parse_choice("11", [f"option {letter}" for letter in "abcdefghijkl"]).index == 11


@given(reply=st.text(max_size=200), choices=st.lists(st.text(max_size=20), max_size=12))
def test_it_never_raises_and_is_never_out_of_range(reply: str, choices: list[str]) -> None:
    index = parse_choice(reply, choices).index
    assert index is None or 0 <= index < len(choices)


@given(
    reply=st.from_regex(
        r"(?:Answer|Option|[0-9]{1,3}|[ .,:*()\n-]|or|not|Norway|\{|\}|\"answer\"){1,8}", fullmatch=True
    )
)
def test_it_never_raises_on_what_resembles_an_answer(reply: str) -> None:
    index = parse_choice(reply, CHOICES).index
    assert index is None or 0 <= index < len(CHOICES)


@given(
    index=st.integers(0, 9),
    wrapping=st.lists(
        st.sampled_from(["**", "*", "`", '"', "'", "()", "[]", "{}", "$$", "__", "“”", " "]), max_size=4
    ),
    prefix=st.sampled_from(["", "Answer: ", "The answer is ", "Option ", "Answer Index: "]),
)
def test_markup_around_a_label_is_ignored(index: int, wrapping: list[str], prefix: str) -> None:
    text = str(index)
    for marks in wrapping:
        half = max(len(marks) // 2, 1) if marks in ("()", "[]", "{}", "“”", "$$") else len(marks)
        text = marks[:half] + text + marks[-half:]
    assert parse_choice(prefix + text, CHOICES).index == index


@given(index=st.integers(0, 9))
def test_the_text_of_an_option_names_it(index: int) -> None:
    assert parse_choice(CHOICES[index], CHOICES).index == index
    assert parse_choice(f"{index}. {CHOICES[index]}", CHOICES).index == index
