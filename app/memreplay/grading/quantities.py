"""Reads numbers in words, and amounts: a number with its unit or currency, also in several parts.

English and Spanish. "Two dozen" is 24, "half a million" 500,000, "an hour and a half" 90 minutes, "1 h 30 min" too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isclose
from typing import Final

from memreplay.grading.lexing import Token, folded, lexed, rewritten, spells, stems_of
from memreplay.grading.vocabulary import (
    CURRENCIES,
    MEASURES,
    NOT_ALONE,
    ORDINALS,
    SCALE,
    SHORT_SCALES,
    SMALL,
    STOP_WORDS,
    SUBUNITS,
    UNITS,
)

PAIR: Final = "pair"
"""The unit of two numbers said together ("twelve fifty"), which may be a year, a time, or an amount of money."""

_MULTIPLES: Final = {"twice": (2, "times"), "thrice": (3, "times")}
_HALVES: Final = (("and", "a", "half"), ("y", "medio"), ("y", "media"))
_ONE: Final = frozenset("a an one un una 1".split())
_MONEY: Final = frozenset(CURRENCIES.values())


def with_numbers(found: list[Token]) -> list[Token]:
    """Numbers in words become numbers: "two hundred and fifty" is one."""
    return rewritten(found, _number_at)


def _number_at(found: Sequence[Token], index: int) -> tuple[list[Token], int]:
    """The number that begins here in words, and how many tokens spell it."""
    token = found[index]
    if token.kind != "number" and token.text not in _MAY_BEGIN_A_NUMBER:
        return [], 0
    fraction, used = _fraction(found, index)
    if fraction is not None:
        return [_joined(found, index, used, fraction)], used
    if token.text in _MULTIPLES:
        count, noun = _MULTIPLES[token.text]
        return [
            Token("number", float(count), token.text, token.start, token.end),
            Token("word", stems_of(noun), noun, token.start, token.end),
        ], 1
    run, value = _spelled(found, index)
    if not run or (run == 1 and token.text in NOT_ALONE and not _stands_for_a_number(found, index)):
        return [], 0
    more, small = _spelled(found, index + run) if 0 < value < 100 and token.kind == "word" else (0, 0.0)
    if more and 10 <= small < 100 and found[index + run].kind == "word" and value.is_integer():
        return [_joined(found, index, run + more, _amount(100 * value + small, PAIR))], run + more
    return [_joined(found, index, run, _amount(value))], run


def _joined(found: Sequence[Token], index: int, length: int, amount: Token) -> Token:
    """An amount in place of the tokens that spell it."""
    text = " ".join(token.text for token in found[index : index + length])
    return amount._replace(text=text, start=found[index].start, end=found[index + length - 1].end)


def _amount(value: float, extra: str = "") -> Token:
    return Token("number", value, "", 0, 0, extra)


def _stands_for_a_number(found: Sequence[Token], index: int) -> bool:
    """Whether "one" or "second" counts something: it is the whole text, or a noun follows."""
    follower = found[index + 1] if index + 1 < len(found) else None
    if follower is not None and follower.kind != "mark":
        return follower.kind == "word" and follower.text not in STOP_WORDS
    if index == 0:
        return follower is None
    return found[index - 1].text in ("is", "was", "only", "exactly", "es", "era")


def _fraction(found: Sequence[Token], index: int) -> tuple[Token | None, int]:
    """A fraction of a unit or a scale ("half an hour", "half a dozen"), or of a whole, which is a percentage."""
    place = index
    share, used = _share(found, place)
    if share is None:
        return None, 0
    place += used
    after = [token.text for token in found[place : place + 3]]
    of = 1 if after[:1] and after[0] in ("of", "de") else 0
    article = 1 if after[of : of + 1] and after[of] in _ONE else 0
    noun = after[of + article] if len(after) > of + article else ""
    is_plain_half = found[place - 1].text in ("half", "medio", "media")
    if (of or is_plain_half) and noun in SCALE:
        return _amount(share * SCALE[noun]), used + of + article + 1
    if (of or is_plain_half) and noun in UNITS:
        return _amount(share, UNITS[noun]), used + of + article + 1
    names_a_whole = after[of : of + 1] and after[of] in _WHOLE
    is_room = found[place - 1].text == "cuarto" and not names_a_whole
    is_share = of or not after or found[place].kind == "mark" or (is_plain_half and names_a_whole)
    stands_alone = found[place - 1].text not in ("medio", "media") and not is_room
    if is_share and stands_alone and not (index and found[index - 1].text in _OTHER_HALF):
        return _amount(share * 100, "%"), used
    return None, 0


_WHOLE: Final = frozenset("the his her their my your its our la el los las su sus".split())
_OTHER_HALF: Final = frozenset("other better and y first second last the".split())
_PARTS: Final[Mapping[tuple[str, ...], float]] = {
    tuple(words.split()): share
    for share, spellings in (
        (1 / 2, "half/one half/a half/medio/media/la mitad/mitad"),
        (1 / 3, "a third/one third/un tercio"),
        (2 / 3, "two thirds/dos tercios"),
        (1 / 4, "a quarter/one quarter/un cuarto/una cuarta parte"),
        (3 / 4, "three quarters/tres cuartos"),
    )
    for words in spellings.split("/")
}
_MAY_BEGIN_A_NUMBER: Final = frozenset({*SMALL, *ORDINALS, *SCALE, *_MULTIPLES, *(words[0] for words in _PARTS)})


def _share(found: Sequence[Token], index: int) -> tuple[float | None, int]:
    """What part of one a text names here, and in how many tokens."""
    words = next((words for words in _PARTS if spells(found, index, words)), None)
    return (_PARTS[words], len(words)) if words else (None, 0)


def _spelled(found: Sequence[Token], index: int) -> tuple[int, float]:
    """How many tokens from here spell one number, and the number."""
    total, current, length, used = 0, 0, 0, 0
    last_small = 1000
    while index + length < len(found):
        token = found[index + length]
        word = token.text
        if token.kind == "number" and length == 0:
            return _scaled(found, index)
        if token.kind != "word":
            break
        if word in SMALL and (length == 0 or (last_small > SMALL[word] and not (last_small < 20))):
            current, last_small = current + SMALL[word], SMALL[word]
        elif word in ORDINALS and (length == 0 or last_small >= 20):
            current += ORDINALS[word]
            used = length + 1
            length += 1
            break
        elif (
            word in SCALE and (current or (length == 0 and _counts_once(found, index))) and current < _MOST_COUNTED
        ):
            scale = SCALE[word]
            if scale < 1000:
                current = max(current, 1) * scale
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
    half = next((words for words in _HALVES if spells(found, index + used, words)), None)
    is_time = index > 0 and found[index - 1].text in ("la", "las")
    if half and not is_time:
        return used + len(half), total + current + 0.5
    return used, float(total + current)


_MOST_COUNTED: Final = 10**6
"""A number that large is followed by no other scale: "a hundred hundred hundred hundred" is no number."""


def _counts_once(found: Sequence[Token], index: int) -> bool:
    """Whether a scale without a number before it is one of its kind: "dozen", "mil", "a thousand"."""
    return found[index].text in ("mil", "dozen", "docena") or (index > 0 and found[index - 1].text in _ONE)


def _scaled(found: Sequence[Token], index: int) -> tuple[int, float]:
    """A number in digits with what multiplies it: "3 million", "19.6k", "£1.2m", "2 and a half"."""
    token = found[index]
    follower = found[index + 1] if index + 1 < len(found) else None
    if follower is None:
        return 0, 0.0
    if follower.text in SCALE:
        return 2, token.number * SCALE[follower.text]
    is_money = index > 0 and found[index - 1].kind == "unit" and found[index - 1].value in _MONEY
    if follower.start == token.end and (follower.text == "k" or (is_money and follower.text in SHORT_SCALES)):
        return 2, round(token.number * SHORT_SCALES[follower.text], 6)
    half = next((words for words in _HALVES if spells(found, index + 1, words)), None)
    return (1 + len(half), token.number + 0.5) if half else (0, 0.0)


_IN_WORDS: Final[Mapping[tuple[str, ...], str]] = {
    tuple(words.split()): unit
    for unit, spellings in {
        "%": "per cent/por ciento/por cien",
        "c": "degrees celsius/degrees centigrade/degrees c/grados celsius/grados centigrados",
        "f": "degrees fahrenheit/degrees f",
    }.items()
    for words in spellings.split("/")
}
_PHRASES: Final[Mapping[tuple[str, ...], str]] = {
    **{
        (*often, unit): word
        for unit, word in {"day": "daily", "week": "weekly", "month": "monthly", "year": "yearly"}.items()
        for often in (("every",), ("each",), ("once", "a"), ("once", "every"))
    },
    **{("no", more, "than"): "most" for more in ("more", "longer", "later")},
    **{("no", less, "than"): "least" for less in ("less", "fewer")},
}
_BEGIN_A_PHRASE: Final = frozenset(words[0] for words in (*_IN_WORDS, *_PHRASES))


def with_phrases(found: list[Token]) -> list[Token]:
    """Units of two words become one unit, and some phrases the one word that says the same: "every day" is"
    " daily."""
    return rewritten(found, _phrase_at)


