"""Parses the context of a prompt into sentences, each with its speaker and its dates written out.

Memories write ``[8 May 2023, 13:56]`` above lines of ``Speaker: text``; a line without a speaker continues the turn
above it. "Yesterday" then becomes "yesterday (7 May 2023)", so that dates are compared as words are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from memory_backends.retrieval.keyword import language_of
from memory_backends.retrieval.rendering import MONTHS as ENGLISH_NAMES
from memory_backends.text import (
    ENGLISH_MONTHS,
    MONTHS,
    NUMBERS,
    SPANISH_MONTHS,
    WEEKDAYS,
    any_of,
    folded,
    sentences_of,
)

USER, ASSISTANT = "user", "assistant"
ROLES = {"user": USER, "human": USER, "ai": ASSISTANT, "assistant": ASSISTANT, "agent": ASSISTANT}
"""Folded labels that are no names, with what a question calls them."""

_SAMPLE = 4000
"""Characters of a context by which its language is told."""

_KNOWN = re.compile(r"\A\s*(?:Known:|[-*•])\s+")
_STAMP = re.compile(r"\s*\[([^\]\n]{4,60})\]\s*")
_LABEL = re.compile(r"([^\W\d_][\w.'’ -]{0,39}?):\s+(?=\S)")
_WRITTEN_DAY = re.compile(rf"(\d{{1,2}}) ({any_of(ENGLISH_MONTHS)}),? (\d{{4}})|(\d{{4}})-(\d\d)-(\d\d)")


class Sentence(NamedTuple):
    """A sentence of a context. ``dated`` is ``text`` with its dates written out; ``turn`` numbers what was said."""

    text: str
    dated: str
    speaker: str | None
    said: str
    turn: int


def read_sentences(context: str) -> tuple[Sentence, ...]:
    """Return the sentences of a context, in order."""
    spanish = is_spanish(context)
    rows = context.split("\n")
    labels = {folded(match[1]) for row in rows if (match := _LABEL.match(row))}
    only_roles = bool(labels & ROLES.keys())
    found: list[Sentence] = []
    speaker: str | None = None
    said: date | None = None
    turn = 0
    for row in rows:
        body, begins = _KNOWN.sub("", row), row.startswith("Known:")
        if (stamp := _STAMP.match(body)) and (day := _day_in(stamp[1])):
            body, begins, said = body[stamp.end() :], True, day
        if (label := _LABEL.match(body)) and (not only_roles or folded(label[1]) in ROLES):
            begins, speaker, body = True, ROLES.get(folded(label[1]), folded(label[1])), body[label.end() :]
        elif begins:
            speaker = None
        turn += begins
        day_said = written(said, spanish) if said else ""
        found += [Sentence(text, _dated(text, said, spanish), speaker, day_said, turn) for text in _units(body)]
    return tuple(found)


_FEWEST_WORDS = 4


def _units(row: str) -> list[str]:
    """Return the sentences of a row; one of a few words stands with the next, or says nothing."""
    units: list[str] = []
    for sentence in sentences_of(row):
        if units and len(units[-1].split()) < _FEWEST_WORDS:
            units[-1] += " " + sentence
        else:
            units.append(sentence)
    return units


def is_spanish(context: str) -> bool:
    """Return whether a context is Spanish rather than English."""
    return language_of(context[:_SAMPLE]) == "spanish"


def _day_in(stamp: str) -> date | None:
    match = _WRITTEN_DAY.search(folded(stamp))
    if match is None:
        return None
    day, month, year = (match[1], str(MONTHS[match[2]]), match[3]) if match[1] else (match[6], match[5], match[4])
    return _day(int(year), int(month), int(day))


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


_SPANISH_NAMES = tuple(SPANISH_MONTHS)
_WEEKDAY_NAMES = tuple(name.title() for name in WEEKDAYS)
_SHORT_MONTHS = {name[:3]: number for name, number in ENGLISH_MONTHS.items()} | {"sept": 9}
_MONTH = MONTHS | _SHORT_MONTHS
_COUNT = {name: value for name, value in NUMBERS.items() if 0 < value <= 12 and name != "once"} | {
    "a": 1, "an": 1, "un": 1, "una": 1, "a couple of": 2, "a few": 3, "unos": 3, "unas": 3,
}  # fmt: skip
_UNIT = {
    "day": "day", "dia": "day", "week": "week", "semana": "week", "weekend": "weekend", "month": "month",
    "mes": "month", "year": "year", "ano": "year",
}  # fmt: skip
_FIXED = {
    "yesterday": -1, "last night": -1, "ayer": -1, "anoche": -1, "today": 0, "tonight": 0, "this morning": 0,
    "this afternoon": 0, "this evening": 0, "hoy": 0, "esta manana": 0, "esta noche": 0, "esta tarde": 0,
    "tomorrow": 1, "day before yesterday": -2, "anteayer": -2, "day after tomorrow": 2, "pasado manana": 2,
}  # fmt: skip


def written(day: date, spanish: bool) -> str:
    """Return a day as ``7 May 2023`` or ``7 de mayo de 2023``."""
    return f"{day.day} {'de ' * spanish}{_month(day.year, day.month, spanish)}"


def _month(year: int, month: int, spanish: bool) -> str:
    return f"{_SPANISH_NAMES[month - 1]} de {year}" if spanish else f"{ENGLISH_NAMES[month - 1]} {year}"


def _shifted_month(said: date, shift: int) -> tuple[int, int]:
    months = said.year * 12 + said.month - 1 + shift
    return months // 12, months % 12 + 1


def _shifted(match: re.Match[str], said: date, spanish: bool) -> str:
    """Return what "two weeks ago", "last month", "el año que viene" mean."""
    parts = match.groupdict()
    word = parts.get("count") or "1"
    sign = 1 if parts.get("next") else 0 if parts.get("this") else -1
    count = sign * (int(word) if word.isdigit() else _COUNT[word])
    unit = _UNIT[parts["unit"]]
    if unit == "year":
        return str(said.year + count)
    if unit == "month":
        return _month(*_shifted_month(said, count), spanish)
    if unit == "day":
        return written(said + timedelta(count), spanish)
    about = written(said + timedelta(7 * count), spanish)
    if spanish or not sign:
        return about
    many = "the " + unit if abs(count) == 1 else f"{abs(count)} {unit}s"
    side = f"{many} {'after' if sign > 0 else 'before'} {written(said, spanish)}"
    return side if abs(count) == 1 else f"{side}, {about}"


def _weekday(match: re.Match[str], said: date, spanish: bool) -> str:
    """Return what "last Sunday", "on Tuesday", "el lunes que viene" mean."""
    number = WEEKDAYS[match["weekday"]]
    later = match.groupdict().get("next")
    days = (number - said.weekday()) % 7 or 7 if later else -((said.weekday() - number) % 7 or 7)
    day = written(said + timedelta(days), spanish)
    if spanish:
        return day
    return f"{day}, the {_WEEKDAY_NAMES[number]} {'after' if later else 'before'} {written(said, spanish)}"


def _without_year(match: re.Match[str], said: date, spanish: bool) -> str:
    """Return the "20 June", "el 3 de mayo" or "17th" that is nearest to the day it was said."""
    parts = match.groupdict()
    month = _MONTH[parts["month"]] if parts.get("month") else None
    days: list[date | None] = []
    for shift in (-1, 0, 1):
        year, number = (said.year + shift, month) if month else _shifted_month(said, shift)
        days.append(_day(year, number, int(parts["day"])))
    near = [day for day in days if day]
    return written(min(near, key=lambda day: abs(day - said)), spanish) if near else ""


_U = rf"(?P<unit>{any_of(_UNIT)})(?:s|es)?"
_W = rf"(?P<weekday>{any_of(WEEKDAYS)})"
_M = rf"(?P<month>{any_of(_MONTH)})"
_N = rf"(?P<count>\d{{1,2}}|{any_of(_COUNT)})"
_D = r"(?P<day>\d{1,2})"
_WAYS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date, bool], str]], ...] = tuple(
    (re.compile(rf"\b{pattern}\b"), way)
    for pattern, way in (
        (any_of(_FIXED), lambda match, said, spanish: written(said + timedelta(_FIXED[match[0]]), spanish)),
        (rf"{_N} {_U} ago", _shifted),
        (rf"hace {_N} {_U}", _shifted),
        (rf"(?:last|this past|past|(?P<next>next)|(?P<this>this)) {_U}", _shifted),
        (rf"(?:el|la) {_U} (?:pasad[oa]|(?P<next>que viene))", _shifted),
        (rf"(?:last|this past|past|on|(?P<next>next)) {_W}", _weekday),
        (rf"el {_W} (?:pasado|(?P<next>que viene))", _weekday),
        (rf"{_D}(?:st|nd|rd|th)?(?: of| de)? {_M}\b(?!\.?,? (?:del? )?(?:19|20)\d\d)", _without_year),
        (rf"{_M}\.? {_D}(?:st|nd|rd|th)?\b(?![:.]\d|,? (?:19|20)\d\d)", _without_year),
        (rf"the {_D}(?:st|nd|rd|th)\b(?! (?:of )?{any_of(_MONTH)}\b)", _without_year),
        (rf"el (?:dia )?{_D}\b(?! (?:de )?{any_of(_MONTH)}\b)", _without_year),
    )
)
_PLAIN = str.maketrans("áéíóúüñÁÉÍÓÚÜÑ", "aeiouunAEIOUUN")


def _dated(text: str, said: date | None, spanish: bool) -> str:
    """Return a sentence with each date behind the words that mean it."""
    plain = text.translate(_PLAIN).lower()
    if said is None or len(plain) != len(text):
        return text
    notes: dict[int, str] = {}
    for pattern, way in _WAYS:
        for match in pattern.finditer(plain):
            try:
                notes.setdefault(match.end(), way(match, said, spanish))
            except (ValueError, OverflowError):
                continue
    for end, note in sorted(notes.items(), reverse=True):
        text = f"{text[:end]} ({note}){text[end:]}" if note else text
    return text
