"""Whole-word matching of normalised text, and text on one short line."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence

from memory_backends.text import folded

_INSIDE_NUMBER = re.compile(r"(?<=\d)[.,](?=\d)")
_BETWEEN_WORDS = re.compile(r"[^\w\ue000]|_")
_POINT = "\ue000"


def normalised(text: str) -> str:
    """Return the text as words separated by single spaces, without case, accents and punctuation.

    A point or comma between digits stays (as a point): "1,340" is one word, and does not contain the word "340".
    """
    numbers_kept = _INSIDE_NUMBER.sub(_POINT, folded(text.replace(_POINT, " ")))
    return " ".join(_BETWEEN_WORDS.sub(" ", numbers_kept).split()).replace(_POINT, ".")


def occurs_in(phrase: str, text: str) -> bool:
    """Return whether the phrase occurs in the text as whole words, both normalised.

    A phrase of punctuation alone ("++") is searched for verbatim; a blank one is never found.
    """
    words = normalised(phrase)
    if words:
        return f" {words} " in f" {normalised(text)} "
    return bool(phrase.strip()) and phrase.strip() in text


def with_semicolons(texts: Sequence[str]) -> str:
    """Return texts with a semicolon between each two, in place of the full stop that the first one ends in."""
    return "; ".join([*(text.rstrip().removesuffix(".") for text in texts[:-1]), *texts[-1:]])


def shortened(text: str, most: int = 60) -> str:
    """Return the text on one line of at most so many characters; an ellipsis ends what was cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def shortened_around(text: str, words: Collection[str], most: int) -> str:
    """Return the text on one line of at most so many characters, from where most of these folded words stand.

    An ellipsis stands for what was cut on either side.
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    found = [word.start() for word in re.finditer(r"\w+", line) if folded(word[0]) in words]
    before = most // 4
    best = max(
        found, key=lambda at: bisect_right(found, at + most - 2 * before) - bisect_left(found, at), default=0
    )
    start = min(max(best - before, 0), len(line) - most + 1)
    return shortened(f"…{line[start:]}" if start else line, most)