def _phrase_at(found: Sequence[Token], index: int) -> tuple[list[Token], int]:
    if found[index].text not in _BEGIN_A_PHRASE:
        return [], 0
    words = next((words for words in (*_IN_WORDS, *_PHRASES) if spells(found, index, words)), None)
    if words is None:
        return [], 0
    whole = _joined(found, index, len(words), found[index])
    if words in _IN_WORDS:
        return [whole._replace(kind="unit", value=_IN_WORDS[words])], len(words)
    return [whole._replace(kind="word", value=stems_of(_PHRASES[words]))], len(words)


def with_units(found: list[Token]) -> list[Token]:
    """A number takes the currency before or after it, or the unit after it; what it is added to joins it."""
    result: list[Token] = []
    index = 0
    while index < len(found):
        token = found[index]
        last = result[-1] if result else None
        unit = _unit_of(token)
        half = next((words for words in _HALVES if unit and spells(found, index + 1, words)), None)
        if token.kind == "number":
            if last is not None and (money := _currency_before(last)):
                result.pop()
                token = token._replace(start=last.start, extra=money)
            result.append(token)
        elif unit and last is not None and last.kind == "number" and last.extra in ("", PAIR):
            value = last.number + (0.5 if half else 0)
            value /= 100 if last.extra == PAIR and unit in _MONEY else 1
            end = found[index + len(half)].end if half else token.end
            result[-1] = last._replace(value=value, end=end, extra=unit)
            index += len(half) if half else 0
        elif unit and _is_one_of(unit, found, index, half is not None):
            if last is not None and last.text in _ONE:
                result.pop()
            length = 1 + (len(half) if half else 0)
            result.append(_joined(found, index, length, _amount(1.5 if half else 1.0, unit)))
            index += length - 1
        else:
            result.append(token)
        index += 1
    return _added(result)


