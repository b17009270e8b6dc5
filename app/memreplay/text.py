"""Text as it is compared, searched and printed: folding, whole-word matching, prices."""

from __future__ import annotations

import re
import unicodedata
from math import floor, log10

_INSIDE_NUMBER = re.compile(r"(?<=\d)[.,](?=\d)")
_BETWEEN_WORDS = re.compile(r"[^\w\ue000]|_")
_POINT = "\ue000"


def normalised(text: str) -> str:
    """The text as words separated by single blanks, without case, accents and punctuation.

    A point or comma between digits stays (as a point): "1,340" is one word, and "340" does not stand in it.
    """
    plain = unicodedata.normalize("NFKD", text.replace(_POINT, " "))
    # Folding case can compose anew, and styled capitals (𝕊) have no case before they are decomposed.
    decomposed = unicodedata.normalize("NFKD", plain.casefold())
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    numbers_kept = _INSIDE_NUMBER.sub(_POINT, letters)
    return " ".join(_BETWEEN_WORDS.sub(" ", numbers_kept).split()).replace(_POINT, ".")


def stands_in(phrase: str, text: str) -> bool:
    """Whether the phrase stands in the text as whole words, both normalised.

    A phrase of punctuation alone ("++") is looked for as it is; a blank one stands nowhere.
    """
    words = normalised(phrase)
    if words:
        return f" {words} " in f" {normalised(text)} "
    return bool(phrase.strip()) and phrase.strip() in text


def folded(text: str) -> str:
    """Text without case, accents and differences of form; punctuation and blanks stay as they are."""
    if text.isascii():
        return text.casefold()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))


UNKNOWN = "–"

_FIGURES = 3
_MOST_DECIMALS = 12


def dollars(amount: float | None) -> str:
    """US dollars: cents from one dollar on, three figures below it, so that a tiny price is not shown as none.

    None, a price that nobody knows, is a dash.
    """
    if amount is None:
        return UNKNOWN
    if amount == 0:
        return "$0"
    if abs(amount) >= 1:
        return f"${amount:,.2f}"
    decimals = min(_FIGURES - 1 - floor(log10(abs(amount))), _MOST_DECIMALS)
    return f"${amount:.{decimals}f}"
