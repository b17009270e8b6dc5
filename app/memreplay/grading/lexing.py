"""Cuts text into words, numbers, dates, times and marks, as far as their spelling alone shows what they are.

What takes several words ("two hundred", "half past six", "7 May 2023", "3 kg") is read by
:mod:`memreplay.grading.quantities` and :mod:`memreplay.grading.times`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, cast

import Stemmer

from memreplay.grading.vocabulary import CURRENCIES, SAME_WORDS, UNITS

_Kind = Literal["word", "number", "date", "time", "mark", "unit"]
Date = tuple[int | None, int | tuple[int, int] | None, int | None]
"""Year, month, day; None where it is not said. "7/5" is a month of (7, 5): either may be the day."""


class Token(NamedTuple):
    """A word, number, date, amount, time or separator in canonical form, with its place in the folded text.

    ``kind`` is ``word`` (``value`` is the stem), ``number``, ``date``, ``time``, ``mark`` (punctuation that ends a
    clause), or ``unit``. ``extra`` is a number's currency or unit, where one is written.
    """

    kind: _Kind
    value: object
    text: str
    start: int
    end: int
    extra: str = ""

    @property
    def number(self) -> float:
        """The value of a number."""
        return cast(float, self.value)

    @property
    def date(self) -> Date:
        """The value of a date."""
        return cast(Date, self.value)

    @property
    def clock(self) -> tuple[int, int]:
        """Hour and minute of a time."""
        return cast(tuple[int, int], self.value)

    @property
    def stems(self) -> tuple[str, str]:
        """The stems of a word, in English and in Spanish."""
        return cast(tuple[str, str], self.value)


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
    """What is not ASCII of a text, which is little of it."""
    apart = unicodedata.normalize("NFKD", letters.translate(_TYPOGRAPHIC)).casefold()
    return "".join(char for char in apart if not unicodedata.combining(char)).translate(_NO_ACCENTS)


_LEXER: Final = re.compile(
    r"""[ ]*(?:
      (?P<letters>(?!v\d|(?:us|au|ca)\$)[^\W\d_][^\W_]*)
    | (?P<iso>\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b)
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
    | (?P<flag>(?<![\w-])--[a-z][\w-]+)
    | (?P<version>(?:\b|(?<=\bv))\d+(?:\.\d+){2,}\b)
    | (?P<v>\bv\.?(?=\d))
    | (?P<ordinal>\b\d+(?:st|nd|rd|th|º|ª)(?!\w))
    | (?P<number>(?:(?<![^\W_])|(?<=\bv))(?<![.])[+-]?\d+(?:[,. ]\d{3})+(?:[.,]\d+)?(?![\d])
                |(?:(?<![^\W_])|(?<=\bv))(?<![.,])[+-]?\d+(?:[.,]\d+)?)
    | (?P<sign>(?:us|au|ca)\$|[£$€¥₹%°]c?|°[cf])
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
def stems_of(word: str) -> tuple[str, str]:
    """The word's stem in English and in Spanish. The language of a short text is unknown, so both are compared.

    A word that is short for another, or the word for the same on the other side of the Atlantic, has its stems.
    """
    english = _english(word)
    return _same_stems().get(english, english), str(_stemmer("spanish").stemWord(word))


def _english(word: str) -> str:
    return str(_stemmer("english").stemWord(_american(word)))


@lru_cache(maxsize=1)
def _same_stems() -> Mapping[str, str]:
    return {_english(word): _english(longer) for word, longer in SAME_WORDS.items()}


def _american(word: str) -> str:
    """One spelling for "colour" and "color", "organise" and "organize", "centre" and "center"."""
    word = re.sub(r"(?<=[a-z]{2})our", "or", word)
    word = re.sub(r"(?<=[a-z]{2})ae(?=[a-z])", "e", word)
    word = re.sub(r"(?<=[a-z]{3})is(?=(?:e|es|ed|ing|ations?)$)", "iz", word)
    word = re.sub(r"(?<=[a-z]{2}t)re(?=s?$)", "er", word)
    return "gray" if word == "grey" else word


_LONGEST_NUMBER: Final = 200
"""Characters. A longer one is beyond what a float holds, or with a scale behind it would be."""


def lexed(plain: str) -> list[Token]:
    """The tokens of a folded text, each as it is written."""
    found: list[Token] = []
    for match in _LEXER.finditer(plain):
        group = str(match.lastgroup)
        written, at = match[group], match.span(group)
        if group == "v" or (written == "/" and not _parts_alternatives(plain, at[0])):
            continue
        kind, read = _READ[group]
        if len(written) > _LONGEST_NUMBER and kind == "number":
            kind, read = _READ["word"]
        found.append(Token(kind, read(written), written, *at))
    return found


def _parts_alternatives(plain: str, at: int) -> bool:
    """Whether a slash stands between words ("blue/green"), not in a path or an address."""
    start, end = plain.rfind(" ", 0, at) + 1, plain.find(" ", at)
    return re.fullmatch(r"\w+(?:/\w+)+[.,;]?", plain[start : end if end >= 0 else len(plain)]) is not None


def _slashed(written: str) -> Date:
    first, second, *rest = map(int, re.split(r"[/.-]", written))
    if not rest:
        return None, (first, second), None
    return rest[0] + (2000 if rest[0] < 100 else 0), (first, second), None


def _number(written: str) -> float:
    """``19,600``, ``19.600`` and ``19 600`` are grouped; a single separator before one or two digits is a point.

    Of several separators that group nothing as numbers are written, none is a point.
    """
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
    "slashed": ("date", _slashed),
    "clock": ("time", _time),
    "number": ("number", _number),
    "ordinal": ("number", lambda written: float(re.sub(r"\D", "", written))),
    "sign": ("unit", lambda written: CURRENCIES.get(written) or UNITS.get(written, written)),
    "mark": ("mark", str),
}
"""Group of ``_LEXER`` → the kind of token, and what reads its value."""


