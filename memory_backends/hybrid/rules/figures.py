"""The precise values of a statement by their sort, so that a later statement's can be set beside them.

A day, a time, an amount, a name or an identifier may take the place of another of its sort. What is counted is a
part of the sort: ``six left`` may take the place of ``22 bags``, ``six weeks`` may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from memory_backends.hybrid.rules.pattern import (
    CAP,
    CLOCK,
    MONEY,
    MONTH,
    NUMBER_WORD,
    SHORT_MONTH,
    SHORT_WEEKDAY,
    WEEKDAY,
    LazyPattern,
)
from memory_backends.retrieval.keyword import terms_of
from memory_backends.text import MONTHS, WEEKDAYS, folded_words, numbers_in

Value = frozenset[str]
"""A value by its parts: ``{sat, 12, dec}``. It says no other than one of which it is a part."""

Figures = Mapping[str, frozenset[Value]]
"""The values of a statement by sort."""

MOST_TIMES = 4.0
"""A number that has changed is at most so many times the old one, or the old one so many times the new."""

_A_MONTH = rf"(?:{MONTH}|{SHORT_MONTH})\b\.?"
_A_WEEKDAY = rf"(?:{WEEKDAY}|{SHORT_WEEKDAY})\b"
_ORDINAL = r"\d{1,2}(?:st|nd|rd|th)\b"
_NUMBER = rf"(?:\d{{1,3}}(?:\s\d{{3}})+\b|\d[\d.,]*\d|\d|{NUMBER_WORD}\b)"

_FORMS: tuple[tuple[str, LazyPattern], ...] = (
    (
        "day",
        LazyPattern(
            rf"\b(?:{_A_WEEKDAY},?\s)?(?:the\s|el\s)?(?:{_ORDINAL}|\d{{1,2}}|{NUMBER_WORD})\s(?:of\s|de\s)?{_A_MONTH}(?:,?\s(?:de\s|del\s)?\d{{4}})?"
            rf"|\b{_A_MONTH}\s(?:{_ORDINAL}|\d{{1,2}}\b|\d{{4}}\b)|\b\d{{4}}-\d\d-\d\d\b"
            rf"|\b{_A_WEEKDAY}(?:,?\s(?:the\s|el\s)?(?:{_ORDINAL}|\d{{1,2}}\b(?!\s?[:.]\d|\s[a-z])))?|\b{_ORDINAL}"
            rf"|\b(?:el|día)\s(?:\d{{1,2}}(?![\d.:/])|{NUMBER_WORD}\b)"
            rf"|\b(?i:in|from|until|till|by|since|to|for|en|desde|hasta|para|a)\s(?:\w+\s)?(?!May\s[a-z]){_A_MONTH}"
        ),
    ),
    (
        "time",
        LazyPattern(
            rf"{CLOCK}|\b[01]?\d[.:][0-5]\d(?=\s(?:UTC|GMT|h)\b)|\b(?i:a)\slas?\s(?:{NUMBER_WORD}|una|\d{{1,2}})(?:\sy\s\w+|\smenos\s\w+)?"
            r"|\b(?i:at|until|till|by|before|to|from|opens?|closes?|starts?|finish(?:es)?|up)\s(?:[01]?\d|2[0-3])(?:\.[0-5]\d)?(?=[.,;!?](?!\d)|$|\s(?:to|for|sharp)\b)"
        ),
    ),
    ("year", LazyPattern(r"\b(?i:since|in|from|was|desde|en)\s(?:19|20)\d\d\b")),
    ("money", LazyPattern(rf"{MONEY}|{_NUMBER}\s(?i:quid|bucks|cents?|céntimos|kronor)\b")),
    (
        "identifier",
        LazyPattern(
            r"(?<![\w.,])v?\d+(?:\.\d+){2,3}\b|\b[A-Za-z][\w+-]*\s(?:version\s)?v?\d+(?:\.\d+){1,2}\b(?![%\s]?[a-z%])"
            r"|\b(?=\w*[a-z])\w+(?:[._-]\w+)*[._-](?=\w*\d)\w+(?:\.\w+)*|\b[a-z]\w*(?:[._]\w+)+"
        ),
    ),
    ("number", LazyPattern(rf"(?<![\w.,:/-]){_NUMBER}(?!\w)(?:\s?(?P<of>%|[^\W\d_]+))?")),
    ("name", LazyPattern(rf"(?:{CAP})(?:\s(?:(?:of|the|de|del|la|las|los|el|and|y|&)\s)?(?:{CAP}))*")),
)
"""Forms of values, the surest first: a stretch of text is read once."""

_SPACED = re.compile(r"(?<=\d)\s(?=\d{3}\b)")
"""The space in ``84 000``."""

_COUNTS_NOTHING = frozenset(
    "and or of in on at to for now is not the left so all instead per from i it"
    " y de en con por que a más o el la".split()
)
"""Words after a number that are not what it counts."""

_NO_NAME = frozenset(
    "i the a an we my our it that this he she they you and but so if in on at her his also no yes when what then"
    " there not now ok mr mrs miss ms dr el la los las un una y me".split()
)
"""Capitalised words that are no name."""

_DAY_WORDS = {word[:3] for word in (*MONTHS, *WEEKDAYS)}


@lru_cache(maxsize=4096)
def figures_in(text: str) -> Figures:
    """Return the precise values of a text."""
    found: dict[str, set[Value]] = {}
    for sort, value in _read(text):
        if value:
            found.setdefault(sort, set()).add(value)
    return {sort: frozenset(values) for sort, values in found.items()}


def _read(text: str) -> Iterator[tuple[str, Value]]:
    taken: list[tuple[int, int]] = []
    for sort, form in _FORMS:
        for match in form.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            taken.append(match.span())
            if sort == "number":
                yield _counted(match["of"] or ""), numbers_in(_SPACED.sub("", match[0]))
            elif sort == "name":
                yield sort, _name(match)
            elif sort == "day":
                words = folded_words(match[0]).split()
                yield sort, numbers_in(match[0]) | {word[:3] for word in words if word[:3] in _DAY_WORDS}
            elif sort == "identifier":
                yield sort, frozenset([match[0].casefold()])
            else:
                yield sort, numbers_in(match[0])


def _counted(of: str) -> str:
    """Return the sort of a number: what it counts, if that is said."""
    of = of.casefold()
    return f"number of {next(iter(terms_of(of)), of)}" if of and of not in _COUNTS_NOTHING else "number"


def _name(match: re.Match[str]) -> Value:
    """Return the words of a name; none of a single word that begins a sentence, unless a title stands before it."""
    words = [word for word in folded_words(match[0]).split() if len(word) > 1 and word not in _NO_NAME]
    begins = not match.string[: match.start()].rstrip().rstrip("\"'“‘(-").rstrip(" .!?…:")[-1:] or match.string[
        : match.start()
    ].rstrip()[-1:] in (".", "!", "?", ":")
    return frozenset() if begins and " " not in match[0] else frozenset(words)


def may_replace(new: Figures, old: Figures) -> bool:
    """Return whether a value of one statement may take the place of one of another: of the same sort, and not of
    quite another size. A name may not: any sentence has one.
    """
    return any(
        all(not value <= other and not other <= value for other in old[sort])
        and any(_are_of_one_size(value, other) for other in old[sort])
        for sort in (new.keys() & old.keys()) - {"name"}
        for value in new[sort]
    )


def _are_of_one_size(new: Value, old: Value) -> bool:
    one, other = _size(new), _size(old)
    return one is None or other is None or max(one, other) <= MOST_TIMES * min(one, other)


def _size(value: Value) -> float | None:
    try:
        return float(next(iter(value))) if len(value) == 1 else None
    except ValueError:
        return None
