"""Normalised text and whole-word matching."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memreplay.numbers import counted
from memreplay.text import normalised, occurs_in, shortened_around, with_semicolons
from tests.tables import failing


def test_case_accents_punctuation_and_white_space_are_folded() -> None:
    def check(text: str, expected: str) -> None:
        assert normalised(text) == expected

    assert (
        failing(
            [
                ("  Señora  NÚÑEZ's\n\tquay! ", "senora nunez s quay"),
                ("Straße", "strasse"),
                ("𝕊𝕒𝕗𝕖 Ⅳ ½", "safe iv 1 2"),
                ("**7 May, 2023.**", "7 may 2023"),
                ("snake_case-name", "snake case name"),
                ("1,340 or 15.3", "1.340 or 15.3"),
                ("`x` → “y”", "x y"),
                ("...", ""),
            ],
            check,
        )
        == []
    )


def test_a_phrase_occurs_in_a_text_as_whole_words() -> None:
    def check(phrase: str, text: str, stands: bool) -> None:
        assert occurs_in(phrase, text) is stands

    assert (
        failing(
            [
                ("VerneMQ", "It was vernemq, since March.", True),
                ("7 May 2023", "On 7 May, 2023 it rained", True),
                ("cat", "a catalogue", False),
                ("340", "1,340 a year", False),
                ("1,340", "it is 1,340.", True),
                ("15", "PostgreSQL 15.3", False),
                ("5432", "localhost:5432", True),
                ("Gràcia", "in Gracia", True),
                ("++", "C++ it is", True),
                ("++", "C it is", False),
                ("  ", "anything  at all", False),
                ("", "anything", False),
            ],
            check,
        )
        == []
    )


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


@given(st.text(alphabet="abcñé12.,- ", min_size=1).filter(lambda text: normalised(text) != ""))
def test_every_text_with_words_occurs_in_itself_whatever_its_case(text: str) -> None:
    assert occurs_in(text, f"so: {text.upper()} !")


def test_a_count_stands_with_the_noun_in_its_form() -> None:
    words = [counted(count, noun) for noun in ("answer", "try", "key") for count in (0, 1, 2000)]
    assert words == [
        *("0 answers", "1 answer", "2,000 answers"),
        *("0 tries", "1 try", "2,000 tries"),
        *("0 keys", "1 key", "2,000 keys"),
    ]


def test_sentences_in_a_row_have_no_full_stop_before_a_semicolon() -> None:
    assert with_semicolons(["Ann moved.", "She works"]) == "Ann moved; She works"
    assert with_semicolons(["Ann moved."]) == "Ann moved." and with_semicolons([]) == ""


@given(
    st.text(), st.text(), st.lists(st.sampled_from(["quay", "harbour", "tide"]), max_size=3), st.integers(20, 80)
)
def test_a_text_is_cut_around_the_words_that_are_wanted(
    before: str, after: str, words: list[str], most: int
) -> None:
    cut = shortened_around(f"{before} {' '.join(words)} {after}", words, most)
    assert len(cut) <= most
    assert all(word in cut for word in words[:1])
