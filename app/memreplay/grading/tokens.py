"""Text as canonical tokens: words, numbers, amounts, dates and times, however they are spelled.

English and Spanish. Everything works on the form of the text; nothing here knows a dataset.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import Stemmer

from memreplay.grading.vocabulary import (
    CURRENCIES,
    MONTH_NAMES,
    NOT_ALONE,
    ORDINALS,
    SCALE,
    SMALL,
    STOP_WORDS,
    UNITS,
)


class Token(NamedTuple):
    """A word, number, date, amount, time or separator in canonical form, with its place in the folded text.

    ``kind`` is ``word`` (``value`` is the stem), ``number``, ``date``, ``time``, ``mark`` (punctuation that ends a
    clause), or ``unit``. ``extra`` is a number's currency or unit, where one is written.
    """

    kind: Literal["word", "number", "date", "time", "mark", "unit"]
    value: object
    text: str
    start: int
    end: int
    extra: str = ""


Date = tuple[int | None, int | None, int | None]
"""Year, month, day; None where it is not said."""


_TYPOGRAPHIC: Final = {0x2018: "'", 0x2019: "'", 0x2212: "-", 0xA0: " ", 0x202F: " "}
_NO_ACCENTS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
"""Letters that Unicode does not take apart into a plain letter and an accent."""


@lru_cache(maxsize=16384)
def folded(text: str) -> str:
    """Lower case, without accents and apostrophes; typographic signs in their plain form."""
    if text.isascii():
        return re.sub(r"'s\b", "", text.casefold()).replace("'", "")
    plain = unicodedata.normalize("NFKD", text.translate(_TYPOGRAPHIC))
    letters = "".join(char for char in plain.casefold() if not unicodedata.combining(char)).translate(_NO_ACCENTS)
    return re.sub(r"'s\b", "", letters).replace("'", "")


_LEXER: Final = re.compile(
    r"""[ ]*(?:
      (?P<letters>(?!v\d+\.\d)[^\W\d_][^\W_]*)
    | (?P<iso>\b\d{4}-\d{1,2}-\d{1,2}\b)
    | (?P<slashed>\b\d{1,2}[/.]\d{1,2}[/.](?:\d{4}|\d{2})\b)
    | (?P<clock>\b\d{1,2}[:.h]\d{2}(?::\d{2})?\s*(?:[ap]\.?m\b\.?|h\b|hrs?\b)
               |\b\d{1,2}:\d{2}(?::\d{2})?(?![\d:])
               |\b\d{1,2}\s*[ap]\.?m\b\.?)
    | (?P<flag>(?<![\w-])--[a-z][\w-]+)
    | (?P<version>(?:\b|(?<=\bv))\d+(?:\.\d+){2,}\b)
    | (?P<v>\bv(?=\d+\.\d))
    | (?P<ordinal>\b\d+(?:st|nd|rd|th|º|ª)(?!\w))
    | (?P<number>(?:(?<![^\W_])|(?<=\bv))(?<![.])[+-]?\d+(?:[,. ]\d{3})+(?:[.,]\d+)?(?![\d])
                |(?:(?<![^\W_])|(?<=\bv))(?<![.,])[+-]?\d+(?:[.,]\d+)?)
    | (?P<sign>[£$€¥%°]c?|°[cf])
    | (?P<word>[^\W_]+)
    | (?P<mark>[.!?:](?=[\s"'”’)\]*_]|$)|[;()\n—–/]|(?<=\S[ ])-(?=[ ])|,(?!\d))
    )""",
    re.VERBOSE,
)
_MERIDIEM: Final = re.compile(r"([ap])\.?m")


@lru_cache(maxsize=2)
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language)


@lru_cache(maxsize=65536)
def _stem(word: str) -> tuple[str, str]:
    """The word's stem in English and in Spanish. The language of a short text is unknown, so both are compared."""
    return str(_stemmer("english").stemWord(_american(word))), str(_stemmer("spanish").stemWord(word))


def _american(word: str) -> str:
    """One spelling for "colour" and "color", "organise" and "organize", "centre" and "center"."""
    word = re.sub(r"(?<=[a-z]{2})our", "or", word)
    word = re.sub(r"(?<=[a-z]{3})is(?=(?:e|es|ed|ing|ations?)$)", "iz", word)
    word = re.sub(r"(?<=[a-z]{2}t)re(?=s?$)", "er", word)
    return "gray" if word == "grey" else word


@lru_cache(maxsize=16384)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text, canonical."""
    plain = folded(text)
    return tuple(_with_dates(_with_units(_with_times(_with_numbers(_raw(plain))))))


def _raw(plain: str) -> list[Token]:
    found: list[Token] = []
    for match in _LEXER.finditer(plain):
        kind = match.lastgroup
        assert kind is not None
        written, at = match[kind], match.span(kind)
        if kind == "letters":
            found.append(Token("word", _stem(written), written, *at))
        elif kind == "v":
            continue
        elif kind == "iso":
            year, month, day = map(int, written.split("-"))
            found.append(Token("date", (year, month, day), written, *at))
        elif kind == "slashed":
            first, second, year = map(int, re.split(r"[/.]", written))
            year += 2000 if year < 100 else 0
            found.append(Token("date", (year, (first, second), None), written, *at))
        elif kind == "clock":
            found.append(Token("time", _time(written), written, *at))
        elif kind == "number":
            found.append(Token("number", _number(written), written, *at))
        elif kind == "ordinal":
            found.append(Token("number", float(re.match(r"\d+", written).group()), written, *at))  # type: ignore[union-attr]
        elif kind == "sign":
            found.append(Token("unit", CURRENCIES.get(written) or UNITS.get(written, written), written, *at))
        elif kind in ("version", "flag"):
            found.append(Token("word", (written, written), written, *at))
        elif written == "/" and not _parts_alternatives(plain, at[0]):
            continue
        elif kind == "mark":
            found.append(Token("mark", written, written, *at))
        else:
            found.extend(_split_word(written, *at))
    return found


def _parts_alternatives(plain: str, at: int) -> bool:
    """Whether a slash stands between two words ("blue/green"), not in a path or an address."""
    start, end = plain.rfind(" ", 0, at) + 1, plain.find(" ", at)
    return re.fullmatch(r"\w+/\w+[.,;]?", plain[start : end if end >= 0 else len(plain)]) is not None


def _split_word(written: str, start: int, end: int) -> Iterator[Token]:
    """``150cm`` and ``3kg`` are a number and a unit; anything else is one word."""
    glued = re.fullmatch(r"(\d+)([a-z%]+)", written) if written[0].isdigit() else None
    if glued and (glued[2] in UNITS or glued[2] in CURRENCIES):
        middle = start + len(glued[1])
        yield Token("number", float(glued[1]), glued[1], start, middle)
        yield Token("unit", UNITS.get(glued[2]) or CURRENCIES[glued[2]], glued[2], middle, end)
    else:
        yield Token("word", _stem(written), written, start, end)


def _number(written: str) -> float:
    """``19,600``, ``19.600`` and ``19 600`` are grouped; a single separator before one or two digits is a point."""
    sign = -1.0 if written.startswith("-") else 1.0
    digits = written.lstrip("+-")
    grouped = re.fullmatch(r"(\d{1,3}(?:([,. ])\d{3})(?:\2\d{3})*)(?:[.,](\d+))?", digits)
    if grouped and not grouped[1].startswith("0"):
        whole = re.sub(r"[,. ]", "", grouped[1])
        return sign * float(f"{whole}.{grouped[3] or 0}")
    return sign * float(re.sub(r" ", "", digits).replace(",", "."))


def _time(written: str) -> tuple[int, int]:
    """Hour (0 to 23) and minute."""
    parts = re.findall(r"\d+", written)
    hour, minute = int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    meridiem = _MERIDIEM.search(written)
    if meridiem and hour <= 12:
        hour = hour % 12 + (12 if meridiem[1] == "p" else 0)
    return hour, minute


def _with_numbers(found: list[Token]) -> list[Token]:
    """Numbers in words become numbers: "two hundred and fifty" is one."""
    result: list[Token] = []
    index = 0
    while index < len(found):
        if found[index].kind != "number" and found[index].text not in _MAY_BEGIN_A_NUMBER:
            result.append(found[index])
            index += 1
            continue
        run, value = _spelled(found, index)
        multiple = _MULTIPLES.get(found[index].text)
        if multiple:
            value, noun = multiple
            start, end = found[index].start, found[index].end
            result.append(Token("number", float(value), found[index].text, start, end))
            result.append(Token("word", _stem(noun), noun, start, end))
            index += 1
        elif run and not (run == 1 and found[index].text in NOT_ALONE and not _stands_for_a_number(found, index)):
            last = found[index + run - 1]
            text = " ".join(token.text for token in found[index : index + run])
            result.append(Token("number", value, text, found[index].start, last.end))
            index += run
        elif _spells(found, index, ("half", "an", "hour")) or _spells(found, index, ("media", "hora")):
            length = 3 if found[index].text == "half" else 2
            last = found[index + length - 1]
            result.append(Token("number", 30.0, "half an hour", found[index].start, last.end, "min"))
            index += length
        else:
            result.append(found[index])
            index += 1
    return result


_MULTIPLES: Final = {"twice": (2, "times"), "thrice": (3, "times")}
_MAY_BEGIN_A_NUMBER: Final = frozenset({*SMALL, *ORDINALS, *SCALE, *_MULTIPLES, "half", "media"})
_HALVES: Final = (("and", "a", "half"), ("y", "medio"), ("y", "media"))


def _spells(found: Sequence[Token], index: int, words: Sequence[str]) -> bool:
    return [token.text for token in found[index : index + len(words)]] == list(words)


def _stands_for_a_number(found: Sequence[Token], index: int) -> bool:
    """Whether "one" or "second" counts something: it is the whole text, or a noun follows."""
    if index + 1 < len(found):
        follower = found[index + 1]
        return follower.kind == "word" and follower.text not in STOP_WORDS
    return index == 0


def _spelled(found: Sequence[Token], index: int) -> tuple[int, float]:
    """How many tokens from here spell one number, and the number."""
    total, current, length, used = 0, 0, 0, 0
    last_small = 1000
    while index + length < len(found):
        token = found[index + length]
        word = token.text
        if token.kind == "number" and length == 0:
            follower = found[index + 1] if index + 1 < len(found) else None
            if follower is None or not isinstance(token.value, float):
                return 0, 0.0
            if follower.text in SCALE:
                return 2, token.value * SCALE[follower.text]
            if follower.text == "k" and follower.start == token.end:
                return 2, round(token.value * 1000, 6)
            half = next((words for words in _HALVES if _spells(found, index + 1, words)), None)
            return (1 + len(half), token.value + 0.5) if half else (0, 0.0)
        if token.kind != "word":
            break
        if word in SMALL and (length == 0 or (last_small > SMALL[word] and not (last_small < 20))):
            current, last_small = current + SMALL[word], SMALL[word]
        elif word in ORDINALS and (length == 0 or last_small >= 20):
            current += ORDINALS[word]
            used = length + 1
            length += 1
            break
        elif word in SCALE and (current or (length == 0 and word == "mil")):
            scale = SCALE[word]
            if scale == 100:
                current *= 100
            else:
                total, current = total + max(current, 1) * scale, 0
            last_small = 1000
        elif word in ("and", "y") and used and (last_small >= 20 or last_small == 1000):
            length += 1
            continue
        else:
            break
        length += 1
        used = length
    if not used:
        return 0, 0.0
    half = next((words for words in _HALVES if _spells(found, index + used, words)), None)
    is_time = index > 0 and found[index - 1].text in ("la", "las")
    if half and not is_time:
        return used + len(half), total + current + 0.5
    return used, float(total + current)


_DAYTIMES: Final[dict[tuple[str, ...], str]] = {
    ("in", "the", "morning"): "am",
    ("in", "the", "afternoon"): "pm",
    ("in", "the", "evening"): "pm",
    ("at", "night"): "pm",
    ("de", "la", "manana"): "am",
    ("de", "la", "tarde"): "pm",
    ("de", "la", "noche"): "pm",
}


def _with_times(found: list[Token]) -> list[Token]:
    """Times in words: "half past six", "nine o'clock", "seven in the evening", "las seis y media"."""
    result: list[Token] = []
    index = 0
    while index < len(found):
        if found[index].kind != "number" and found[index].text not in _MAY_BEGIN_A_TIME:
            result.append(found[index])
            index += 1
            continue
        time, used = _time_at(found, index)
        if used and time is not None:
            first, last = found[index], found[index + used - 1]
            result.append(Token("time", time, "time", first.start, last.end))
            index += used
        else:
            result.append(found[index])
            index += 1
    return result


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
    place, minutes, is_time = index, 0, False
    if texts[:2] in (["half", "past"], ["quarter", "past"], ["quarter", "to"]):
        minutes = 30 if texts[0] == "half" else (15 if texts[1] == "past" else -15)
        place, is_time = index + 2, True
    hour = _whole(found[place]) if place < len(found) else None
    if hour is None or not 0 <= hour <= 24:
        return None, 0
    place += 1
    spanish = index > 0 and found[index - 1].text in ("la", "las")
    if (
        spanish
        and place + 1 < len(found)
        and (pair := (found[place].text, found[place + 1].text)) in _SPANISH_TIMES
    ):
        minutes, place, is_time = _SPANISH_TIMES[pair], place + 2, True
    if place < len(found) and found[place].text == "oclock":
        place, is_time = place + 1, True
    for words, half in _DAYTIMES.items():
        if _spells(found, place, words) and 1 <= hour <= 12:
            hour = hour % 12 + (12 if half == "pm" else 0)
            place, is_time = place + len(words), True
            break
    if not is_time:
        return None, 0
    whole = (hour * 60 + minutes) % (24 * 60)
    return (whole // 60, whole % 60), place - index


_SPANISH_TIMES: Final = {("y", "media"): 30, ("y", "cuarto"): 15, ("menos", "cuarto"): -15}


_CURRENCY_CODES: Final = frozenset(CURRENCIES.values())


def _with_units(found: list[Token]) -> list[Token]:
    """A number takes the currency before or after it, or the unit after it."""
    result: list[Token] = []
    for index, token in enumerate(found):
        if token.kind == "number":
            before = result[-1] if result else None
            if before is not None and before.kind == "unit" and before.value in _CURRENCY_CODES:
                result.pop()
                token = Token("number", token.value, token.text, before.start, token.end, str(before.value))
            result.append(token)
            continue
        unit = _unit_of(token)
        last = result[-1] if result else None
        if unit and last is not None and last.kind == "number" and not last.extra:
            result[-1] = Token("number", last.value, last.text, last.start, token.end, unit)
        elif token.text == "per" and index + 1 < len(found) and found[index + 1].text == "cent":
            continue
        else:
            result.append(token)
    return result


def _unit_of(token: Token) -> str:
    if token.kind == "unit":
        return str(token.value)
    return UNITS.get(token.text) or CURRENCIES.get(token.text, "") if token.kind == "word" else ""


def _with_dates(found: list[Token]) -> list[Token]:
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
    is_plain = token.kind == "number" and not token.extra and isinstance(token.value, float)
    return int(token.value) if is_plain and token.value.is_integer() else None  # type: ignore[attr-defined, call-overload]


def _is_day(found: Sequence[Token], place: int, month: int | None) -> bool:
    """Whether a small number beside a month is its day: "7 May", "7th of May", "May 7"."""
    if month is not None:
        return True
    ahead = [token for token in found[place + 1 : place + 3] if token.text not in _LINKS]
    return bool(ahead) and ahead[0].kind == "word" and ahead[0].text in MONTH_NAMES
