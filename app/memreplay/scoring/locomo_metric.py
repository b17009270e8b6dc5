"""The published metrics of LoCoMo, so that a figure can stand beside a paper's.

LoCoMo: ``task_eval/evaluation.py`` of snap-research/locomo, with the Porter stemmer and the extensions of NLTK.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from memreplay.grading.read import without_reasoning

_IRREGULAR: Final = {
    form: forms.split()[0]
    for forms in (
        "sky skies/die dying/lie lying/tie tying/news/inning innings/outing outings/canning cannings/howe/proceed"
        "/exceed/succeed"
    ).split("/")
    for form in forms.split()
}
_Rule = tuple[str, str]
_STEP_2: Final[Sequence[_Rule]] = tuple(
    (suffix, new)
    for suffix, new in (
        pair.split("/")
        for pair in (
            "ational/ate tional/tion enci/ence anci/ance izer/ize bli/ble alli/al entli/ent eli/e ousli/ous"
            " ization/ize ation/ate ator/ate alism/al iveness/ive fulness/ful ousness/ous aliti/al iviti/ive"
            " biliti/ble fulli/ful"
        ).split()
    )
)
_STEP_3: Final[Sequence[_Rule]] = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")
)  # fmt: skip
_STEP_4: Final = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split()


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _final_y, _step_2, _step_3, _step_4, _final_e, _double_l):
        word = step(word)
    return word


def _consonants(word: str) -> list[bool]:
    """Return whether each letter is a consonant. So is a y at the beginning, and behind a vowel."""
    kinds: list[bool] = []
    for letter in word:
        kinds.append(letter not in "aeiou" and (letter != "y" or not kinds or not kinds[-1]))
    return kinds


def _is_consonant(word: str, place: int) -> bool:
    return _consonants(word)[place]


def _measure(word: str) -> int:
    """Return how often a consonant follows a vowel, runs counted once."""
    return sum(not one and other for one, other in pairwise(_consonants(word)))


def _has_vowel(word: str) -> bool:
    return not all(_consonants(word))


def _ends_short(word: str) -> bool:
    """Consonant, vowel, and a consonant other than w, x and y; or a vowel and a consonant alone."""
    if len(word) == 2:
        return not _is_consonant(word, 0) and _is_consonant(word, 1)
    return (
        len(word) >= 3
        and _is_consonant(word, len(word) - 3)
        and not _is_consonant(word, len(word) - 2)
        and _is_consonant(word, len(word) - 1)
        and word[-1] not in "wxy"
    )


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    roots = (word[: -len(end)] for end in ("ed", "ing") if word.endswith(end))
    root = next((root for root in roots if _has_vowel(root)), None)
    if root is None:
        return word
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if len(root) >= 2 and root[-1] == root[-2] and _is_consonant(root, len(root) - 1):
        return root if root[-1] in "lsz" else root[:-1]
    return root + "e" if _measure(root) == 1 and _ends_short(root) else root


def _final_y(word: str) -> str:
    is_ending = word.endswith("y") and len(word) > 2 and _is_consonant(word, len(word) - 2)
    return word[:-1] + "i" if is_ending else word


def _with_rules(word: str, rules: Sequence[_Rule], holds: Callable[[str], bool]) -> str:
    """The word by the first rule whose suffix it has, if the condition holds of what is before."""
    for suffix, new in rules:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + new if holds(root) else word
    return word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])
    if word.endswith("logi") and not word.endswith(tuple(suffix for suffix, _ in _STEP_2)):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _with_rules(word, _STEP_2, lambda root: _measure(root) > 0)


def _step_3(word: str) -> str:
    return _with_rules(word, _STEP_3, lambda root: _measure(root) > 0)


def _step_4(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            holds = _measure(root) > 1 and (suffix != "ion" or root[-1] in "st")
            return root if holds else word
    return word


def _final_e(word: str) -> str:
    root = word[:-1]
    drops = word.endswith("e") and (_measure(root) > 1 or (_measure(root) == 1 and not _ends_short(root)))
    return root if drops else word


def _double_l(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


_LEFT_OUT = re.compile(r"\b(?:a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
ADVERSARIAL_REPLIES = ("no information available", "not mentioned")


def locomo_f1(category: int, expected: str, reply: str) -> float:
    """LoCoMo's score of a reply, 0..1, by the number of the question's category.

    Stemmed token F1. In category 1 (several answers) the mean over the comma-separated parts of the expected
    answer, each against the best part of the reply; in category 3 only what stands before the first semicolon is
    expected. In category 5 (adversarial) 1 for a reply that says "no information available" or "not mentioned".
    """
    answer = without_reasoning(reply)
    if category == 5:
        return float(any(phrase in answer.lower() for phrase in ADVERSARIAL_REPLIES))
    if category == 3:
        expected = expected.split(";")[0].strip()
    if category != 1:
        return _stemmed_f1(expected, answer)
    wanted, given = (list(map(_stems, text.split(","))) for text in (expected, answer))
    return sum(max(_f1(part, each) for each in given) for part in wanted) / len(wanted)


def _stemmed_f1(expected: str, answer: str) -> float:
    return _f1(_stems(expected), _stems(answer))


def _f1(wanted: Counter[str], given: Counter[str]) -> float:
    shared = (wanted & given).total()
    return 2 * shared / (wanted.total() + given.total()) if shared else 0.0


def _stems(text: str) -> Counter[str]:
    """Stems without articles, "and" and punctuation. A comma joins what it separates, as in the published code."""
    bare = _LEFT_OUT.sub(" ", text.lower().translate(_NO_PUNCTUATION))
    return Counter(map(stem, bare.split()))
