"""Evaluate replies: scores, JSON in a model's reply, and text similarity."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable
from functools import cache
from typing import Any

import Stemmer


class Ungraded(Exception):
    """Raised if a test cannot be graded; ``str(error)`` is the reason in one sentence.

    A dataset lets it propagate, or raises it itself. The scheduler then ends the test without a score.
    """


Evaluation = tuple[float, float, list[str]]
"""Score, maximum score, reasons."""

EvaluationFn = Callable[[list[str], list[str], Any], Evaluation]
"""Evaluates the questions, responses and expected answers of one test."""


def normalised_evaluation(score: float, maximum: float, reasons: list[str]) -> Evaluation:
    """Scale the score to 0..1."""
    if maximum <= 0:
        raise Ungraded("The dataset gives no points for this test: its maximum is 0")
    return score / maximum, 1, list(reasons)


_FENCE = re.compile(r"```[A-Za-z0-9_-]*\s*\n?(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[\[{]")


def sanitize_and_parse_json(text: str) -> Any:
    """Extract the JSON value from a text; raises ``ValueError`` if there is none.

    Tries the whole text, then each fenced block, then the first list or object that parses.
    """
    for candidate in (text, *_FENCE.findall(text)):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    decoder = json.JSONDecoder()
    for opening in _OPENING.finditer(text):
        try:
            value, _ = decoder.raw_decode(text, opening.start())
        except ValueError:
            continue
        return value
    raise ValueError("There is no JSON in the reply")


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
    """Return the length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for column, other in enumerate(second, start=1):
            above = row[column]
            row[column] = diagonal + 1 if word == other else max(above, row[column - 1])
            diagonal = above
    return row[-1]
