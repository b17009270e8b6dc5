"""The times that a text says: dates in full or in part, and relative words beside the date they count from.

"The week before 9 June 2023", "yesterday" in a text that names 9 June 2023, and "2 June 2023" are compared as
stretches of days; relative words without a date say no time. English, Spanish, usual forms of French and German.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from dateutil.relativedelta import relativedelta, weekday

from memreplay.grading.read import Date, Token, content_of, folded, same_token, tokens_of
from memreplay.grading.vocabulary import DAY_NAMES, MONTH_NAMES, NO_MONTH_ALONE, SMALL


class Time(NamedTuple):
    """A stretch of days, with its words. ``is_of_any_year`` is set where the text leaves the year out.

    ``counted`` is the day that "two weeks ago" counts to, of the stretch that it may mean.
    """

    first: date
    last: date
    words: str
    is_of_any_year: bool = False
    counted: date | None = None

    @property
    def middle(self) -> date:
        return self.counted or self.first + (self.last - self.first) / 2

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def answers(self, wanted: Time) -> bool:
        """Return whether it says a wanted time, at least as precisely."""
        return self.days <= wanted.days + _SLACK and self.agrees_with(wanted)

    def says(self, wanted: Sequence[Time]) -> bool:
        return not self.is_of_any_year and all(self.answers(one) for one in wanted)

    def agrees_with(self, wanted: Time) -> bool:
        """Return whether both may be one time, however precise."""
        if wanted.is_of_any_year and not self.is_of_any_year:
            return wanted.agrees_with(self)
        years = (
            range(wanted.first.year - 1, wanted.last.year + 1) if self.is_of_any_year else (self.first.year - 1,)
        )
        return any(
            first <= wanted.last and first + timedelta(self.days - 1) >= wanted.first
            for first in (_day(year + 1, self.first.month, self.first.day) for year in years)
        )


_SLACK: Final = 3  # Days by which a text may be less precise: "last week" is read as seven to ten days.
_ANY_YEAR: Final = 2000
_A_YEAR: Final = 365
_Plain = tuple[int | None, int | None, int | None]  # Year, month, day; None where it is not said.

_UNITS: Final = {
    "day": "day days dia dias night nights noche noches morning evening afternoon jour jours tag tage tagen",
    "week": "week weeks semana semanas semaine semaines woche wochen",
    "weekend": "weekend weekends finde findes wochenende",
    "month": "month months mes meses mois monat monate monaten",
    "year": "year years ano anos ans annee annees jahr jahre jahren",
}
_UNIT_OF: Final = {word: unit for unit, words in _UNITS.items() for word in words.split()}
_UNIT: Final = rf"(?P<unit>fin(?:es)? de semana|{'|'.join(sorted({*_UNIT_OF, *DAY_NAMES}, key=len, reverse=True))})"
_NUMBERS: Final = {
    **{word: number for number, word in enumerate("deux trois quatre cinq six sept huit".split(), start=2)},
    **{word: number for number, word in enumerate("zwei drei vier funf sechs sieben acht".split(), start=2)},
    **dict.fromkeys("un une ein eine einem einer".split(), 1),
    **SMALL,
}
_COUNT: Final = (
    r"(?P<count>\d{1,3}|an?|una?|(?:a )?few|several|(?:a )?couple(?: of)?|unos|unas|varios|varias|un par de"
    rf"|{'|'.join(_NUMBERS)})"
)
_BACK: Final = _UNIT.replace("<unit>", "<back>")
_SINCE: Final = f"{_COUNT.replace('<count>', '<since>')} {_BACK}"
_FEW: Final = frozenset("few several couple unos unas varios varias par".split())
_ANCHORED: Final = r"(?: (?:to|of|a|al|de|del|the|el|on|dia))*"
_NOT_BEHIND: Final = r"(?! (?:before|after|pasado|que|proximo|antes|anterior|\w* ?\d))"
_FORMS: Final[Sequence[tuple[int, re.Pattern[str]]]] = [
    (sign, re.compile(rf"\b(?:{form})(?!\w)"))
    for sign, form in (
        (-2, r"day before yesterday|anteayer|antes de ayer|avant-hier|vorgestern"),
        (2, r"day after tomorrow|pasado manana|apres-demain|ubermorgen"),
        (-1, r"(?<!before )yesterday|(?<!antes de )ayer|last night|anoche|(?<!avant-)hier|gestern"),
        (0, r"today|tonight|this (?:morning|afternoon|evening)|hoy|esta (?:manana|tarde|noche)|aujourd'hui|heute"),
        (1, r"(?<!after )tomorrow|(?<!pasado )(?<!la )(?<!esta )manana|(?<!apres-)demain"),
        (-1, rf"{_COUNT} {_UNIT} (?:ago|earlier|back|antes)(?! (?:to|of|de|del)\b)|(?:hace|il y a|vor) {_SINCE}"),
        (-1, rf"been (?:[\w'-]+ ){{1,6}}for {_COUNT} {_UNIT}|(?:llev\w+|depuis|seit) {_SINCE}"),
        (1, rf"(?:in|within|dentro de|en|dans) {_COUNT} {_UNIT}|{_SINCE} (?:later|from now|despues)(?! de)"),
        (-1, rf"(?:{_COUNT} )?{_UNIT} (?P<anchor>before|prior|preceding|antes|anterior|previo){_ANCHORED}"),
        (1, rf"(?:{_COUNT} )?{_UNIT} (?P<anchor>after|following|despues|siguiente){_ANCHORED}"),
        (
            -1,
            rf"(?:last|past|previous|pasad[oa]|ultim[oa]|letzte[nrs]?|vorige[nrs]?) {_UNIT}"
            rf"|{_BACK} (?:pasad[oa]|anterior|derniere?|passee?)",
        ),
        (
            1,
            rf"(?:next|coming|following|proxim[oa]|nachste[nrs]?|kommende[nrs]?) {_UNIT}"
            rf"|{_BACK} (?:que viene|proxim[oa]|siguiente|prochaine?)",
        ),
        (0, rf"(?:this|the same|este|esta) {_UNIT}"),
        (0, rf"(?P<unit>week|semana) (?P<anchor>of|de|del){_ANCHORED}"),
        (-1, rf"(?:on|el) (?P<unit>{'|'.join(DAY_NAMES)}){_NOT_BEHIND}"),
    )
]
_APPOSITION: Final = re.compile(r"(?:,|:| -| –| —)? \(?(?:(?:the|el|dia) )*")
"""Text between the name of a day and its date."""
_JOINED: Final = re.compile(
    r"(?<=\d{4}-\d\d-\d\d)T(?=\d)|(?<=[a-z]{3})\.(?=\d{4}\b)|(?<=\d)\.(?= [^\W\d_]{3,9} (?:19|20)\d\d\b)"
)
"""Text that joins a date to a time of day ("2023-05-07T10:00"), or its parts ("April.2023", "13. August 2024")."""


@lru_cache(maxsize=16384)
def times_in(text: str, said_on: date | None = None) -> tuple[Time, ...]:
    """Return the times that a text says. Relative words count from the dates beside them, and from ``said_on``."""
    dated, relative = _dated_and_relative(text, said_on)
    return (*dated, *(time for _, time in relative))


def answers_when(wanted: Sequence[Time], text: str, expected: str) -> Sequence[Time]:
    """Return the times of a text, or its dates alone ("14 July 2023 (last Friday)"), if all say the wanted ones.

    Days from which the text or the expected answer counts do not matter: "three days after 11 July, so the 14th".
    A date without a year is in that of the others, where these have one.
    """
    dated, relative = _dated_and_relative(text)
    years = {time.first.year for time in dated if not time.is_of_any_year}
    if len(years) == 1 and (parts := [time for time in dated if time.is_of_any_year]):
        shift = relativedelta(years=min(years) - _ANY_YEAR)
        dated = [time for time in dated if not time.is_of_any_year and time.days < _A_YEAR]
        dated += [Time(time.first + shift, time.last + shift, time.words) for time in parts]
    named = {time.first for time, _, _ in _dates_in(expected, folded(expected)) if time not in wanted}
    bases = named | {base for base, time in relative if time.says(wanted)}
    dated = [time for time in dated if time.days > 1 or time.first not in bases]
    readings = (dated, [*dated, *(time for _, time in relative)])
    return next((said for said in readings if said and all(time.says(wanted) for time in said)), ())


def _dated_and_relative(text: str, said_on: date | None = None) -> tuple[list[Time], list[tuple[date, Time]]]:
    """Return the dates of a text, and the times of its relative words, each with the day that it counts from."""
    text = _JOINED.sub(" ", text)
    plain = folded(text)
    dates = list(_dates_in(text, plain))
    days = [time for time, _, _ in dates if time.days == 1 and not time.is_of_any_year]
    found: list[tuple[date, Time]] = []
    anchors: set[int] = set()
    taken = [(start, end) for _, start, end in dates]
    for sign, form in _FORMS:
        for match in form.finditer(plain):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            parts = match.groupdict()
            unit = parts.get("unit") or parts.get("back") or "day"
            if unit in DAY_NAMES and not parts.get("anchor") and _is_dated(match, unit, plain, dates):
                taken.append(match.span())
                continue
            beside = next(
                (place for place, (_, start, _) in enumerate(dates) if 0 <= start - match.end() <= 1), None
            )
            if parts.get("anchor"):
                ends_there = not plain[match.end() :].lstrip(" ,.;:)!").strip() or plain[match.end()] in ".;!)"
                if beside is None and not (len(days) == 1 and ends_there):
                    continue
                if beside is not None:
                    anchors.add(beside)
                bases = [days[0].first if beside is None else dates[beside][0].first]
            else:
                bases = [*(time.first for time in days), *([said_on] if said_on is not None else [])]
            taken.append(match.span())
            count = parts.get("count") or parts.get("since") or ""
            found += ((base, _counted(base, sign, count, unit, match[0])) for base in dict.fromkeys(bases))
    return [time for place, (time, _, _) in enumerate(dates) if place not in anchors], found


def _is_dated(match: re.Match[str], day: str, plain: str, dates: Sequence[tuple[Time, int, int]]) -> bool:
    """Return whether the date of a named day follows: "last Friday, 20 October 2023"."""
    behind = _APPOSITION.match(plain, match.end())
    return behind is not None and any(
        start == behind.end() and time.days == 1 and (time.is_of_any_year or time.first.weekday() == DAY_NAMES[day])
        for time, start, _ in dates
    )


def _counted(base: date, sign: int, count: str, unit: str, words: str) -> Time:
    """Return a time that is some units before or after a day."""
    is_few = not _FEW.isdisjoint(count.split())
    number = 3 if is_few else int(count) if count.isdigit() else _NUMBERS.get(count, 1)
    steps = sign * number
    if unit in DAY_NAMES:
        return _single(base + relativedelta(days=sign, weekday=weekday(DAY_NAMES[unit])(steps or 1)), words)
    match _UNIT_OF.get(unit, "weekend"):
        case "day" if is_few:
            near, far = sorted((base + timedelta(2 * sign), base + timedelta(7 * sign)))
            return Time(near, far, words)
        case "day":
            return _single(base + timedelta(steps), words)
        case "week":
            day = base + timedelta(7 * steps)
            first, last = day - timedelta(6 if sign >= 0 else 3), day + timedelta(6 if sign <= 0 else 3)
            return Time(first, last, words, counted=day)
        case "weekend":
            saturday = base + relativedelta(days=sign, weekday=weekday(5)(steps or 1))
            return Time(saturday - timedelta(1), saturday + timedelta(1), words)
        case "month":
            there = base + relativedelta(months=steps)
            return _of((there.year, there.month, None), words)
        case _:
            return _of(((base + relativedelta(years=steps)).year, None, None), words)


def _single(day: date, words: str) -> Time:
    return Time(day, day, words)


def _day(year: int, month: int, day: int) -> date:
    """Return a day; of a month without it, its last."""
    found: date = date(min(max(year, 2), 9990), month, 1) + relativedelta(day=day)
    return found


def _of(said: _Plain, words: str) -> Time:
    year, month, day = said
    first = _day(year or _ANY_YEAR, month or 1, day or 1)
    last = first if day else _day(first.year, month or 12, 31)
    return Time(first, last, words, year is None)


_MONTH: Final = rf"(?P<month{{}}>{'|'.join(sorted(MONTH_NAMES, key=len, reverse=True))})\.?"
_TO: Final = r"(?:st|nd|rd|th)? ?(?:-|–|—|to|and|al?|y) ?(?:the )?"
_RANGE: Final = re.compile(
    rf"\b(?:{_MONTH.format(1)} (?P<first1>\d{{1,2}}){_TO}(?P<last1>\d{{1,2}})"
    rf"|(?P<first2>\d{{1,2}}){_TO}(?P<last2>\d{{1,2}})(?:st|nd|rd|th)? (?:of |de )?{_MONTH.format(2)})"
    r"(?:st|nd|rd|th)?,? (?:of |de )?(?P<year>(?:19|20)\d\d)\b"
)
"""Days of one month: "July 15-16, 2023", "15 to 16 July 2023", "del 15 al 16 de julio de 2023"."""


def _stretch(match: re.Match[str]) -> Time | None:
    month = MONTH_NAMES[match["month1"] or match["month2"]]
    first, last = (
        _day(int(match["year"]), month, int(match[f"{end}1"] or match[f"{end}2"])) for end in ("first", "last")
    )
    return Time(first, last, match[0]) if first < last else None


_BEFORE_A_MONTH: Final = frozenset(
    "in en last next early late mid since until during this of de desde hasta pasado proximo by for - — – ,".split()
)


def _dates_in(text: str, plain: str) -> Iterator[tuple[Time, int, int]]:
    """Yield the dates that stand in a text in full or in part, with their places."""
    before: Token | None = None
    tokens = tokens_of(text)
    written = text if len(text) == len(plain) else plain
    ranges = [(found, match.span()) for match in _RANGE.finditer(plain) if (found := _stretch(match)) is not None]
    yield from ((time, start, end) for time, (start, end) in ranges)
    for token in tokens:
        if any(start <= token.start < end for _, (start, end) in ranges):
            continue
        for said in _readings(token, before, len(tokens) == 1):
            start = token.start + len(plain[token.start : token.end]) - len(plain[token.start : token.end].lstrip())
            part = before.text if before is not None and before.text in _PARTS else ""
            nth = _NTH.search(plain, max(0, start - 40), start) if said[1] and not said[2] else None
            start = start if nth is None else nth.start()
            words = f"{part} {written[start : token.end].strip()}".strip()
            yield _part_of(_of(said, words), part, nth), start, token.end
        before = token if token.text not in ("of", "de", "del") else before


_PARTS: Final = {
    "early": (0, 12), "beginning": (0, 12), "start": (0, 12), "principios": (0, 12), "mid": (8, 21),
    "late": (18, 31), "end": (18, 31), "finales": (18, 31), "spring": (59, 151), "primavera": (59, 151),
    "summer": (151, 243), "verano": (151, 243), "autumn": (243, 334), "fall": (243, 334), "otono": (243, 334),
    "winter": (334, 425), "invierno": (334, 425),
}  # fmt: skip
"""The days, from the first, of a part of a month or a year."""

_NTH: Final = re.compile(
    r"\b(first|second|third|fourth|last|primera?|segund[oa]|tercera?|cuart[oa]|ultim[oa])"
    rf" (week|semana|weekend|fin(?:de| de semana)|{'|'.join(DAY_NAMES)}) (?:of|in|de) $"
)
_WEEKS: Final = {"fi": 0, "pr": 0, "se": 1, "th": 2, "te": 2, "fo": 3, "cu": 3}  # By the first letters.


def _part_of(time: Time, part: str, nth: re.Match[str] | None) -> Time:
    if nth is not None:
        weeks, days = _WEEKS.get(nth[1][:2]), 6 if nth[2] in ("week", "semana") else nth[2] not in DAY_NAMES
        base = time.last - timedelta(6) if weeks is None else time.first + timedelta(7 * weeks)
        first = base + relativedelta(weekday=None if days == 6 else weekday(DAY_NAMES.get(nth[2], 5)))
        return time._replace(first=first, last=first + timedelta(days))
    first, last = _PARTS.get(part, (0, 0))
    if not part or (time.days > 31) != (last > 31) or time.days == 1:
        return time
    return time._replace(first=time.first + timedelta(first), last=time.first + timedelta(last - 1))


def _readings(token: Token, before: Token | None, is_all: bool) -> Iterator[_Plain]:
    if token.kind == "date":
        said: Date = token.value
        months = said[1] if isinstance(said[1], tuple) else None
        readings = [said] if months is None else [(said[0], months[0], months[1]), (said[0], months[1], months[0])]
        for year, month, day in readings:
            if isinstance(month, int) and 1 <= month <= 12 and not (day and day > 31):
                yield year, month, day
    elif token.kind == "number" and not token.extra and token.number in range(1900, 2101):
        yield int(token.number), None, None
    elif (
        token.text in MONTH_NAMES
        and (is_all or (before is not None and before.text in _BEFORE_A_MONTH))
        and token.text not in NO_MONTH_ALONE
        and not (token.text in ("may", "march") and before is not None and before.kind == "mark")
    ):
        yield None, MONTH_NAMES[token.text], None


_ASKS_WHEN: Final = re.compile(
    r"\b(?:when|cuando|quand|wann|(?:what|which) (?:\w+ )?(?:date|day|month|year|time)"
    r"|(?:que|cual) (?:\w+ )?(?:fecha|dia|mes|ano))\b"
)


def times_asked_for(question: str, expected: str) -> Sequence[Time]:
    """Return the times that an expected answer is; none where it is, or may be, something else."""
    content = [token for _, token in content_of(tokens_of(expected))]
    is_plain = all(token.kind in ("number", "time", "date") for token in content)
    if not is_plain and not _ASKS_WHEN.search(folded(question)):
        return ()
    times = times_in(expected)
    if _NEARLY.match(folded(expected)) and all(time.days == 1 for time in times):
        slack = timedelta(_SLACK)
        times = tuple(time._replace(first=time.first - slack, last=time.last + slack) for time in times)
    return times


_NEARLY: Final = re.compile(
    r"\W*(?:around|about|approximately|circa|alrededor|hacia|sobre|aproximadamente|mas o menos)\b"
)


def says_another_time(expected: str, text: str) -> bool:
    """Return whether a text says another date or time of day than an expected answer, and not that one too."""
    wanted, said = times_in(expected), times_in(text)
    if said and wanted and not any(time.agrees_with(one) for time in said for one in wanted):
        return True
    clocks, others = ([token for token in tokens_of(one) if token.kind == "time"] for one in (expected, text))
    return bool(clocks and others) and not any(same_token(one, other) for one in clocks for other in others)
