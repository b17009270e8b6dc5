"""Whether a text contains an answer, whatever its spelling."""

from __future__ import annotations

import pytest

from memreplay.grading.match import contains

FOUND = [
    ("dying", "He dies."),
    ("tie", "She was tying a knot."),
    ("sky", "under grey skies"),
    ("grey", "The sky is gray."),
    ("colours", "My favorite color"),
    ("organisation", "We organize it."),
    ("centre", "in the center of town"),
    ("canción", "dos canciones"),
    ("trabajado", "Ahora trabaja."),
    ("O'Brien", "obrien"),
    ("May", "on 2023-05-07"),
    ("2023", "on 7 May 2023"),
    ("four hundred and fifty", "It costs £450."),
    ("a, b and c", "It was c, b and a."),
    ("x", "The letter X."),
    ("£900 per month", "It costs £900 a month."),
    ("nearly two hours", "It took about 120 minutes."),
]
NOT_FOUND = [
    ("Girona", "I moved to Gijón."),
    ("tie", "a tin"),
    ("May", "2023-06"),
    ("Canada", "We can go."),
    ("Colorado", "The color was red."),
    ("Granada", "una gran cena"),
    ("once a week", "three times a week"),
    ("twice a week", "twice a month"),
]


def test_an_answer_is_found_in_another_form_that_shares_few_letters_with_it() -> None:
    assert [row for row in FOUND if not contains(*row)] == []


def test_an_answer_is_not_found_where_only_its_beginning_is() -> None:
    assert [row for row in NOT_FOUND if contains(*row)] == []


@pytest.mark.parametrize(
    ("answer", "text", "held"),
    [
        ("blue kayak", "Ann: a kayak\nBen: blue", False),
        ("kayaks, tents and maps", "Ann: maps and a kayak\nBen: two tents", True),
        ("a kayak\na tent", "Ann: a kayak\na tent", True),
        ("3,125", "Ann: 3 of them\nBen: 125", False),
    ],
)
def test_an_answer_stands_in_one_line_and_the_items_of_an_enumeration_in_any(
    answer: str, text: str, held: bool
) -> None:
    assert contains(answer, text) is held


@pytest.mark.parametrize(
    ("answer", "text", "held"),
    [
        ("0412", "The code is 412.", False),
        ("0412", "The code is 0412.", True),
        ("+34 600 123 456", "It is 34600123456.", True),
        ("£0.50", "It cost 0.5 pounds.", True),
    ],
)
def test_a_code_is_no_number(answer: str, text: str, held: bool) -> None:
    assert contains(answer, text) is held
