"""How people take something back: the markers of a correction, and the value that was wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_backends.hybrid.rules.matching import clean_value
from memory_backends.hybrid.rules.pattern import PROPER

_MARKER = re.compile(
    r"\b(?:actually|correction|scratch\sthat|strike\sthat|I\smeant|I\smisspoke|make\sthat|I\swas"
    r"\swrong|my\smistake|no\slonger"
    r"|not\sany\s?more|any\smore|ignore\sthe|changed\smy\smind|instead|has\smoved\sto|put\s\w+(?:"
    r"\s\w+){0,3}\sright|is\snow|are\snow"
    r"|en\srealidad|me\sequivoqué|perdón|corrijo|corrección|mejor\sdicho|ya\sno|quería\sdecir"
    r"|rectifico|al\sfinal|ha\scambiado|en\svez\sde)\b"
    r"|^(?:no|wait|sorry|espera)\b[,:.—–-]",
    re.IGNORECASE,
)
_REPLACED = re.compile(
    r"(?:,|\sand)\snot\s(?:the\s|on\s|at\s)*(?P<tail>[\w€$£%:./-]+(?:\s[A-Z]\w+)?)\s?(?:[.,;!)]|any\s?more|$)"
    r"|,\sy?\s?no\s(?:(?:el|la|los|las|en|de|a)\s(?P<cola>[\w€$£%:./-]+)|(?P<cifra>[\d€$£][\w€%:./,-]*))"
    r"|\bnot\s(?P<head>[\w€$£%:./-]+)(?:,|\s(?:any\s?more|but)\b)"
    r"|\b(?:instead\sof|rather\sthan|en\svez\sde|en\slugar\sde)\s(?:the\s|el\s|la\s)?(?P<other>[\w€$£%:./-]+)"
)

_RETRACTION = re.compile(
    r"\b(?:scratch\sthat|strike\sthat|I\smisspoke|I\swas\swrong|my\smistake|ignore\s(?:the|that|what)|forget\swhat"
    r"|me\sequivoqué|me\she\sequivocado|corrijo|rectifico|olvida\slo)\b",
    re.IGNORECASE,
)
_BELONGS_ELSEWHERE = re.compile(rf"^(?P<value>{PROPER})\s(?:is|was|are|were|es|era|son|eran)\s")


def is_correction(sentence: str) -> bool:
    """Whether the sentence takes back something that was said before."""
    return bool(_MARKER.search(sentence) or _REPLACED.search(sentence))


def value_taken_back(sentence: str) -> str | None:
    """The value that the sentence says is wrong (``eleven`` of "fourteen, not eleven"), if it names one."""
    found = _REPLACED.search(sentence)
    value = clean_value(next((text for text in found.groups() if text), "")) if found else ""
    return value or None


def value_put_right(before: Sequence[str]) -> str | None:
    """The value that a message puts right after taking something back, told from the sentences before this one.

    ``Ignore that. Ana is only the deputy. Bea signs.``: at the last sentence it is ``Ana``.
    """
    if not before or not any(_RETRACTION.search(sentence) for sentence in before[:-1]):
        return None
    found = _BELONGS_ELSEWHERE.match(before[-1])
    return clean_value(found["value"]) if found else None
