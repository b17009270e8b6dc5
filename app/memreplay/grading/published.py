"""The published metrics of LoCoMo, so that a figure can stand beside a paper's.

LoCoMo: ``task_eval/evaluation.py`` of snap-research/locomo.
"""

from __future__ import annotations

import re
import string
from collections import Counter

from memreplay.grading.porter import stem
from memreplay.grading.replies import without_reasoning

_LEFT_OUT = re.compile(r"\b(?:a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ADVERSARIAL_REPLIES = ("no information available", "not mentioned")


def locomo_f1(category: int, expected: str, reply: str) -> float:
    """LoCoMo's score of a reply, 0..1, by the number of the question's category.

    Stemmed token F1. In category 1 (several answers) the mean over the comma-separated parts of the expected
    answer, each against the best part of the reply; in category 3 only what stands before the first semicolon is
    expected. In category 5 (adversarial) 1 for a reply that says "no information available" or "not mentioned".
    """
    answer = without_reasoning(reply)
    if category == 5:
        return float(any(phrase in answer.lower() for phrase in _ADVERSARIAL_REPLIES))
    if category == 3:
        expected = expected.split(";")[0].strip()
    if category != 1:
        return _stemmed_f1(expected, answer)
    parts = expected.split(",")
    return sum(max(_stemmed_f1(part, given) for given in answer.split(",")) for part in parts) / len(parts)


def _stemmed_f1(expected: str, answer: str) -> float:
    wanted, given = _stems(expected), _stems(answer)
    shared = (wanted & given).total()
    return 2 * shared / (wanted.total() + given.total()) if shared else 0.0


def _stems(text: str) -> Counter[str]:
    """Stems without articles, "and" and punctuation. A comma joins what it separates, as in the published code."""
    bare = _LEFT_OUT.sub(" ", text.lower().translate(_NO_PUNCTUATION))
    return Counter(map(stem, bare.split()))
