"""Whole-word matching of normalised text; how counts and prices are printed."""

from __future__ import annotations

import re
from math import floor, log10

from memory_backends.text import folded

_INSIDE_NUMBER = re.compile(r"(?<=\d)[.,](?=\d)")
_BETWEEN_WORDS = re.compile(r"[^\w\ue000]|_")
_POINT = "\ue000"


def normalised(text: str) -> str:
    """The text as words separated by single spaces, without case, accents and punctuation.

    A point or comma between digits stays (as a point): "1,340" is one word, and does not contain the word "340".
    """
    numbers_kept = _INSIDE_NUMBER.sub(_POINT, folded(text.replace(_POINT, " ")))
    return " ".join(_BETWEEN_WORDS.sub(" ", numbers_kept).split()).replace(_POINT, ".")


def occurs_in(phrase: str, text: str) -> bool:
    """Whether the phrase occurs in the text as whole words, both normalised.

    A phrase of punctuation alone ("++") is searched for verbatim; a blank one is never found.
    """
    words = normalised(phrase)
    if words:
        return f" {words} " in f" {normalised(text)} "
    return bool(phrase.strip()) and phrase.strip() in text


def counted(number: int, noun: str) -> str:
    """``1 part``, ``2,000 parts``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


UNKNOWN = "–"

_FIGURES = 3
_MOST_DECIMALS = 12


def dollars(amount: float | None) -> str:
    """US dollars: cents from one dollar up, three significant digits below, so that a tiny price is not shown as 0.

    An unknown price (None) is a dash.
    """
    if amount is None:
        return UNKNOWN
    if amount == 0:
        return "$0"
    if abs(amount) >= 1:
        return f"${amount:,.2f}"
    decimals = min(_FIGURES - 1 - floor(log10(abs(amount))), _MOST_DECIMALS)
    return f"${amount:.{decimals}f}"