def _currency_before(token: Token) -> str:
    """The currency of "£" or "GBP" before a number; "pounds" stands behind it."""
    if token.kind == "unit":
        return str(token.value) if token.value in _MONEY else ""
    return CURRENCIES.get(token.text, "") if token.kind == "word" and len(token.text) == len("gbp") else ""


_AFTER_THESE: Final = frozenset(
    "for in within takes took lasts lasted about exactly roughly around nearly almost than after durante en"
    " unos dura tarda hace over".split()
)


def _is_one_of(unit: str, found: Sequence[Token], index: int, has_half: bool) -> bool:
    """Whether "an hour" is an amount of time; in "twice a week" and "£38 a month" it is not."""
    if unit in _MONEY and index + 1 < len(found) and found[index + 1].kind == "number":
        return index > 0 and found[index - 1].text in _ONE
    if MEASURES.get(unit, ("", 0))[0] not in ("time", "months"):
        return has_half and index > 0 and found[index - 1].text in _ONE
    if index == 0 or found[index - 1].text not in _ONE:
        return has_half
    before = found[index - 2].text if index > 1 else ""
    return has_half or not before or before in _AFTER_THESE


def _unit_of(token: Token) -> str:
    if token.kind == "unit":
        return str(token.value)
    return UNITS.get(token.text) or CURRENCIES.get(token.text, "") if token.kind == "word" else ""


