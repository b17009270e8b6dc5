"""How alike two texts are."""

from __future__ import annotations

import re
import string
from functools import cache

import Stemmer

_WORD = re.compile(r"[a-z0-9]+")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SHORTEST_STEMMED = 4


def standardise(text: str) -> str:
    """Lower case, without ASCII punctuation."""
    return text.lower().translate(_WITHOUT_PUNCTUATION)


def rouge_l(reference: str, candidate: str) -> float:
    """ROUGE-L: the F-measure, 0..1, of the longest common subsequence of the stemmed words."""
    expected, given = _stems(reference), _stems(candidate)
    if not expected or not given:
        return 0.0
    common = _common_subsequence(expected, given)
    return 2 * common / (len(expected) + len(given))


@cache
def _porter() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("porter")


def _stems(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return [str(_porter().stemWord(word)) if len(word) >= _SHORTEST_STEMMED else word for word in words]


def _common_subsequence(first: list[str], second: list[str]) -> int:
    """Its length."""
    row = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for column, other in enumerate(second, start=1):
            above = row[column]
            row[column] = diagonal + 1 if word == other else max(above, row[column - 1])
            diagonal = above
    return row[-1]
