"""Reads times and dates that take several words: "half past six", "las seis y media", "the 7th of May, 2023"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memreplay.grading.lexing import Date, Token, spells
from memreplay.grading.vocabulary import MONTH_NAMES, STOP_WORDS

_DAYTIMES: Final[dict[tuple[str, ...], str]] = {
    ("in", "the", "morning"): "am",
    ("in", "the", "afternoon"): "pm",
    ("in", "the", "evening"): "pm",
    ("at", "night"): "pm",
    ("am",): "am",
    ("a", "m"): "am",
    ("pm",): "pm",
    ("p", "m"): "pm",
    ("de", "la", "manana"): "am",
    ("de", "la", "madrugada"): "am",
    ("de", "la", "tarde"): "pm",
    ("de", "la", "noche"): "pm",
}


def with_times(found: list[Token]) -> list[Token]:
    """Times in words: "half past six", "nine o'clock", "seven in the evening", "las seis y media".

    An hour alone ("at ten") stays a number, with "at" as its unit, since "at" does not make it a time for certain.
    """
    result: list[Token] = []
    index = 0
    while index < len(found):
        if found[index].kind not in ("number", "time") and found[index].text not in _MAY_BEGIN_A_TIME:
            result.append(found[index])
            index += 1
            continue
        time, used = _time_at(found, index)
        if used and time is not None:
            first, last = found[index], found[index + used - 1]
            result.append(Token("time", time, "time", first.start, last.end))
            index += used
        elif (half := _half_of_range(found, index)) is not None:
            hour = int(found[index].number) % 12 + (12 if half == "p" else 0)
            result.append(found[index]._replace(kind="time", value=(hour, 0)))
            index += 1
        elif _is_an_hour(found, index):
            result.append(found[index]._replace(extra=AT))
            index += 1
        else:
            result.append(found[index])
            index += 1
    return result


AT: Final = "at"
_RANGE: Final = frozenset("to and until till a y hasta - –".split())


def _half_of_range(found: Sequence[Token], index: int) -> str | None:
    """The half of the day of "9" in "9 to 11 am" or "9-11am"; None where no such range begins."""
    hour = _whole(found[index])
    after = [token for token in found[index + 1 : index + 3] if token.text not in _RANGE]
    if hour is None or not 0 < hour <= 12 or not after or after[0].kind != "time" or hour >= after[0].clock[0] % 12:
        return None
    meridiem = re.search(r"([ap])\.?m", after[0].text)
    return meridiem[1] if meridiem else None


def _is_an_hour(found: Sequence[Token], index: int) -> bool:
    before = found[index - 1].text if index else ""
    after = found[index + 1] if index + 1 < len(found) else None
    hour = _whole(found[index])
    ends = after is None or after.kind == "mark" or after.text in STOP_WORDS
    return before in ("at", "las") and hour is not None and 0 <= hour <= 24 and ends


_NAMED_TIMES: Final = {
    "noon": (12, 0),
    "midday": (12, 0),
    "mediodia": (12, 0),
    "midnight": (0, 0),
    "medianoche": (0, 0),
}
_MAY_BEGIN_A_TIME: Final = frozenset({*_NAMED_TIMES, "half", "quarter"})


def _time_at(found: Sequence[Token], index: int) -> tuple[tuple[int, int] | None, int]:
    """The time in words that begins here, and how many tokens it takes."""
    texts = [token.text for token in found[index : index + 3]]
    if texts[0] in _NAMED_TIMES:
        return _NAMED_TIMES[texts[0]], 1
    if texts[0] == "12" and texts[1:2] and texts[1] in _NAMED_TIMES:
        return _NAMED_TIMES[texts[1]], 2
    if found[index].kind == "time" and (half := _daytime(found, index + 1)):
        clock, minute = found[index].clock
        return (clock % 12 + (12 if half[0] == "pm" else 0) if clock <= 12 else clock, minute), 1 + half[1]
    place, minutes, is_time = index, 0, False
    if texts[:2] in (["half", "past"], ["quarter", "past"], ["quarter", "to"]):
        minutes = 30 if texts[0] == "half" else (15 if texts[1] == "past" else -15)
        place, is_time = index + 2, True
    elif (past := _minutes_past(found, index)) is not None:
        minutes, place, is_time = past[0], index + past[1], True
    hour = _whole(found[place]) if place < len(found) else None
    if hour is None or not 0 <= hour <= 24:
        return None, 0
    place += 1
    if (
        index > 0
        and found[index - 1].text in ("la", "las")
        and (added := _spanish_minutes(found, place)) is not None
    ):
        minutes, place, is_time = added, place + 2, True
    if place < len(found) and found[place].text == "oclock":
        place, is_time = place + 1, True
    if 1 <= hour <= 12 and (daytime := _daytime(found, place)):
        hour = hour % 12 + (12 if daytime[0] == "pm" else 0)
        place, is_time = place + daytime[1], True
    if not is_time:
        return None, 0
    whole = (hour * 60 + minutes) % (24 * 60)
    return (whole // 60, whole % 60), place - index


def _daytime(found: Sequence[Token], place: int) -> tuple[str, int] | None:
    """Whether the half of the day is said here, and in how many tokens."""
    return next(((half, len(words)) for words, half in _DAYTIMES.items() if spells(found, place, words)), None)


def _minutes_past(found: Sequence[Token], index: int) -> tuple[int, int] | None:
    """The minutes of "twenty past" or "ten minutes to", and how many tokens say them."""
    minutes = _whole(found[index])
    if minutes is None or not 0 < minutes < 60:
        return None
    says_minutes = index + 1 < len(found) and found[index + 1].text == "minutes"
    place = index + 1 + says_minutes
    if spells(found, place, ("past",)):
        return minutes, place + 1 - index
    return (-minutes, place + 1 - index) if says_minutes and spells(found, place, ("to",)) else None


def _spanish_minutes(found: Sequence[Token], place: int) -> int | None:
    """The minutes of "y media", "menos cuarto" or "y veinte"."""
    if place + 1 >= len(found) or found[place].text not in ("y", "menos"):
        return None
    minutes = {"media": 30, "cuarto": 15}.get(found[place + 1].text) or _whole(found[place + 1])
    if minutes is None or not 0 < minutes < 60:
        return None
    return minutes if found[place].text == "y" else -minutes


def with_dates(found: list[Token]) -> list[Token]:
    """Day, month and year in any order become one date; a month by its name alone stays a word."""
    result: list[Token] = []
    index = 0
    while index < len(found):
        if found[index].kind != "number" and found[index].text not in MONTH_NAMES:
            result.append(found[index])
            index += 1
            continue
        date, used = _date_at(found, index)
        if used:
            last = found[index + used - 1]
            text = " ".join(token.text for token in found[index : index + used])
            result.append(Token("date", date, text, found[index].start, last.end))
            index += used
        else:
            result.append(found[index])
            index += 1
    return result


_LINKS: Final = frozenset({"of", "de", "del", "the", "el", ","})


def _date_at(found: Sequence[Token], index: int) -> tuple[Date, int]:
    """The date that begins here, and how many tokens it takes; 0 where none does, or only a month."""
    day = month = year = None
    used = 0
    place = index
    while place < len(found):
        token = found[place]
        if token.kind == "word" and month is None and token.text in MONTH_NAMES:
            month = MONTH_NAMES[token.text]
        elif (value := _whole(token)) is not None:
            if month is not None and year is None and 1000 <= value <= 2999:
                year = value
            elif day is None and 1 <= value <= 31 and _is_day(found, place, month):
                day = value
            else:
                break
        elif used and token.text in _LINKS:
            place += 1
            continue
        else:
            break
        place += 1
        used = place - index
        if year is not None:
            break
    if month is None or (day is None and year is None):
        return (None, None, None), 0
    return (year, month, day), used


def _whole(token: Token) -> int | None:
    is_whole = token.kind == "number" and not token.extra and token.number.is_integer()
    return int(token.number) if is_whole else None


def _is_day(found: Sequence[Token], place: int, month: int | None) -> bool:
    """Whether a small number beside a month is its day: "7 May", "7th of May", "May 7"."""
    if month is not None:
        return True
    ahead = [token for token in found[place + 1 : place + 3] if token.text not in _LINKS]
    return bool(ahead) and ahead[0].kind == "word" and ahead[0].text in MONTH_NAMES
