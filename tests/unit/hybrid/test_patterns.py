"""A pattern is searched only in texts that have the letters of a match, and finds what it would find anyway."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_backends.hybrid.rules.pattern import LazyPattern, Sieve

PATTERNS = (
    r"\b(?:actually|in\sfact|no\slonger)\b",
    r"\b[Mm]y\s(?P<value>\w+)\sis",
    r"(?i:instead\sof)\s\w+|^no\b",
    r"\d+\s?(?:kg|km)?",
    r"(?:moved\s)?to\s(?=Vic)",
    r"(?:ab){2,}c?",
    r"(?!not)\w+",
    "é[st]",
)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(
    words=st.lists(
        st.sampled_from("actually IN Fact no longer my MY is Instead of 3 km to Vic abab not ÉS és".split())
    ),
    flags=st.sampled_from([0, re.IGNORECASE]),
)
def test_what_is_found_does_not_depend_on_the_letters_looked_for_first(
    pattern: str, words: list[str], flags: int
) -> None:
    text = " ".join(words)
    expected = [match.span() for match in re.finditer(pattern, text, flags)]
    lazy = LazyPattern(pattern, flags)
    assert [match.span() for match in lazy.finditer(text)] == expected
    assert bool(lazy.search(text)) == bool(expected)
    assert not expected or Sieve([LazyPattern("never"), lazy]).places(text)[-1] == 1


def test_a_sieve_keeps_the_order_of_the_patterns() -> None:
    sieve = Sieve([LazyPattern("boat"), LazyPattern("car"), LazyPattern(r"\d"), LazyPattern("boat|train")])
    assert sieve.places("A boat for 2") == [0, 2, 3]
    assert sieve.places("nothing") == [2]
