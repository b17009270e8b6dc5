"""What a distilled fact's slot and value look like, and when two values are the same."""

from __future__ import annotations

import re
import unicodedata

LONGEST_VALUE = 120
LONGEST_SLOT = 48

_NOT_WORD = re.compile(r"[^\w]+")
_DIGIT = re.compile(r"\d")
_TRIM = " \t\"'“”‘’«»`.,;:!?¡¿()[]*"


def folded(text: str) -> str:
    """Text for comparison: no case, no accents, runs of anything but letters and digits as one space."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return _NOT_WORD.sub(" ", plain).strip()


def clean_value(text: str) -> str:
    """A value as it is kept: one line, no quotes or punctuation around it, at most ``LONGEST_VALUE`` characters."""
    return " ".join(text.split()).strip(_TRIM)[:LONGEST_VALUE].rstrip()


def slot_part(text: str) -> str:
    """A piece of text as a part of a slot's name: ``Favourite colour`` → ``favourite_colour``."""
    return folded(text).replace(" ", "_")[:LONGEST_SLOT].strip("_")


def same_value(one: str, other: str) -> bool:
    """Whether two values are the same but for case, accents and punctuation."""
    return folded(one) == folded(other)


def is_of_a_kind(new: str, old: str) -> bool:
    """Whether ``new`` may stand where ``old`` stood: a number for a number, a name for a name, no phrase."""
    return _kind(new) == _kind(old) and len(new.split()) <= len(old.split()) + 1


def _kind(value: str) -> str:
    if _DIGIT.search(value):
        return "number"
    return "name" if value[:1].isupper() else "word"


def says_no_more(new: str, old: str) -> bool:
    """Whether ``new`` adds nothing to ``old``: the same value, or a part of it in whole words."""
    return f" {folded(new)} " in f" {folded(old)} "
