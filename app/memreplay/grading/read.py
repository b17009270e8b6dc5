"""Reads text as tokens: words, numbers, amounts, dates and times in one spelling, and says which mean the same.

A text is cut into what its spelling alone shows (:func:`lexed`); then what takes several tokens becomes one, such
as numbers in words, amounts with units, times and dates: "two dozen" is 24, "an hour and a half" 90 minutes, "las
seis y media" 6:30. English and Spanish.
"""

from __future__ import annotations

import json
import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import takewhile
from math import isclose
from typing import Any, Final, Literal, NamedTuple

import Stemmer

from memreplay.grading.vocabulary import (
    CURRENCIES,
    DAY_NAMES,
    FACTORS,
    IMPERIAL,
    MONTH_NAMES,
    NO_MONTH_ALONE,
    NOT_ALONE,
    ORDINALS,
    SAME_WORDS,
    SCALE,
    SHORT_SCALES,
    SMALL,
    STOP_WORDS,
    UNITS,
)

_TAG = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
_THOUGHTS = (
    (rf"<{_TAG}\s*>", rf"</{_TAG}\s*>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    ("◁think▷", "◁/think▷"),
    (r"<\|channel\|>(?:analysis|commentary)\b", r"<\|channel\|>final(?:<\|constrain\|>\w+)?<\|message\|>"),
)
"""How thoughts begin and end in a reply, in the tags of each family of models."""
# Some servers drop the opening tag, so everything before a closing tag is reasoning.
_CLOSED = re.compile(rf"\A.*(?:{'|'.join(end for _, end in _THOUGHTS)})", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(rf"(?:{'|'.join(begin for begin, _ in _THOUGHTS)}).*\Z", re.IGNORECASE | re.DOTALL)
_LAST_TOKEN = re.compile(r"<\|(?:end|return|im_end|eot_id)\|>\s*\Z")


def without_reasoning(reply: str) -> str:
    """Return the reply after its last reasoning block; empty if a block is never closed."""
    return _LAST_TOKEN.sub("", _OPEN.sub("", _CLOSED.sub("", reply))).strip()


_MOST_READ = 6_000  # Characters.


def shortened(reply: str) -> str:
    """Return the beginning and the end of a reply that repeats itself without end; any other reply unchanged."""
    if len(reply) <= _MOST_READ:
        return reply
    return f"{reply[: _MOST_READ // 2]}\n{reply[-_MOST_READ // 2 :]}"


_JSON_ANSWER = re.compile(
    r'"(?:(?:answer|choice)?[_ ]?index|answer|choice|option|respuesta|opcion)"'
    r'\s*:\s*(?:\[(?=[^,\]]*\])\s*)?("(?:[^"\\]|\\.)*"|[\d.]+)',
    re.IGNORECASE,
)


def json_values(text: str) -> list[str] | None:
    """Return the values of the answer keys of a reply that is one JSON object; None for any other reply."""
    body = re.sub(r"\A```(?:json)?\s*|\s*```\Z", "", text.strip())
    if not re.fullmatch(r"\{.*\}", body, re.DOTALL):
        return None
    try:
        json.loads(body, strict=False)
        return [str(json.loads(value, strict=False)) for value in _JSON_ANSWER.findall(body)]
    except (ValueError, RecursionError):
        return None


_Kind = Literal["word", "number", "date", "time", "mark", "unit"]
Date = tuple[int | None, int | tuple[int, int] | None, int | None]
"""Year, month, day; None where it is not said. "7/5" is a month of (7, 5): either may be the day."""


class Token(NamedTuple):
    """A word, number, date, amount, time or separator in canonical form, with its place in the folded text.

    ``value`` is the stems of a word in English and in Spanish, a number, a ``Date``, hour and minute of a time, the
    punctuation of a mark, or a unit. ``extra`` is a number's currency or unit, where one is written.
    """

    kind: _Kind
    value: Any
    text: str
    start: int
    end: int
    extra: str = ""

    @property
    def number(self) -> float:
        """Return the value of a number."""
        return float(self.value)


_TYPOGRAPHIC: Final = {0x2018: "'", 0x2019: "'", 0x2212: "-", 0xA0: " ", 0x202F: " "}
_NO_ACCENTS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
"""Letters that Unicode does not take apart into a plain letter and an accent."""
_SHORT_YEAR: Final = re.compile(r"(?<!\w)'(\d\d)\b(?![:.]?\d)")
_SHORTENED: Final = re.compile(
    r"(?<=\b(?:mr|ms|dr|sr|st))\.(?=\s[a-z])|(?<=\b(?:mrs|dra|sra))\.(?=\s[a-z])|(?<=\bprof)\.(?=\s[a-z])"
    r"|(?<=\b(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec))\.(?=\s\d)|(?<=\bsept)\.(?=\s\d)|(?<=\bno)\.(?=\s\d)"
)
"""The point of an abbreviation, which ends no sentence."""
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


@lru_cache(maxsize=16384)
def folded(text: str) -> str:
    """Lower case, without accents and apostrophes; typographic signs in their plain form."""
    plain = text if text.isascii() else _NOT_ASCII.sub(lambda run: _without_accents(run[0]), text)
    if "'" in plain:
        plain = _SHORT_YEAR.sub(lambda year: ("19" if year[1] > "30" else "20") + year[1], plain)
    return _SHORTENED.sub("", re.sub(r"'s\b", "", plain.casefold()).replace("'", ""))


@lru_cache(maxsize=4096)
def _without_accents(letters: str) -> str:
    """Return what is not ASCII of a text, which is little of it."""
    apart = unicodedata.normalize("NFKD", letters.translate(_TYPOGRAPHIC)).casefold()
    return "".join(char for char in apart if not unicodedata.combining(char)).translate(_NO_ACCENTS)


_LEXER: Final = re.compile(
    r"""[ ]*(?:
      (?P<unit>per[ ]cent|por[ ]cien(?:to)?
              |(?:degrees|grados)[ ](?:[cf]|celsius|centigrados?|centigrade|fahrenheit))\b
    | (?P<flag>(?<![\w-])--[a-z][\w-]+ | (?<![\w-])(?:ab|[a-fo])[+-](?=[\s.,;!?)]|$))
    | (?P<letters>(?!v\d|(?:us|au|ca)\$)[^\W\d_][^\W_]*)
    | (?P<iso>\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b)
    | (?P<month>(?<![\w/.,-])(?:(?:0?[1-9]|1[0-2])/(?:19|20)\d\d|(?:19|20)\d\d-(?:0[1-9]|1[0-2]))(?![\w/-]))
    | (?P<slashed>\b\d{1,2}[/.]\d{1,2}[/.](?:\d{4}|\d{2})\b | \b\d{1,2}-\d{1,2}-\d{4}\b
                 | (?:(?<=\bon[ ])|(?<=\bel[ ])|(?<=\buntil[ ])|(?<=\bsince[ ]))\d{1,2}/\d{1,2}\b
                 | (?<![\w/.,-])(?:\d{1,2}/0[1-9]|0[1-9]/\d{1,2})(?![\w/]|[.,]\d))
    | (?P<clock>\b\d{1,2}[:.h]\d{2}(?::\d{2})?\s*(?:[ap]\.?m\b\.?|h\b|hrs?\b)
               |\b\d{1,2}:\d{2}(?::\d{2})?(?![\d:])
               |\b\d{1,2}h\d{2}\b
               |\b\d{1,2}\s*[ap]\.?m\b\.?)
    | (?P<phone>(?<![\w.,])(?=(?:[ ()+-]*\d){7})(?:\+\d|\(?0\d)[\d()]*(?:[ -]\(?\d+\)?){0,5}(?![\w]|[.,]\d)
               |(?:\(\d{3}\)[ ]?|(?<![\w.,]))\d{3}-\d{4}(?![\w-])
               |(?<![\w.,-])\d{2,4}(?:-\d{2,4}){2,4}(?![\w-])
               |(?<![\w.,-])(?!19|20)\d{4}(?:[ ]\d{4}){2,3}(?![\w-]))
    | (?P<version>(?:\b|(?<=\bv))\d+(?:\.\d+){2,}\b)
    | (?P<v>\bv\.?(?=\d))
    | (?P<ordinal>\b\d+(?:st|nd|rd|th|º|ª)(?!\w))
    | (?P<number>(?:(?<![^\W_])|(?<=\bv))(?<![.])[+-]?\d+(?:[,. ]\d{3})+(?:[.,]\d+)?(?![\d])
                |(?:(?<![^\W_])|(?<=\bv))(?<![.,])[+-]?\d+(?:[.,]\d+)?)
    | (?P<sign>(?:us|au|ca)\$|°[cf]|[£$€¥₹%°])
    | (?P<word>[^\W_]+)
    | (?P<mark>[.!?:](?=[\s"'”’)\]*_]|$)|[;()\n—–→]|(?<=\S[ ])-(?=[ ])|,(?!\d))
    )""",
    re.VERBOSE,
)
_MERIDIEM: Final = re.compile(r"([ap])\.?m")


@lru_cache(maxsize=2)
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language)


@lru_cache(maxsize=65536)
def stems_of(word: str) -> tuple[str, str]:
    """Return the word's stem in English and in Spanish, since the language of a short text is unknown.

    A word that is short for another, or the word for the same on the other side of the Atlantic, has its stems.
    """
    english = _english(word)
    return _same_stems().get(english, english), str(_stemmer("spanish").stemWord(word))


def _english(word: str) -> str:
    return str(_stemmer("english").stemWord(_american(word)))


@lru_cache(maxsize=1)
def _same_stems() -> Mapping[str, str]:
    return {_english(word): _english(SAME_WORDS.get(longer, longer)) for word, longer in SAME_WORDS.items()}


def _american(word: str) -> str:
    """Return one spelling for "colour" and "color", "organise" and "organize", "centre" and "center"."""
    word = re.sub(r"(?<=[a-z]{2})our", "or", word)
    word = re.sub(r"(?<=[a-z]{3})is(?=(?:e|es|ed|ing|ations?)$)", "iz", word)
    word = re.sub(r"(?<=[a-z]{2}t)re(?=s?$)", "er", word)
    return "gray" if word == "grey" else word


_LONGEST_NUMBER: Final = 200
"""Characters. A longer one is beyond what a float holds, or with a scale behind it would be."""


def lexed(plain: str) -> list[Token]:
    """Return the tokens of a folded text, each as it is written."""
    found: list[Token] = []
    for match in _LEXER.finditer(plain):
        group = str(match.lastgroup)
        written, at = match[group], match.span(group)
        if group == "v":
            continue
        kind, read = _READ[group]
        if kind == "number" and (len(written) > _LONGEST_NUMBER or re.fullmatch(r"0\d{2,}|\d{9,}", written)):
            kind, read = _READ["word"]
        found.append(Token(kind, read(written), written, *at))
    return found


def _slashed(written: str) -> Date:
    first, second, *rest = map(int, re.split(r"[/.-]", written))
    if not rest:
        return None, (first, second), None
    return rest[0] + (2000 if rest[0] < 100 else 0), (first, second), None


def _number(written: str) -> float:
    """``19,600``, ``19.600`` and ``19 600`` are grouped; another separator is a point, unless of several."""
    sign = -1.0 if written.startswith("-") else 1.0
    digits = written.lstrip("+-")
    grouped = re.fullmatch(r"(\d{1,3}(?:([,. ])\d{3})(?:\2\d{3})*)(?:[.,](\d+))?", digits)
    if grouped and not grouped[1].startswith("0"):
        whole = re.sub(r"[,. ]", "", grouped[1])
        return sign * float(f"{whole}.{grouped[3] or 0}")
    parts = re.split(r"[,.]", digits.replace(" ", ""))
    return sign * float(("." if len(parts) == 2 else "").join(parts))


def _time(written: str) -> tuple[int, int]:
    """Hour (0 to 23) and minute."""
    parts = re.findall(r"\d+", written)
    hour, minute = int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    meridiem = _MERIDIEM.search(written)
    if meridiem and hour <= 12:
        hour = hour % 12 + (12 if meridiem[1] == "p" else 0)
    return hour, minute


_READ: Final[Mapping[str, tuple[_Kind, Callable[[str], object]]]] = {
    "letters": ("word", stems_of),
    "word": ("word", stems_of),
    "flag": ("word", lambda written: (written, written)),
    "version": ("word", lambda written: (written, written)),
    "phone": ("word", lambda written: (re.sub(r"\D", "", written),) * 2),
    "iso": ("date", lambda written: tuple(map(int, re.split(r"[-/.]", written)))),
    "month": ("date", lambda written: (*sorted(map(int, re.split("[-/]", written)), reverse=True), None)),
    "slashed": ("date", _slashed),
    "clock": ("time", _time),
    "number": ("number", _number),
    "ordinal": ("number", lambda written: float(re.sub(r"\D", "", written))),
    "unit": (
        "unit",
        lambda written: "%" if written.startswith("p") else "f" if "f" in written.split()[1][:1] else "c",
    ),
    "sign": ("unit", lambda written: CURRENCIES.get(written) or UNITS.get(written, written)),
    "mark": ("mark", str),
}
"""Group of ``_LEXER`` → the kind of token, and what reads its value."""


def spells(found: Sequence[Token], index: int, words: Sequence[str]) -> bool:
    """Return whether these words stand from here on."""
    return [token.text for token in found[index : index + len(words)]] == list(words)


_HALVES: Final = (("and", "a", "half"), ("y", "medio"), ("y", "media"))
_ONE: Final = frozenset("a an one un una 1".split())
_MONEY: Final = frozenset(CURRENCIES.values())


def with_numbers(found: list[Token]) -> list[Token]:
    """Numbers in words become numbers: "two hundred and fifty" is one, "half an hour" and "half of it" are two."""
    found = _with_matches(found, _FRACTION, _fraction)
    result: list[Token] = []
    index = 0
    while index < len(found):
        number, used = _number_at(found, index)
        result.append(found[index] if number is None else number)
        index += used or 1
    return result


def _number_at(found: Sequence[Token], index: int) -> tuple[Token | None, int]:
    """Return the number that begins here in words, and how many tokens spell it."""
    token = found[index]
    if token.kind != "number" and token.text not in _MAY_BEGIN_A_NUMBER:
        return None, 0
    if token.text in _MULTIPLES:
        return token._replace(kind="number", value=_MULTIPLES[token.text], extra="x"), 1
    run, value = _spelled(found, index)
    if not run or (run == 1 and token.text in NOT_ALONE and not _stands_for_a_number(found, index)):
        return None, 0
    if token.kind == "word" and 0 < value < 100:
        more, small = _spelled(found, index + run)
        if more and 10 <= small < 100 and found[index + run].kind == "word":
            return _joined(found, index, run + more, _amount(100 * value + small)), run + more
    return _joined(found, index, run, _amount(value)), run


def _joined(found: Sequence[Token], index: int, length: int, amount: Token) -> Token:
    """Return an amount in place of the tokens that spell it."""
    text = " ".join(token.text for token in found[index : index + length])
    return amount._replace(text=text, start=found[index].start, end=found[index + length - 1].end)


def _amount(value: float, extra: str = "") -> Token:
    return Token("number", value, "", 0, 0, extra)


def _stands_for_a_number(found: Sequence[Token], index: int) -> bool:
    """Return whether "one" or "second" counts: it is the whole text, a noun follows, or "past" precedes."""
    follower = found[index + 1] if index + 1 < len(found) else None
    before = found[index - 1].text if index else ""
    if before == "past":
        return True
    if follower is not None and follower.kind != "mark":
        return follower.kind == "word" and follower.text not in STOP_WORDS
    return before in ("is", "was", "only", "exactly", "es", "era") if index else follower is None


_MULTIPLES: Final = {"twice": 2.0, "thrice": 3.0}
_COUNTS: Final = frozenset("once veces vez times many much cuanto cuanta cuantos cuantas".split())
_MAY_BEGIN_A_NUMBER: Final = frozenset({*SMALL, *ORDINALS, *SCALE, *_MULTIPLES})
_PARTS: Final = {
    **dict.fromkeys(("half", "one half", "a half", "medio", "media", "la mitad", "mitad"), 1 / 2),
    **dict.fromkeys(("a third", "one third", "un tercio"), 1 / 3),
    **dict.fromkeys(("two thirds", "dos tercios"), 2 / 3),
    **dict.fromkeys(("a quarter", "one quarter", "un cuarto", "una cuarta parte"), 1 / 4),
    **dict.fromkeys(("three quarters", "tres cuartos"), 3 / 4),
}
_WHOLE: Final = r"(?:the|his|her|their|my|your|its|our|la|el|las|los|sus?)"
_FRACTION: Final = re.compile(
    rf"(?<!\S)(?<!\band )(?<!\band a )(?<!\by )(?P<part>{'|'.join(sorted(_PARTS, key=len, reverse=True))})"
    r"(?:(?:(?<=half|edio|edia)| (?:of|de))(?: (?:an?|one|una?))?"
    rf" (?P<noun>{'|'.join((*SCALE, *map(re.escape, UNITS)))})"
    rf"|(?<!edio)(?<!edia)(?= of\b| de\b| [^\w\s#@~]|\Z|(?<=half) {_WHOLE}\b))(?!\S)"
)


def _fraction(match: re.Match[str], first: Token) -> Token | None:
    """Return a part of a unit or a scale ("half an hour", "half a dozen"), or of a whole, as a percentage."""
    share, noun = _PARTS[match["part"]], match["noun"]
    value = share * SCALE.get(noun, 1 if noun else 100)
    return first._replace(kind="number", value=value, extra=UNITS.get(noun, "") if noun else "%")


def _spelled(found: Sequence[Token], index: int) -> tuple[int, float]:
    """Return how many tokens from here spell one number, and the number."""
    if index < len(found) and found[index].kind == "number":
        return _scaled(found, index)
    total, current, used, last = 0, 0, 0, 1000
    for length, token in enumerate(found[index:], start=1):
        small, scale = SMALL.get(token.text), SCALE.get(token.text)
        if token.kind != "word":
            break
        if small is not None and (length == 1 or last > small) and last >= 20:
            current, last = current + small, small
        elif token.text in ORDINALS and last >= 20:
            return length, float(total + current + ORDINALS[token.text])
        elif scale and (current or length == 1) and current < 10**6:
            if scale < 1000:
                current = max(current, 1) * scale
            else:
                total, current = total + max(current, 1) * scale, 0
            last = 1000
        elif token.text in ("and", "y") and used and last >= 20:
            continue
        else:
            break
        used = length
    half = next((words for words in _HALVES if used and spells(found, index + used, words)), None)
    is_time = index > 0 and found[index - 1].text in ("la", "las")
    return (used + len(half), total + current + 0.5) if half and not is_time else (used, float(total + current))


def _scaled(found: Sequence[Token], index: int) -> tuple[int, float]:
    """Return a number in digits with what multiplies it: "3 million", "19.6k", "£1.2m", "2 and a half"."""
    token = found[index]
    follower = found[index + 1] if index + 1 < len(found) else None
    if follower is None:
        return 0, 0.0
    if follower.text in SCALE:
        return 2, token.number * SCALE[follower.text]
    is_money = any(
        _unit_of(one) in _MONEY for one in (*found[max(0, index - 1) : index], *found[index + 2 : index + 3])
    )
    if follower.start == token.end and (follower.text == "k" or (is_money and follower.text in SHORT_SCALES)):
        return 2, round(token.number * SHORT_SCALES[follower.text], 6)
    return 0, 0.0


def with_units(found: list[Token]) -> list[Token]:
    """Return a number takes the currency before or after it, or the unit after it; what it is added to joins it."""
    result: list[Token] = []
    index = 0
    while index < len(found):
        token = found[index]
        last = result[-1] if result else None
        unit = _unit_of(token)
        half = next((len(words) for words in _HALVES if unit and spells(found, index + 1, words)), 0)
        if token.kind == "number":
            if last is not None and (money := _currency_before(last)):
                result.pop()
                token = token._replace(start=last.start, extra=money)
            result.append(token)
        elif unit and last is not None and last.kind == "number" and not last.extra:
            value = last.number + (0.5 if half else 0)
            result[-1] = last._replace(value=value, end=found[index + half].end, extra=unit)
            index += half
        elif unit and _is_one_of(unit, found, index, half > 0):
            if last is not None and last.text in _ONE:
                result.pop()
            result.append(_joined(found, index, 1 + half, _amount(1.5 if half else 1.0, unit)))
            index += half
        else:
            result.append(token)
        index += 1
    return _added(result)


def _currency_before(token: Token) -> str:
    """Return the currency of "£" or "GBP" before a number; "pounds" stands behind it."""
    if token.kind == "unit":
        return str(token.value) if token.value in _MONEY else ""
    return CURRENCIES.get(token.text, "") if token.kind == "word" and len(token.text) == len("gbp") else ""


_AFTER_THESE: Final = frozenset(
    "for in within takes took lasts lasted about exactly roughly around nearly almost than after durante en"
    " unos dura tarda hace over".split()
)


def _is_one_of(unit: str, found: Sequence[Token], index: int, has_half: bool) -> bool:
    """Return whether "an hour" is an amount of time; behind a count, as in "£38 a month", it is not."""
    if index == 0 or found[index - 1].text not in _ONE:
        return has_half
    clause = list(takewhile(lambda token: token.kind != "mark", reversed(found[: index - 1])))
    counts = any(token.kind in ("number", "unit") or token.text in _COUNTS for token in clause)
    return has_half or not counts or clause[0].text in _AFTER_THESE


def _unit_of(token: Token) -> str:
    if token.kind == "unit":
        return str(token.value)
    return UNITS.get(token.text) or CURRENCIES.get(token.text, "") if token.kind == "word" else ""


def _added(found: list[Token]) -> list[Token]:
    """Amounts in several parts become one: "1 h 30 min", "2 years and 3 months", "3 euros 50 cents"."""
    result: list[Token] = []
    for token in found:
        is_linked = len(result) > 1 and bool(token.extra) and result[-1].text in ("and", "y", ",")
        whole = result[-2 if is_linked else -1] if result else None
        part = _as_part(token, whole) if whole is not None else None
        if whole is not None and part is not None:
            del result[-2 if is_linked else -1 :]
            token = whole._replace(value=whole.number + part, text=f"{whole.text} {token.text}", end=token.end)
        result.append(token)
    return result


def _as_part(token: Token, whole: Token) -> float | None:
    """Return a smaller amount, or cents ("four pounds seventy-five"), in the unit of the larger one, or None."""
    if token.kind != "number" or whole.kind != "number":
        return None
    factor = FACTORS.get((whole.extra, token.extra), 1)
    if factor < 1 and (whole.extra in IMPERIAL) == (token.extra in IMPERIAL):
        return round(token.number * factor, 9)
    follows = whole.extra in _MONEY and whole.number.is_integer() and token.start == whole.end + 1
    return token.number / 100 if follows and not token.extra and token.number in range(10, 100) else None


def same_amount(wanted: Token, given: Token) -> bool:
    """Return whether two numbers are equal, in any unit or none; in one of another system as people round it."""
    units = wanted.extra, given.extra
    if wanted.extra in _MONEY and not given.extra and given.text[0].isalpha() and wanted.number < given.number:
        return wanted.number == given.number / 100  # "twelve fifty"
    if not all(units) or wanted.extra == given.extra:
        off = 0.5 if units == ("%", "%") and not wanted.number.is_integer() else 0.0
        return wanted.value == given.value or (all(units) and isclose(wanted.number, given.number, abs_tol=off))
    if units in FACTORS:
        rounded = _ROUNDED if (wanted.extra in IMPERIAL) != (given.extra in IMPERIAL) else 1e-9
        return isclose(wanted.number, given.number * FACTORS[units], rel_tol=rounded)
    one, other = sorted((wanted, given), key=lambda token: token.extra)
    is_temperature = (one.extra, other.extra) == ("c", "f")
    return is_temperature and isclose(1.8 * one.number + 32, other.number, rel_tol=_ROUNDED)


_ROUNDED: Final = 0.04  # By how much people round what they convert: 3 miles are 5 km.
HOW_MANY: Final = re.compile(r"\b(?:how many|cuant[oa]s) ([a-z]+)\b")
_HOW_OLD: Final = re.compile(r"\bhow old\b|\bque edad\b")


def with_unit(answer: str, question: str, whole: str = "") -> str:
    """Return a bare number with its unit in a whole answer, or with the one that is asked for: "how many hours"."""
    number = [token for token in with_numbers(lexed(folded(answer))) if token.kind != "mark"]
    if len(number) != 1 or number[0].kind != "number" or number[0].extra:
        return answer
    for token in tokens_of(whole):
        if token.extra and same_token(number[0], token):
            return folded(whole)[token.start : token.end]
    found = HOW_MANY.search(folded(question))
    unit = found[1] if found and found[1] in UNITS else "years" if _HOW_OLD.search(folded(question)) else ""
    return f"{answer} {unit}".strip()


_HOURS: Final = {
    **dict.fromkeys(("hour", "hora"), 1), **dict.fromkeys(("dai", "day", "dia"), 24), "week": 168, "semana": 168,
    "fortnight": 336, "quincena": 336, "month": 730, "mes": 730, "year": 8760, "ano": 8760,
}  # fmt: skip
_A_RATE: Final = re.compile(
    r"\b(?:(?:(?:once|una vez)|(?P<times>twice|thrice|\w+ (?:times|veces)))"
    r"(?: (?:in|an?|per|each|every|al?|por|cada)(?: la)?)? |(?:each|every|cada) |(?=[a-z]+(?:ly|rio|mente)\b))"
    rf"(?:(?P<other>other|second) |(?P<count>\w+) )?(?P<unit>{'|'.join(_HOURS)})(?:e?s|ly|rio|lmente)?\b"
)


_EACH: Final = re.compile(rf"\b(?:every|each|cada|todos los) (?={'|'.join(DAY_NAMES)})")


def with_rates(text: str) -> str:
    """Return a folded text with each rate as a number of hours: "twice a day" is "every 12 h"."""
    return _A_RATE.sub(_as_rate, _EACH.sub("", folded(text)))


def _as_rate(rate: re.Match[str]) -> str:
    often, count = (
        next((token.number for token in with_numbers(lexed(rate[name] or "1")) if token.kind == "number"), 0)
        for name in ("times", "count")
    )
    hours = _HOURS[rate["unit"]] * (2 if rate["other"] else count)
    return f"every {hours / often:g} h" if often and hours else rate[0]


@lru_cache(maxsize=16384)
def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text, canonical."""
    return tuple(with_dates(with_units(with_times(with_numbers(lexed(folded(text)))))))


def content_of(found: Sequence[Token]) -> list[tuple[int, Token]]:
    """Tokens that carry meaning, with their indexes; all but marks where nothing else is left."""
    kept = [(index, token) for index, token in enumerate(found) if token.kind != "mark" and not is_stop_word(token)]
    return kept or [(index, token) for index, token in enumerate(found) if token.kind != "mark"]


def is_stop_word(token: Token) -> bool:
    return token.kind == "word" and token.text in STOP_WORDS


def stem_keys(word: Token) -> frozenset[tuple[int, str]]:
    """Return the stems of a word, each with its language. Two words are the same token if they share one."""
    return frozenset(enumerate(word.value))


def same_token(wanted: Token, given: Token) -> bool:
    """Return whether a token of a text says what one of an answer asks for, or more, as a whole date does."""
    if wanted.kind == given.kind == "word":
        (english, spanish), (its_english, its_spanish) = wanted.value, given.value
        if english == its_english or _same_name(wanted.text, given.text):
            return True
        return spanish == its_spanish and _inflected_alike(spanish, wanted.text, given.text)
    match wanted.kind, given.kind:
        case "number", "number":
            return same_amount(wanted, given)
        case "date", "date":
            return _same_date(wanted.value, given.value)
        case "number", "date":
            # A year alone is answered by any date in it.
            return not wanted.extra and wanted.value == given.value[0]
        case "word", "date":
            return wanted.text in MONTH_NAMES and MONTH_NAMES[wanted.text] == given.value[1]
        case "number", "time":
            return _same_hour(wanted, given)
        case "time", "number":
            hour, minute = (given.number, 0) if given.extra == AT else divmod(given.number, 100)
            return given.extra in (AT, "") and (hour % 12, minute) == (wanted.value[0] % 12, wanted.value[1])
        case "time", "time":
            hour, minute = given.value
            is_open = _NAMES_NO_HALF.fullmatch(given.text) is not None
            return wanted.value == given.value or (is_open and (hour + 12, minute) == wanted.value)
        case _:
            return wanted.kind == given.kind and wanted.value == given.value


@lru_cache(maxsize=16384)
def are_paired(pairs: str, one: str, other: str) -> bool:
    """Return whether two words, in any form, stand in a table of pairs."""
    known = _stems_of_pairs(pairs)
    return any(pair in known or pair[::-1] in known for pair in zip(stems_of(one), stems_of(other), strict=True))


@lru_cache(maxsize=2)
def _stems_of_pairs(pairs: str) -> Set[tuple[str, str]]:
    each = (pair.split("/") for pair in pairs.split())
    return {ends for one, other in each for ends in zip(stems_of(one), stems_of(other), strict=True)}


def is_among(token: Token, known: Iterable[Token]) -> bool:
    return any(same_token(one, token) for one in known)


def _inflected_alike(stem: str, one: str, other: str) -> bool:
    """Return whether two words with one Spanish stem are forms of one word: "Canada" is no participle of "can"."""
    # A long ending belongs to a verb, whose other forms have one too.
    short, long = sorted((one[len(stem) :], other[len(stem) :]), key=len)
    return len(long) <= 2 or short not in ("", "s")


def _same_hour(wanted: Token, given: Token) -> bool:
    """ "At 10" is 10:00, by day or by night; 90 minutes are "1h30"."""
    hour, minute = given.value
    if wanted.extra == AT:
        return bool(minute == 0 and hour % 12 == wanted.number % 12)
    return same_amount(wanted, Token("number", float(60 * hour + minute), given.text, 0, 0, "min"))


def _same_name(wanted: str, given: str) -> bool:
    """Two names of one month, weekday or unit: "Sept" and "September", "Tuesday" and "martes"."""
    for names in (MONTH_NAMES, DAY_NAMES, UNITS):
        if wanted in names and given in names and given not in NO_MONTH_ALONE:
            return names[wanted] == names[given]
    return False


def _same_date(wanted: Date, given: Date) -> bool:
    """Return whether all that is asked for is said. A reply may say more: "7 May 2023" for "May 2023"."""
    return any(
        month == wanted_month and wanted_day in (None, day) and wanted_year in (None, year)
        for wanted_year, wanted_month, wanted_day in _dates_read(wanted)
        for year, month, day in _dates_read(given)
    )


def _dates_read(date: Date) -> list[Date]:
    """Return the dates that one may be: ``7/5/2023`` is 7 May or July 5."""
    month = date[1]
    if not isinstance(month, tuple):
        return [date]
    first, second = month
    return [(date[0], m, d) for d, m in ((first, second), (second, first)) if m <= 12]


def _shape_of(found: Sequence[Token]) -> str:
    """Return the tokens as one word each: "#7" is a whole number, "@" a time, "~" another amount or a date."""
    return " ".join(map(_sign_of, found))


def _sign_of(token: Token) -> str:
    if token.kind in ("word", "mark", "unit"):
        return token.text.replace(" ", "_")
    is_count = token.kind == "number" and not token.extra and token.number.is_integer()
    return "@" if token.kind == "time" else f"#{int(token.number)}" if is_count else "~"


def _with_matches(
    found: list[Token], pattern: re.Pattern[str], read: Callable[[re.Match[str], Token], Token | None]
) -> list[Token]:
    """Return the tokens, with what ``read`` makes of a match of their shape and its first token in its place."""
    shape = _shape_of(found)
    result: list[Token] = []
    index = 0
    for match in pattern.finditer(shape):
        first = shape.count(" ", 0, match.start())
        last = first + match[0].count(" ")
        if (token := read(match, found[first])) is not None:
            text = " ".join(one.text for one in found[first : last + 1])
            result += [*found[index:first], token._replace(text=text, end=found[last].end)]
            index = last + 1
    return result + found[index:]


AT: Final = "at"
"""The unit of "ten" in "at ten", which may be a time."""
_NAMES_NO_HALF: Final = re.compile(r"(?!0)(?!.*\b(?:in|at|de|\w*noon|mid\w+|medi\w+)\b).*(?<![ap]m)(?<!m[.])")
"""A time that may be one of the day or of the night: "8:30", but not "08:30" or "8:30 in the morning"."""
_NAMED_TIMES: Final = {"noon": 12, "midday": 12, "mediodia": 12, "midnight": 0, "medianoche": 0}
_PARTS_OF_AN_HOUR: Final = {"half": 30, "media": 30, "quarter": 15, "cuarto": 15}
_TIME: Final = re.compile(
    rf"(?<!\S)(?:(?P<named>{'|'.join(_NAMED_TIMES)})|(?:(?P<before>half past|quarter (?:past|to)|(?<=at )half|#\d+"
    rf" (?:minutes )?past|#\d+ minutes to|#(?:10|20|25) to(?= #\d+ in the)) )?(?:(?P<clock>@)|#(?P<hour>\d|1\d"
    rf"|2[0-4])(?:(?:(?<=la #\d)|(?<=las #\d)|(?<=las #\d\d)) (?P<added>(?:y|menos) (?:media|cuarto"
    rf"|#\d+)))?)(?P<oclock> oclock)?(?: (?:(?P<am>in the morning|am|a m|de la manana|de la madrugada)|(?P<pm>in"
    rf" the afternoon|in the evening|at night|pm|p m|de la tarde|de la noche)))?)(?!\S)"
)


_DAWN: Final = 5  # "Two at night" is 2:00.


def with_times(found: list[Token]) -> list[Token]:
    """Times in words: "half past six", "las seis y media". An hour alone is a number, whose unit is "at"."""
    read = _with_matches(found, _TIME, _time_token)
    return [
        token._replace(extra=AT) if _is_an_hour(token, before, after) else token
        for before, token, after in zip([None, *read], read, [*read[1:], None], strict=False)
    ]


def _time_token(match: re.Match[str], first: Token) -> Token | None:
    if match["named"]:
        return first._replace(kind="time", value=(_NAMED_TIMES[match["named"]], 0))
    hour, minute = first.value if match["clock"] else (int(match["hour"]), 0)
    said = match["before"] or match["added"]
    if not (said or match["oclock"] or match["am"] or match["pm"]):
        return None
    if (match["am"] or match["pm"]) and hour <= 12:
        is_before_dawn = match["pm"] in ("at night", "de la noche") and hour % 12 < _DAWN
        hour = hour % 12 + (12 if match["pm"] and not is_before_dawn else 0)
    if said:
        number = re.search(r"#(\d+)", said)
        share = next((value for name, value in _PARTS_OF_AN_HOUR.items() if name in said.split()), 0)
        minutes = int(number[1]) if number else share
        minute += -minutes if said.endswith(" to") or said.startswith("menos") else minutes
    whole = (60 * hour + minute) % (24 * 60)
    return first._replace(kind="time", value=divmod(whole, 60), extra="")


def _is_an_hour(token: Token, before: Token | None, after: Token | None) -> bool:
    is_hour = token.kind == "number" and not token.extra and token.number in range(25)
    ends = after is None or after.kind == "mark" or after.text in STOP_WORDS
    return is_hour and ends and before is not None and before.text in ("at", "las")


_LINKS: Final = r"(?:(?:of|de|del|the|el|,)[ ])*"
_DAY: Final = r"(?:\#(?:[1-9]|[12]\d|3[01])|last[ ]day|ultimo[ ]dia)"
_DATE: Final = re.compile(
    rf"""(?<!\S)(?:(?P<day>{_DAY})[ ]{_LINKS})?(?P<month>{"|".join(MONTH_NAMES)})
    (?(day)|(?:[ ]{_LINKS}(?P<behind>{_DAY}))?)(?:[ ]{_LINKS}\#(?P<year>[12]\d\d\d))?(?!\S)""",
    re.VERBOSE,
)


def with_dates(found: list[Token]) -> list[Token]:
    """Return a month with its day, its year or both becomes one date; a month by its name alone stays a word."""
    return _with_matches(found, _DATE, _date_token)


def _date_token(match: re.Match[str], first: Token) -> Token | None:
    day = match["day"] or match["behind"]
    if not day and not match["year"]:
        return None
    date = (
        year := int(match["year"]) if match["year"] else None,
        month := MONTH_NAMES[match["month"]],
        (int(day[1:]) if day.startswith("#") else monthrange(year or 2001, month)[1]) if day else None,
    )
    return first._replace(kind="date", value=date, extra="")
