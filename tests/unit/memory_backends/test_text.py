"""Folding and splitting text."""

from __future__ import annotations

import pytest

from memory_backends.text import folded, folded_words, numbers_in, sentences_of


def test_folding_drops_case_accents_and_styles_and_keeps_punctuation() -> None:
    assert folded("Señora  NÚÑEZ's 𝕊𝕒𝕗𝕖!") == "senora  nunez's safe!"
    assert folded_words("Señora  NÚÑEZ's 𝕊𝕒𝕗𝕖!") == "senora nunez s safe"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Dr. Smith came (e.g. by bus). He left.", ["Dr. Smith came (e.g. by bus).", "He left."]),
        ("It is No. 5. No. I won't.", ["It is No. 5.", "No.", "I won't."]),
        ('He said "yes." Then *no.* So…', ['He said "yes."', "Then *no.*", "So…"]),
        ("one\n\ntwo 😊\n😊", ["one", "two 😊"]),
        (" \n ", []),
    ],
)
def test_a_sentence_ends_at_its_mark_or_at_a_line_break(text: str, sentences: list[str]) -> None:
    assert sentences_of(text) == sentences


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("tres mil ciento cincuenta y 3.150", {"3150"}),
        ("1.5 million in 2023", {"1500000", "2023"}),
        ("dos millones, or 20 thousand", {"2000000", "20000"}),
        ("once upon a time", set()),
        ("veintitrés de 400", {"23", "400"}),
    ],
)
def test_numbers_are_read_in_words_and_digits(text, numbers):
    assert numbers_in(text) == numbers