def rewritten(found: list[Token], read: Callable[[Sequence[Token], int], tuple[list[Token], int]]) -> list[Token]:
    """The tokens, with what ``read`` makes of those that begin at a place instead of them.

    ``read`` says what and instead of how many; of 0, the token stays.
    """
    result: list[Token] = []
    index = 0
    while index < len(found):
        tokens, used = read(found, index)
        result += tokens if used else [found[index]]
        index += used or 1
    return result


def spells(found: Sequence[Token], index: int, words: Sequence[str]) -> bool:
    """Whether these words stand from here on."""
    return [token.text for token in found[index : index + len(words)]] == list(words)


_TAG = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
# Some servers drop the opening tag, so everything before a closing tag is reasoning.
_CLOSED = re.compile(r"\A.*</" + _TAG + r"\s*>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(r"<" + _TAG + r"\s*>.*\Z", re.IGNORECASE | re.DOTALL)


def without_reasoning(reply: str) -> str:
    """The reply after its last reasoning block; empty if a block is never closed."""
    return _OPEN.sub("", _CLOSED.sub("", reply)).strip()


_MOST_READ = 6_000
"""Characters."""


def shortened(reply: str) -> str:
    """The beginning and the end of a reply that is too long to be an answer; any other reply unchanged.

    A model that repeats itself without end must not hold up the grading of a run.
    """
    if len(reply) <= _MOST_READ:
        return reply
    half = _MOST_READ // 2
    return f"{reply[:half]}\n{reply[-half:]}"


_JSON_KEYS = frozenset("answer answer_index answerindex index choice choice_index option respuesta opcion".split())


def json_values(text: str) -> list[str] | None:
    """The values of the answer keys of a reply that is one JSON object; None for any other reply."""
    body = re.sub(r"\A```(?:json)?\s*|\s*```\Z", "", text.strip())
    if not re.fullmatch(r"\{.*\}", body, re.DOTALL):
        return None
    try:
        return list(_answers_in(json.loads(body)))
    except (ValueError, RecursionError):
        return None


def _answers_in(parsed: object, depth: int = 0) -> Iterator[str]:
    """The values of the answer keys, also within another answer key: ``{"choice": {"index": 3}}``."""
    match parsed:
        case dict() if depth <= _DEEPEST:
            for key, value in parsed.items():
                if key.casefold().replace(" ", "_") in _JSON_KEYS:
                    yield from _answers_in(value, depth + 1)
        case list() if depth <= _DEEPEST:
            for value in parsed:
                yield from _answers_in(value, depth + 1)
        case str() | int() | float() if not isinstance(parsed, bool):
            yield str(parsed)


_DEEPEST = 3
