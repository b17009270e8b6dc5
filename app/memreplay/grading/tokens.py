"""Text as canonical tokens, and when two of them mean the same, however they are spelled.

English and Spanish. Everything works on the form of the text; nothing here knows a dataset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from memreplay.grading.lexing import Date, Token, folded, lexed
from memreplay.grading.quantities import same_amount, with_numbers, with_signs, with_units
from memreplay.grading.times import AT, with_dates, with_times
from memreplay.grading.vocabulary import DAY_NAMES, MONTH_NAMES, NO_MONTH_ALONE, STOP_WORDS


@lru_cache(maxsize=16384)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text, canonical."""
    return tuple(with_dates(with_units(with_times(with_numbers(with_signs(lexed(folded(text))))))))


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
