"""Patterns of the rules: compiling them in parts changes nothing of what they find."""

from __future__ import annotations

import re

import pytest

from memory_backends.hybrid.rules.pattern import SPECIFIC, LazyPattern
from memory_backends.hybrid.rules.statements import RULES

PATTERN = rf"\b(?:instead\sof|not)\s(?:the\s)?(?P<value>{SPECIFIC}|\w+)"
TEXTS = (
    "We meet at nine.",
    "Take tea instead of coffee.",
    "Ask Ana, not Bea Ruiz.",
    "It is on 4 May, not the 3rd of May, instead of Monday.",
    "instead of twelve people, not €40",
    "NOT Monday",
    "",
)


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[::-1]], ids=["plain texts first", "figures first"])
@pytest.mark.parametrize("flags", [0, re.IGNORECASE], ids=["case matters", "any case"])
def test_a_pattern_finds_what_its_regular_expression_finds_whatever_was_searched_before(
    texts: tuple[str, ...], flags: int
) -> None:
    lazy, whole = LazyPattern(PATTERN, flags), re.compile(PATTERN, flags)
    found = [[match.groupdict() for match in lazy.finditer(text)] for text in texts]
    assert found == [[match.groupdict() for match in whole.finditer(text)] for text in texts]
    assert any(found)


def test_a_pattern_without_a_value_is_searched_as_it_stands() -> None:
    pattern = LazyPattern(r"\b(?:now|ahora)\b")
    assert pattern.search("It is on now.")
    assert pattern.match("ahora sí")
    assert not pattern.match("It is on now.")


def test_what_a_pattern_needs_is_a_part_of_all_that_it_finds() -> None:
    """Otherwise a text would not be searched that holds a match."""
    needing = [pattern for rule in RULES for pattern in rule.patterns if pattern._needs is not None]
    texts = ("Short is plenty for me.", "If you write code, add types.", "Cuando me escribas, sé breve.", *TEXTS)
    assert len(needing) == 3
    for pattern in needing:
        found = [re.search(pattern._text, text) for text in texts]
        assert [bool(match) for match in found] == [bool(pattern.search(text)) for text in texts]
        assert any(found)
