"""Text as canonical tokens, and when two of them mean the same, however they are spelled.

Times and dates of several words are read here: "half past six", "las seis y media", "the 7th of May, 2023". English
and Spanish. Everything works on the form of the text; nothing here knows a dataset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from memreplay.grading.lexing import Date, Token, folded, lexed, rewritten, spells
from memreplay.grading.quantities import PAIR, same_amount, with_numbers, with_phrases, with_units
from memreplay.grading.vocabulary import DAY_NAMES, MONTH_NAMES, NO_MONTH_ALONE, STOP_WORDS


@lru_cache(maxsize=16384)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text, canonical."""
    return tuple(with_dates(with_units(with_times(with_numbers(with_phrases(lexed(folded(text))))))))


def content_of(found: Sequence[Token]) -> list[tuple[int, Token]]:
    """Tokens that carry meaning, with their indexes; all but marks where nothing else is left."""
    kept = [(index, token) for index, token in enumerate(found) if token.kind != "mark" and not is_stop_word(token)]
    return kept or [(index, token) for index, token in enumerate(found) if token.kind != "mark"]


def is_stop_word(token: Token) -> bool:
    return token.kind == "word" and token.text in STOP_WORDS


def stem_keys(word: Token) -> frozenset[tuple[int, str]]:
    """The stems of a word, each with its language. Two words are the same token if they share one."""
    return frozenset(enumerate(word.stems))


def same_token(wanted: Token, given: Token) -> bool:
    """Whether a token of a text says what a token of an answer asks for. A text may say more: a whole date."""
    if wanted.kind == given.kind == "word":
        (english, spanish), (its_english, its_spanish) = wanted.stems, given.stems
        if english == its_english or _same_name(wanted.text, given.text):
            return True
        if spanish == its_spanish and _inflected_alike(spanish, wanted.text, given.text):
            return True
        return english[:1].isdigit() and _same_telephone(wanted, given)
    match wanted.kind, given.kind:
        case "number", "number":
            return same_amount(wanted, given) and not _differ_as_versions(wanted, given)
        case "date", "date":
            return _same_date(wanted.date, given.date)
        case "number", "date":
            # A year alone is answered by any date in it.
            return not wanted.extra and wanted.value == given.date[0]
        case "word", "date":
            return wanted.text in MONTH_NAMES and MONTH_NAMES[wanted.text] == given.date[1]
        case "number", "time":
            return _same_hour(wanted, given)
        case "time", "number":
            hour, minute = divmod(given.number, 100)
            return given.extra == PAIR and (hour % 12, minute) == (wanted.clock[0] % 12, wanted.clock[1])
        case ("word", "number") | ("number", "word"):
            # A telephone number, grouped in one of them.
            return wanted.kind != given.kind and _same_telephone(wanted, given)
        case _:
            return wanted.kind == given.kind and wanted.value == given.value


def _inflected_alike(stem: str, one: str, other: str) -> bool:
    """Whether two words with one Spanish stem are forms of one word. "Canada" is no participle of "can".

    A long ending belongs to a verb, whose other forms have one too.
    """
    short, long = sorted((one[len(stem) :], other[len(stem) :]), key=len)
    return len(long) <= 2 or short not in ("", "s")


def _same_telephone(wanted: Token, given: Token) -> bool:
    """Whether two are one telephone number, with or without the prefix of its country."""
    short, full = sorted((_digits_of(wanted).lstrip("0"), _digits_of(given).lstrip("0")), key=len)
    return bool(short) and full.endswith(short) and len(full) - len(short) <= 3


def _digits_of(token: Token) -> str:
    written = token.stems[0] if token.kind == "word" else token.text
    return written if written.isdigit() and len(written) >= 7 else ""


def _same_hour(wanted: Token, given: Token) -> bool:
    """ "At 10" is 10:00, by day or by night; 90 minutes are "1h30"."""
    hour, minute = given.clock
    if wanted.extra == AT:
        return minute == 0 and hour % 12 == wanted.number % 12
    if re.fullmatch(r"\d+h\d+", given.text) is None:
        return False
    return same_amount(wanted, Token("number", float(60 * hour + minute), given.text, 0, 0, "min"))


