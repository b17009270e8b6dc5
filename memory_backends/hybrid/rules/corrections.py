"""How people take something back: the markers of a correction, and the value that was wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_backends.hybrid.rules.matching import clean_value
from memory_backends.hybrid.rules.pattern import AMOUNT, DATE, NUMBER_WORD, PROPER, SPECIFIC

_MARKER = re.compile(
    r"\b(?:actually|in\sfact|in\sthe\send|after\sall|correction|scratch\sthat|strike\sthat|I\smeant|I\smisspoke|I\smisread"
    r"|make\sthat|I\swas\swrong|(?:my|by)\smistake|no\slonger|not\sany\s?more|any\s?more|ignore\s(?:the|that|what)|forget\s(?:the|that|what)"
    r"|changed?\s(?:my\smind|to|from)|instead|ha(?:s|ve)\smoved|(?:is|are|it['’]s|they['’]re)\snow|back\sto|turn(?:s|ed)\sout"
    r"|postponed|cancel(?:l)?ed|(?:put|pushed|brought|moved)\s(?:it\s)?(?:back|off|forward|to)|went\s(?:up|down)|(?:is|are)\snot"
    r"|wrong|I\ssaid|put\s\w+(?:\s\w+){0,3}\sright|update|new\s(?:date|time|price|plan|number|figure|total)"
    r"|en\srealidad|me\s(?:he\s)?equivo[cq]\w+|perdón|perdona|corrijo|corrección|mejor\sdicho|ya\sno|quería\sdecir|de\sverdad"
    r"|rectifico|al\sfinal|ha(?:n)?\scambiado|en\svez\sde|en\slugar\sde|resulta\sque|ahora\s(?:es|son|va|dice|resulta)|olvida"
    r"|te\s(?:he\s)?dij?e?(?:cho)?\smal|se\s(?:retrasa|aplaza|adelanta)|ha\s(?:subido|bajado)|no\s(?:es|era|eran|son|fue|fueron))\b"
    r"|^(?:no|wait|sorry|espera)\b[,:.—–-]",
    re.IGNORECASE,
)
_ARTICLE = r"(?:(?:the|on|at|a|an|in|for|el|la|los|las|en|de|es|era|eran|son|fue|fueron|sean)\s)*"
_PRECISE = rf"(?:{DATE}|{AMOUNT}|{NUMBER_WORD}\b|[€$£]?\d[\w€%:./,-]*\w|\d|{PROPER})"
_CLAUSE_ENDS = r"(?=\s?(?:[.,;:!?)]|any\s?more\b|$))"
_REPLACED = (
    re.compile(rf"(?:,|\sand|\send)?\snot\s{_ARTICLE}(?P<value>{_PRECISE})"),
    re.compile(rf"(?:,\sy?\s?no|\b[Nn]o\s(?:es|era|eran|son|fue|fueron))\s{_ARTICLE}(?P<value>{_PRECISE})"),
    re.compile(
        rf"\b(?i:instead\sof|rather\sthan|no\slonger|not\sany\s?more|forget|en\svez\sde|en\slugar\sde|ya\sno(?:\s(?:es|son))?)\s{_ARTICLE}"
        rf"(?P<value>{SPECIFIC}|[\w€$£%:./-]+)"
    ),
    re.compile(rf"(?:,|\sand)\snot\s{_ARTICLE}(?P<value>[\w-]+){_CLAUSE_ENDS}"),
    re.compile(rf"(?:\b[Nn]ot)\s{_ARTICLE}(?P<value>[\w-]+(?:\s\w+)?),?\s(?:but|any\s?more)\b"),
    re.compile(rf",\s(?:y\s)?no\s{_ARTICLE}(?P<value>[\w-]+){_CLAUSE_ENDS}"),
    re.compile(rf"\b[Nn]o\s(?:es\s|era\s)?{_ARTICLE}(?P<value>[\w-]+(?:\s\w+)?),?\ssino\b"),
    re.compile(
        rf"\b(?i:(?:changed|moved|went|up|down|raised|cut|dropped|pasa|pasó|cambia\w*)\s(?:\w+\s)?(?:from|de(?:l)?)|used\sto\sbe|was|I\ssaid|era|dije|ponía)\s"
        rf"{_ARTICLE}(?P<value>{SPECIFIC})[^.!?\n]{{0,40}}?\b(?:to|now|but|it['’]s|it\sis|ahora|pero|es|son|al?)\b"
    ),
    re.compile(rf"^[Nn]ot?\s{_ARTICLE}(?P<value>[\w-]+){_CLAUSE_ENDS}"),
)
"""In the order of trial: a precise value that is denied, then a word where the form says that it is replaced."""

_RETRACTION = re.compile(
    r"\b(?:scratch\sthat|strike\sthat|I\smisspoke|I\swas\swrong|my\smistake|ignore\s(?:the|that|what)|forget\swhat"
    r"|me\sequivoqué|me\she\sequivocado|corrijo|rectifico|olvida\slo)\b",
    re.IGNORECASE,
)
_BELONGS_ELSEWHERE = re.compile(rf"^(?P<value>{PROPER})\s(?:is|was|are|were|es|era|son|eran)\s")
_DENIED_ALONE = re.compile(
    rf"^[Nn]ot?\s{_ARTICLE}(?P<value>(?!sure\b|yet\b|bad\b|really\b|sé\b)\w+(?:\s\w+)?)[.!]$"
)
_NO_VALUE = frozenset(
    "sure yet now really only just always even quite so too that this it much yes no what why the a i we you he she"
    " they one more all any thanks worries bad good well nada eso esto así muy tan todo".split()
)
"""Words that a denial may be followed by and that are no value."""


def is_correction(sentence: str) -> bool:
    """Whether the sentence takes back something that was said before."""
    return bool(_MARKER.search(sentence) or value_taken_back(sentence))


def value_taken_back(sentence: str) -> str | None:
    """The value that the sentence says is wrong (``eleven`` of "fourteen, not eleven"), if it names one."""
    for pattern in _REPLACED:
        for found in pattern.finditer(sentence):
            value = clean_value(found["value"])
            if value and value.casefold() not in _NO_VALUE:
                return value
    return None


def value_put_right(before: Sequence[str]) -> str | None:
    """The value that a message puts right after taking something back, told from the sentences before this one.

    ``Ignore that. Ana is only the deputy. Bea signs.``: at the last sentence it is ``Ana``. ``Not the red one. It
    was the blue one.``: at the last it is ``red one``.
    """
    denied = _DENIED_ALONE.match(before[-1]) if before else None
    if denied:
        return clean_value(denied["value"])
    if not before or not any(_RETRACTION.search(sentence) for sentence in before[:-1]):
        return None
    found = _BELONGS_ELSEWHERE.match(before[-1])
    return clean_value(found["value"]) if found else None
