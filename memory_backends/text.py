"""Reading plain text in English and Spanish: folding, sentences, and the names of months, weekdays and numbers.

All names are folded: lower case, without accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NOT_WORD = re.compile(r"[^\w]+")
_WORD = re.compile(r"\w")

_ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "St", "Sr", "Sra", "Dra", "vs", "e.g", "i.e")
# A run of marks or of white space is tried at its beginning alone: at each of its places, the time would grow with
# the square of its length. The first of several marks after an abbreviation belongs to that.
_SENTENCE_END = re.compile(
    r"(?=[.!?…])(?:(?<![.!?…])"
    + "".join(rf"|(?<=\b{re.escape(word)}[.!?…])" for word in _ABBREVIATIONS)
    + ")"
    + "".join(rf"(?<!\b{re.escape(word)})" for word in _ABBREVIATIONS)
    + r"(?<!\bNo(?=\.\s+\d))[.!?…]++[\"'”’»)\]*]*+\s+|(?=\s)(?<!\s)\s*\n\s*"
)


def folded(text: str) -> str:
    """Return text without case, accents and compatibility forms; punctuation and white space stay."""
    return (text if text.isascii() else _NOT_ASCII.sub(_plain, text)).casefold()


def _plain(run: re.Match[str]) -> str:
    return _without_accents(run[0])


@lru_cache(maxsize=4096)
def _without_accents(letters: str) -> str:
    """Return what is not ASCII of a text, which is little of it."""
    # Casefolding can compose characters again, and styled capitals (𝕊) have no case before they are decomposed.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", letters).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))


def folded_words(text: str) -> str:
    """Folded text with every run of punctuation and white space as one space."""
    return _NOT_WORD.sub(" ", folded(text)).strip()


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, in order, closing marks included. A line break always ends one."""
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    pieces = (text[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True))
    return [piece for piece in pieces if _WORD.search(piece)]


def any_of(words: Iterable[str]) -> str:
    """Return a regular expression that matches one of the words, the longest that fits."""
    return "(?:" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + ")"


def _numbered(*names: str, start: int = 0) -> dict[str, int]:
    return {name: number for line in names for number, name in enumerate(line.split(), start)}


ENGLISH_MONTHS = _numbered(
    "january february march april may june july august september october november december", start=1
)
SPANISH_MONTHS = _numbered(
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre", start=1
)
MONTHS = ENGLISH_MONTHS | SPANISH_MONTHS
"""Name → 1..12."""

WEEKDAYS = _numbered(
    "monday tuesday wednesday thursday friday saturday sunday",
    "lunes martes miercoles jueves viernes sabado domingo",
)
"""Name → 0..6, as ``date.weekday()`` counts."""

NUMBERS = _numbered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete"
    " dieciocho diecinueve veinte",
)
NUMBERS |= {
    name: 10 * tens
    for name, tens in _numbered(
        "thirty forty fifty sixty seventy eighty ninety",
        "treinta cuarenta cincuenta sesenta setenta ochenta noventa",
        start=3,
    ).items()
}
"""Name → 0..20 and the tens up to 90. "once" is Spanish for eleven, and an English word too."""

_HUNDREDS = {
    name: 100 * hundreds
    for stem, hundreds in _numbered("dosc tresc cuatroc quin seisc setec ochoc novec", start=2).items()
    for name in (f"{stem}ientos", f"{stem}ientas")
}
_TWENTIES = _numbered(
    "veintiuno veintidos veintitres veinticuatro veinticinco veintiseis veintisiete veintiocho veintinueve",
    start=21,
)
SPELLED = NUMBERS | _TWENTIES | _HUNDREDS | {"cien": 100, "ciento": 100}
"""Name → value of every number below 1000 that is one word, Spanish hundreds included."""

SCALES = {"hundred": 100, "thousand": 1000, "mil": 1000, "million": 10**6, "millon": 10**6, "millones": 10**6}
"""Name → what it multiplies the number before it by."""

_SMALL = SPELLED | {"un": 1, "una": 1}
_OFTEN_NO_NUMBER = frozenset({"one", "once", "uno", "un", "una", "zero", "cero"})
_WRITTEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+")
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")


def numbers_in(text: str) -> frozenset[str]:
    """Return the numbers of a text, however written: ``3,150``, ``3.150`` and ``tres mil ciento cincuenta`` are
    3150.

    "One" and "once" by themselves count for nothing, since they are rarely numbers.
    """
    found: set[str] = set()
    total, current, spelled = 0, 0, 0
    words = _in_full(_WRITTEN.findall(folded(text)))
    for word in [*words, ""]:
        if word in _SMALL and not 0 < current < 10:
            current, spelled = current + _SMALL[word], spelled + (word not in _OFTEN_NO_NUMBER)
        elif word in SCALES:
            current, spelled = max(current, 1) * SCALES[word], spelled + 1
            if SCALES[word] > 100:
                total, current = total + current, 0
        elif not (word in ("and", "y") and spelled):
            if spelled:
                found.add(str(total + current))
            total, current, spelled = 0, 0, 0
            if word in _SMALL:
                current, spelled = _SMALL[word], int(word not in _OFTEN_NO_NUMBER)
            elif word[:1].isdigit():
                found.add(_figure(word))
    return frozenset(found)


def _in_full(words: Iterable[str]) -> list[str]:
    """Return the words of a text, with figures before a scale written out: ``1.5 million`` is 1500000."""
    result: list[str] = []
    for word in words:
        before = result[-1] if result else ""
        if word in SCALES and before[:1].isdigit() and ":" not in before:
            result[-1] = str(round(float(_figure(before)) * SCALES[word]))
        else:
            result.append(word)
    return result


def _figure(written: str) -> str:
    """Return a number in digits without its grouping, its decimal comma and what is 0 behind it."""
    if ":" in written:
        return written
    if _GROUPED.fullmatch(written):
        return re.sub(r"[.,]", "", written)
    whole, _, decimals = written.replace(",", ".").rpartition(".")
    return f"{whole.replace('.', '')}.{decimals.rstrip('0')}".rstrip(".") if whole else decimals
