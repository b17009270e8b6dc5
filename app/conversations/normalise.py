"""Folding of text for comparison: case, accents, punctuation and runs of white space.

Scoring and the derivation of evidence compare texts in this form only, so that both mean the same by "stands in".
"""

from __future__ import annotations

import re
import unicodedata

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
