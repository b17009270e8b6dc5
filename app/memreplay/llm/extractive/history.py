"""Splits the context of a prompt into sentences, each with its speaker and the times that it says.

Memories write ``[8 May 2023, 13:56]`` above lines of ``Speaker: text``; a line without a speaker continues the turn
above it. "Yesterday" then is 7 May 2023; a sentence that says no time is about the day on which it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from memory_backends.retrieval.rendering import MONTHS as ENGLISH_NAMES
from memory_backends.text import SPANISH_MONTHS, folded, sentences_of
from memreplay.grading.times import Time, times_in

USER, ASSISTANT = "user", "assistant"
ROLES = {"user": USER, "human": USER, "ai": ASSISTANT, "assistant": ASSISTANT, "agent": ASSISTANT}
"""Folded labels that are no names, with what a question calls them."""

_KNOWN = re.compile(r"\A\s*(?:Known:|[-*•])\s+")
_STAMP = re.compile(r"\s*\[([^\]\n]{4,60})\]\s*")
_LABEL = re.compile(r"([^\W\d_][\w.'’ -]{0,39}?):\s+(?=\S)")
_FEWEST_WORDS = 4
_SPANISH_NAMES = tuple(SPANISH_MONTHS)


class Sentence(NamedTuple):
    """A sentence of a context. ``said`` is the day, where it is known; ``turn`` numbers what was said from 1."""

    text: str
    speaker: str | None
    said: date | None
    turn: int

    def times(self) -> Sequence[Time]:
        """Return the times that it says, or else the day on which it was said."""
        if found := times_in(self.text, self.said):
            return [_in_its_year(time, self.said) for time in found]
        return [Time(self.said, self.said, "")] if self.said else []

    def with_dates(self, spanish: bool) -> str:
        """Return the sentence with its times written out behind it: ``I was there yesterday. (7 May 2023)``."""
        notes = dict.fromkeys(
            _written(time, self.said, spanish) for time in self.times() if not time.is_of_any_year
        )
        new = [note for note in notes if folded(note) not in folded(self.text)]
        return f"{self.text} ({'; '.join(new)})" if new else self.text


def read_sentences(context: str) -> tuple[Sentence, ...]:
    """Return the sentences of a context, in order."""
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
        found += [Sentence(text, speaker, said, turn) for text in _units(body)]
    return tuple(found)


def _day_in(stamp: str) -> date | None:
    return next((time.first for time in times_in(stamp) if time.days == 1 and not time.is_of_any_year), None)


def _units(row: str) -> Iterator[str]:
    """Yield the sentences of a row; one of a few words stands with the next, or says nothing."""
    begun = ""
    for sentence in sentences_of(row):
        begun = f"{begun} {sentence}" if begun else sentence
        if len(sentence.split()) >= _FEWEST_WORDS:
            yield begun
            begun = ""
    if begun:
        yield begun


def _in_its_year(time: Time, said: date | None) -> Time:
    """Return a time without a year as the one that is nearest to a day."""
    if not time.is_of_any_year or said is None:
        return time
    shifts = (said.year + shift - time.first.year for shift in (-1, 0, 1))
    years = [time._replace(first=_later(time.first, years), last=_later(time.last, years)) for years in shifts]
    return min(years, key=lambda one: abs(one.first - said))._replace(is_of_any_year=False)


def _later(day: date, years: int) -> date:
    return day.replace(year=day.year + years, day=min(day.day, 28) if day.month == 2 else day.day)


def marks_of(times: Sequence[Time]) -> frozenset[str]:
    """Return the years, months, weeks and days of times, as terms that texts share."""
    found: set[str] = set()
    for time in times:
        middle = time.first + (time.last - time.first) / 2
        if not time.is_of_any_year:
            found.add(f"{middle:%Y}")
        if time.days <= 31:
            found.add(f"month {middle.month}")
        if time.days <= 14 and not time.is_of_any_year:
            found.add(f"week {middle:%G %V}")
        if time.days == 1:
            found.add(f"{middle:%m-%d}")
    return frozenset(found)


_COUNTED = re.compile(r"\b(?:(?:\w+ )?(?:week|weekend)s?|\w+day)\b(?<!yesterday)(?<!today)")


def _written(time: Time, said: date | None, spanish: bool) -> str:
    """Return a day, month or year as ``7 May 2023``, ``mayo de 2023``; weeks as ``two weeks before 7 May 2023``."""
    names, of = (_SPANISH_NAMES, "de ") if spanish else (ENGLISH_NAMES, "")
    middle = time.first + (time.last - time.first) / 2
    if time.days > 14:
        return str(middle.year) if time.days > 31 else f"{names[middle.month - 1]} {of}{middle.year}"
    day, base = (f"{one.day} {of}{names[one.month - 1]} {of}{one.year}" for one in (middle, said or middle))
    if time.days == 1 and not time.words:
        return f"dicho el {day}" if spanish else f"said on {day}"
    if spanish or said is None or not (counted := _COUNTED.search(time.words)):
        return day if time.days == 1 else f"hacia el {day}" if spanish else f"about {day}"
    unit = re.sub(r"^(?:last|past|next|this|on) ", "", counted[0])
    unit = unit.title() if unit.endswith("day") else unit
    side = f"{unit if ' ' in unit else 'the ' + unit} {'before' if middle < said else 'after'} {base}"
    return f"{day}, {side}" if time.days == 1 else side