def _same_name(wanted: str, given: str) -> bool:
    """Two names of one month or weekday: "Sept" and "September", "Tuesday" and "martes"."""
    for names in (MONTH_NAMES, DAY_NAMES):
        if wanted in names and given in names and given not in NO_MONTH_ALONE:
            return names[wanted] == names[given]
    return False


def _differ_as_versions(wanted: Token, given: Token) -> bool:
    """3.1 and 3.10 are two versions; with a unit or a currency they are one amount."""
    decimals = [re.search(r"[.,](\d+)$", token.text) for token in (wanted, given)]
    is_plain = not wanted.extra and not given.extra
    return is_plain and all(decimals) and len({found[1] for found in decimals if found}) > 1


def _same_date(wanted: Date, given: Date) -> bool:
    """What is asked for must be said; a reply may say more ("7 May 2023" for "May 2023")."""
    wanted_year, wanted_month, wanted_day = wanted
    year, month, day = given
    if isinstance(month, tuple) or isinstance(wanted_month, tuple):
        return _slashed_agrees(wanted, given)
    if wanted_year is not None and year is not None and wanted_year != year:
        return False
    if wanted_month != month or (wanted_day is not None and wanted_day != day):
        return False
    return wanted_year is None or year is not None


def _slashed_agrees(wanted: Date, given: Date) -> bool:
    """``7/5/2023`` is 7 May or July 5; two such dates are written in one order."""
    if isinstance(wanted[1], tuple) and isinstance(given[1], tuple):
        return wanted == given
    return any(_same_date(one, other) for one in _readings(wanted) for other in _readings(given))


def _readings(date: Date) -> list[Date]:
    month = date[1]
    if not isinstance(month, tuple):
        return [date]
    first, second = month
    return [(date[0], m, d) for d, m in ((first, second), (second, first)) if m <= 12]


_DAYTIMES: Final[dict[tuple[str, ...], str]] = {
    tuple(words.split()): half
    for half, spellings in {
        "am": "in the morning/am/a m/de la manana/de la madrugada",
        "pm": "in the afternoon/in the evening/at night/pm/p m/de la tarde/de la noche",
    }.items()
    for words in spellings.split("/")
}


def with_times(found: list[Token]) -> list[Token]:
    """Times in words: "half past six", "nine o'clock", "seven in the evening", "las seis y media".

    An hour alone ("at ten") stays a number, with "at" as its unit, since "at" does not make it a time for certain.
    """
    return rewritten(found, _time_token_at)


def _time_token_at(found: Sequence[Token], index: int) -> tuple[list[Token], int]:
    token = found[index]
    if token.kind not in ("number", "time") and token.text not in _MAY_BEGIN_A_TIME:
        return [], 0
    time, used = _time_at(found, index)
    if used and time is not None:
        return [Token("time", time, "time", token.start, found[index + used - 1].end)], used
    if (half := _half_of_range(found, index)) is not None:
        return [token._replace(kind="time", value=(int(token.number) % 12 + (12 if half == "p" else 0), 0))], 1
    return ([token._replace(extra=AT)], 1) if _is_an_hour(found, index) else ([], 0)


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
    **dict.fromkeys(("noon", "midday", "mediodia"), (12, 0)),
    **dict.fromkeys(("midnight", "medianoche"), (0, 0)),
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
    elif texts[0] == "half" and index > 0 and found[index - 1].text == "at":
        minutes, place, is_time = 30, index + 1, True
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
    return rewritten(found, _date_token_at)


def _date_token_at(found: Sequence[Token], index: int) -> tuple[list[Token], int]:
    if found[index].kind != "number" and found[index].text not in MONTH_NAMES:
        return [], 0
    date, used = _date_at(found, index)
    taken = found[index : index + used]
    text = " ".join(token.text for token in taken)
    return ([Token("date", date, text, taken[0].start, taken[-1].end)] if used else []), used


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
    is_whole = token.kind == "number" and token.extra in ("", PAIR) and token.number.is_integer()
    return int(token.number) if is_whole else None


def _is_day(found: Sequence[Token], place: int, month: int | None) -> bool:
    """Whether a small number beside a month is its day: "7 May", "7th of May", "May 7"."""
    if month is not None:
        return True
    ahead = [token for token in found[place + 1 : place + 3] if token.text not in _LINKS]
    return bool(ahead) and ahead[0].kind == "word" and ahead[0].text in MONTH_NAMES