def _added(found: list[Token]) -> list[Token]:
    """Amounts in several parts become one: "1 h 30 min", "2 years and 3 months", "3 euros 50 cents"."""
    result: list[Token] = []
    for token in found:
        whole = result[-1] if result and token.kind == "number" else None
        link = None
        if whole is not None and whole.text in ("and", "y", ",") and len(result) > 1 and token.extra:
            link, whole = whole, result[-2]
        part = _as_part(token, whole) if whole is not None and whole.kind == "number" else None
        if part is None or whole is None:
            result.append(token)
            continue
        if link is not None:
            result.pop()
        result[-1] = whole._replace(
            value=whole.number + part,
            text=f"{whole.text} {token.text}",
            end=token.end,
        )
    return result


def _as_part(token: Token, whole: Token) -> float | None:
    """A smaller amount of the same measure in the unit of the larger one; None if it is none.

    What follows a whole amount of money is its cents: "four pounds seventy-five".
    """
    if whole.extra in _MONEY and not token.extra and token.start == whole.end + 1 and whole.number.is_integer():
        return token.number / 100 if 10 <= token.number < 100 and token.number.is_integer() else None
    if token.kind != "number" or whole.kind != "number" or not (token.extra and whole.extra):
        return None
    if (whole.extra, token.extra) in SUBUNITS:
        return round(token.number * SUBUNITS[whole.extra, token.extra], 9)
    return None


def same_amount(wanted: Token, given: Token) -> bool:
    """Whether two numbers are equal, in any unit. A number without a unit equals one of any unit."""
    if PAIR in (wanted.extra, given.extra):
        return not _readings(wanted).isdisjoint(_readings(given))
    if not wanted.extra or not given.extra or wanted.extra == given.extra:
        return wanted.value == given.value or (bool(wanted.extra) and _close(wanted.number, given.number))
    for one, other in ((wanted, given), (given, wanted)):
        if (one.extra, other.extra) in SUBUNITS:
            return _close(one.number, other.number * SUBUNITS[one.extra, other.extra])
    (measure, factor), (other_measure, other_factor) = (
        MEASURES.get(token.extra, ("", 0.0)) for token in (wanted, given)
    )
    if not measure or measure != other_measure:
        return False
    return _close(wanted.number * factor, given.number * other_factor)


def _readings(number: Token) -> frozenset[float]:
    """ "Twelve fifty" is 1250, or 12.50."""
    return frozenset({number.number, number.number / 100} if number.extra == PAIR else {number.number})


def _close(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-9)


def amount_keys(token: Token) -> frozenset[object]:
    """What two numbers have in common where :func:`same_amount` holds: the plain value, or that in base units."""
    keys: set[object] = {token.value, *_readings(token)}
    if token.extra in MEASURES:
        measure, factor = MEASURES[token.extra]
        keys.add((measure, round(token.number * factor, 6)))
    for (whole, part), factor in SUBUNITS.items():
        if part == token.extra and whole not in MEASURES:
            keys.add(round(token.number * factor, 9))
    return frozenset(keys)


_HOW_MANY: Final = re.compile(r"\b(?:how many|cuant[oa]s) ([a-z]+)\b")
_HOW_OLD: Final = re.compile(r"\bhow old\b|\bque edad\b")


def with_asked_unit(answer: str, question: str) -> str:
    """A bare number with the unit that the question asks for: "3" is 3 hours after "how many hours"."""
    asked = folded(question)
    if not re.fullmatch(r"\W*(?:\d+(?:[.,]\d+)?|[a-z]+)\W*", folded(answer)):
        return answer
    number = [token for token in with_numbers(lexed(folded(answer))) if token.kind != "mark"]
    if len(number) != 1 or number[0].kind != "number":
        return answer
    found = _HOW_MANY.search(asked)
    if found and found[1] in UNITS:
        return f"{answer} {found[1]}"
    return f"{answer} years" if _HOW_OLD.search(asked) else answer
