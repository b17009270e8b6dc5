"""What sort of precise value a statement gives, so that a later one of the same sort can be set beside it.

Two values are of one sort if they count or name the same: ``14 nets`` and ``12 nets``, ``€9 a night`` and ``€11 a
night``, ``plot 41`` and ``plot 43``, ``Zephyr 3.5.0`` and ``Zephyr 3.6.1``, two dates, two times of day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import Stemmer

from memory_backends.hybrid.rules.pattern import (
    AMOUNT,
    CLOCK,
    DATE,
    MONEY,
    NUMBER_WORD,
    PROPER,
    QUOTED,
    LazyPattern,
    clean_value,
)
from memory_backends.retrieval.keyword import terms_of
from memory_backends.text import MONTHS, WEEKDAYS, folded_words, numbers_in

_PER = r"(?:\s(?:a|an|per|each|every|al|por|la|el)\s(?P<per>[a-zà-ÿ]{3,})|/(?P<slash>[a-zà-ÿ]+))?"
_NUMBER = rf"(?:\d[\d.,]*\d|\d|{NUMBER_WORD}\b)"
_YEAR = r"(?:19|20)\d\d"
_NO_LABEL = (
    r"(?!(?:of|the|and|or|to|in|on|at|by|for|from|is|are|was|were|it|its|with|than|about|around|only|just|over|under|like|until|till|now"
    r"|between|since|after|before|another|these|those|all|my|our|your|los|las|les|nos|con|que|por|para|son|era|eran|unos|unas"
    r"|más|casi|hasta|desde|entre|tiene|hay|somos|ser|costs?|made|make|have|has|had|need|want|than|says?|said)\b)"
)

_DAYS = {day.removesuffix("s") for day in WEEKDAYS}

_FORMS: tuple[tuple[str, LazyPattern], ...] = (
    ("date", LazyPattern(rf"(?P<value>{DATE})")),
    ("money", LazyPattern(rf"(?P<value>{MONEY}){_PER}")),
    ("time", LazyPattern(rf"(?P<value>{CLOCK}|\b[01]?\d[.:][0-5]\d(?=\s(?:UTC|GMT|h)\b))")),
    (
        "time",
        LazyPattern(
            rf"\b(?i:open|opens|close|closes|at|until|till|by|starts?|begins?|finishes)\s(?:at\s)?(?P<value>(?:[01]?\d|2[0-3])(?:\.[0-5]\d\b|(?=[.,;!?]|$)))"
            rf"|\ba\slas?\s(?P<hour>(?:{NUMBER_WORD}|una|\d{{1,2}})(?:\sy\s(?:media|cuarto|\w+)|\smenos\s\w+)?)"
        ),
    ),
    ("year", LazyPattern(rf"\b(?i:since|in|from|desde|en)\s(?P<value>{_YEAR})\b(?!\s\w+s\b)")),
    ("amount", LazyPattern(rf"(?P<value>{AMOUNT}){_PER}")),
    ("amount", LazyPattern(rf"\b(?P<noun>[a-zà-ÿ]{{3,}})\sof\s(?P<value>{_NUMBER})(?![\w%])")),
    (
        "amount",
        LazyPattern(
            rf"\b(?i:we['’]re|we\sare|there\sare|somos|quedamos)\s(?P<value>{_NUMBER})"
            r"(?=[.,;!?]|\s(?:now|in|at|on|of|ahora|en)\b|$)"
        ),
    ),
    (
        "called",
        LazyPattern(
            r"(?:\b(?P<noun>(?!(?:it|is|was|be|and|now|also|are)\b)[a-zà-ÿ]{3,})\s)?(?:(?:it['’]?s|is|was|now)\s)*"
            rf"(?:called|named|titled|se\sllama|llamad[oa])\s(?:the\s)?(?![A-Z]+\b)(?P<value>{PROPER}|{QUOTED})"
        ),
    ),
    ("amount", LazyPattern(rf"\b(?P<value>{_NUMBER})\sof\s(?P<noun>us|them)\b")),
    (
        "label",
        LazyPattern(
            rf"\b{_NO_LABEL}(?P<noun>[a-zà-ÿ]{{3,}})\s(?:is\s|es\s|number\s|no\.\s|=\s?)?(?P<value>\d{{1,5}}[A-Za-z]?|[A-Z]\d{{1,3}})\b"
            r"(?![.,:]?\d|\s?[%€£$°])(?!\s[a-zà-ÿ]{3,}s\b)"
        ),
    ),
    (
        "version",
        LazyPattern(
            r"\b(?P<noun>[A-Za-z][\w+-]{1,24})\s(?:version\s|on\s|is\s)?v?(?P<value>\d+(?:\.\d+){1,3})\b(?![%\s]?[a-z%])"
        ),
    ),
    ("address", LazyPattern(r"(?<![\w.])(?P<value>\d{1,3}(?:\.\d{1,3}){3})(?![\w.])")),
    (
        "name",
        LazyPattern(
            r"(?P<value>\b[a-z][a-z0-9]*(?:[._][a-z0-9]+)+\b|\b(?=[a-z-]*\d)[a-z][a-z0-9]*(?:-[a-z0-9]+)+\b)"
        ),
    ),
    (
        "who",
        LazyPattern(
            rf"\b[a-zà-ÿ]{{2,}}\s(?:is|are|will\sbe|es|son|será)\s(?:now\s|ahora\s)?(?P<value>{PROPER})(?=[.,;!]|$|\s(?:now|from|until)\b)"
        ),
    ),
)
"""Forms of precise values, the surest first: a stretch of text is read once."""


@dataclass(frozen=True)
class Figure:
    """A precise value. ``value`` is canonical: without grouping, folded.

    ``sort`` is what it counts or names, ``lead`` the word that it is said of (``open`` of "we open at 9:30"), empty
    where that word says little. ``clause`` is the clause that tells it, ``is_past`` whether of what
    happened, ``is_stated`` whether of what is so.
    """

    sort: str
    lead: str
    value: str
    clause: str
    is_past: bool
    is_stated: bool

    @property
    def is_telling(self) -> bool:
        """Whether its sort alone says what it is about: nets, guests, euros a month; not euros, days or a date."""
        kind, _, of = self.sort.partition(" of ")
        return bool(of) and (kind == "money" or of not in UNITS)


_STEMMERS = tuple(map(Stemmer.Stemmer, ("english", "spanish")))

UNITS = frozenset(
    stem
    for line in (
        "second minute hour day week month year decade percent per cent euro pound dollar peso km mile metre",
        "meter g kg gram kilo ml litre time",
        "segundo minuto hora día semana mes año euro céntimo metro kilo gramo litro vez pm am",
    )
    for word in line.split()
    for form in (word, f"{word}s", f"{word}es")
    for stem in (form, *(stemmer.stemWord(form) for stemmer in _STEMMERS))
)
"""What many things are measured in."""

_SAYS_LITTLE = frozenset(
    word
    for line in (
        "i me my we us our you your he him his she her it its they them their this that these those there",
        "here what which who",
        "a an the of in on at by to for from with into about around over under up down off out back forward",
        "until till than as per",
        "since desde re ve ll don didn am is are was were be been being has have had having do does did will",
        "would shall should can could may might must got get gets",
        "go goes went gone going come comes came put puts set move moved moves moving push pushed slip",
        "slipped bring brought drop dropped fall fell rise",
        "rose raise raised raises cut change changed changes switch switched postponed delayed rescheduled",
        "reduced increased lowered extended hit reached",
        "now only just still also already actually really exactly almost nearly roughly only again not no so",
        "and but or if then",
        "say says said want wants need needs pay paid pays owe owes make makes made take give gave offer",
        "offers think told cost like",
        "yo mi me nos nuestro nuestra tu su se lo la los las el un una unos unas de del en a al por para con",
        "que y o es son era eran fue está están será sería serán serían estaba",
        "ha han he hemos va van pasa pasan ahora ya solo unos casi más menos no dice dijo quiere son somos",
        "subió bajó sube baja cambia cambiado",
        "aplazado aplazan retrasado adelantado movido",
    )
    for word in line.split()
)
"""Words that a value is not said of, and those that say only how it has changed."""

_LEAD_REACH = 6
"""Words before a value among which the one that it is said of is looked for."""


def figures_in(text: str) -> tuple[Figure, ...]:
    """The precise values of a text."""
    found: list[Figure] = []
    taken: list[tuple[int, int]] = []
    for kind, form in _FORMS:
        for match in form.finditer(text):
            group = "value" if match.groupdict().get("value") else "hour"
            start, end = match.span(group)
            if any(start < last and first < end for first, last in taken):
                continue
            if kind in ("amount", "money") and _DIFFERENCE.search(text[:start]):
                continue
            taken.append((start, end))
            value = clean_value(match[group])
            sort = _sort_of(kind, value, match)
            lead = match["noun"] or "" if kind == "called" else _lead(text[:start])
            clause = _clause_around(text, start, end)
            is_stated = bool(_STATES.search(clause))
            is_past = not is_stated and bool(_PAST.search(clause))
            found.append(Figure(sort, lead.casefold(), _canonical(sort, value), clause, is_past, is_stated))
    return tuple(found)


_DIFFERENCE = LazyPattern(r"\b(?:by|another|extra|más\sde)\s$", re.IGNORECASE)
"""A figure after it says by how much something differs; a date after "by" is a value."""

_CLAUSE_ENDS = LazyPattern(
    r"[.!?;:,()…](?=\s|$)|\s[-–—]+\s|\s(?:so|because|but|since|which|and|though|pero|porque|así\sque|aunque|y)\s"
)
_STATES = LazyPattern(
    r"\b(?:is|are|will\sbe|costs?|makes|goes|leaves|starts?|opens?|closes?|runs?|takes|works?|es|son|está|cuesta|sale|empieza)\b"
    r"|['’](?:s|re|m)\b|=",
    re.IGNORECASE,
)
_PAST = LazyPattern(
    r"\b(?:was|were|had|did|took|paid|(?<!ve\s)(?<!have\s)got|went|made|came|said|gave|bought|sold|ran|fell|told|rang|left|lost|met|saw|sent|began|spoke|wrote|held|kept|drove|flew|\w{3,}ed|era|eran|fue|fueron|tenía|\w{3,}ó)\b",
    re.IGNORECASE,
)


def _clause_around(text: str, start: int, end: int) -> str:
    """The clause of a stretch of text."""
    before = max((match.end() for match in _CLAUSE_ENDS.finditer(text[:start])), default=0)
    after = _CLAUSE_ENDS.search(text[end:])
    return text[before : end + after.start() if after else len(text)]


def _lead(before: str) -> str:
    clause = re.split(r"[.!?;:,]\s|\s[-–—]\s", before)[-1]
    words = re.findall(r"[^\W\d_]{2,}", clause.casefold())[-_LEAD_REACH:]
    telling = [word for word in words if word not in _SAYS_LITTLE]
    return next(iter(terms_of(telling[-1])), "") if telling else ""


def _sort_of(kind: str, value: str, match: re.Match[str]) -> str:
    """The kind with what is counted and by what: ``money per month``, ``amount of nets``, ``label of plot``."""
    groups = match.groupdict()
    of = groups.get("noun") or ""
    if kind in ("called", "who", "address"):
        return kind
    if kind == "amount" and not of:
        words = re.findall(r"[^\W\d_]+|[%°]\w?", value)
        of = words[-1] if words and not numbers_in(words[-1]) else "us"
    if kind == "date" and folded_words(value).split()[-1].removesuffix("s") in _DAYS:
        return "weekday"
    per = groups.get("per") or groups.get("slash") or ""
    stems = [next(iter(terms_of(word)), word) for word in (of.casefold(), per) if word]
    return " of ".join([kind, *stems])


_SCALE = {"k": 1e3, "m": 1e6, "bn": 1e9}


def _canonical(sort: str, value: str) -> str:
    kind = sort.partition(" ")[0]
    if kind == "weekday":
        return " ".join(sorted(word for word in folded_words(value).split() if word.removesuffix("s") in _DAYS))
    if kind in ("label", "version", "name", "called", "time", "address", "who"):
        return " ".join(sorted(numbers_in(value))) if kind == "time" else value.casefold()
    numbers = sorted(numbers_in(value))
    if kind == "date":
        return " ".join([*numbers, *(word for word in folded_words(value).split() if word in MONTHS)])
    scaled = re.fullmatch(r"[^\d]*(\d[\d.,]*)\s?(k|m|bn)", value.casefold())
    if kind == "money" and scaled and len(numbers) == 1:
        return f"{float(numbers[0]) * _SCALE[scaled[2]]:g}"
    return " ".join(numbers) or folded_words(value)
