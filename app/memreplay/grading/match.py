"""Find an answer in a text, in equivalent spellings of numbers, dates, times, amounts and words.

Grading a reply and attributing a loss share this module, so that both mean the same by "contains the answer". A
reply must also assert it (:mod:`memreplay.grading.veto`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Final

from memreplay.grading.read import Token, content_of, folded, is_stop_word, same_token, tokens_of
from memreplay.grading.vocabulary import DAY_NAMES, MONTH_NAMES, SAME_WORDS, STOP_WORDS


@dataclass(frozen=True)
class Match:
    """The place of an answer: indexes of its first and last token."""

    first: int
    last: int


@lru_cache(maxsize=4096)
def _content_with_marks(text: str) -> Sequence[tuple[int, Token]]:
    """Return the tokens of a text but for stop words, with their indexes."""
    return [(index, token) for index, token in enumerate(tokens_of(text)) if not is_stop_word(token)]


def matches(answer: str, text: str) -> Iterator[Match]:
    """Yield where a text contains an answer, in any equivalent spelling.

    The content words of the answer stand together: next to each other, or in another order within a clause with at
    most two other words between them ("the latrine of the friary" for "friary latrine").
    """
    wanted = _wanted(answer)
    is_bare = all(map(is_stop_word, wanted))
    content = list(enumerate(tokens_of(text))) if is_bare else _content_with_marks(text)
    ends = set(".;!?\n") - {token.text for token in tokens_of(answer)}
    width = len(wanted) + (2 if len(wanted) > 1 else 0)
    last = -1
    for at, (first, token) in enumerate(content):
        is_start = at > last and any(same_token(w, token) for w in wanted)
        if is_start and (end := _covered(wanted, content[at : at + width], ends)):
            last = at + end - 1
            yield Match(first, content[last][0])


_INITIAL: Final = re.compile(r"(?<=[a-z] )[A-Z]\. (?=[A-Z])")
_TITLES: Final = frozenset("dr doctor dra doctora prof professor profesor profesora mr mrs ms sr sra".split())


def _wanted(answer: str) -> list[Token]:
    """Return what a text must contain: not the title before a name, nor an amount in a second unit."""
    content = [token for _, token in content_of(tokens_of(_INITIAL.sub("", answer)))]
    wanted = [
        token
        for at, token in enumerate(content)
        if not any(token.extra != one.extra != "" != token.extra and same_token(one, token) for one in content[:at])
    ]
    if wanted and wanted[0].text in ("between", "entre") and sum(token.kind != "word" for token in wanted) > 1:
        return wanted[1:]
    names = [token for token in wanted if token.text not in _TITLES]
    return names if names and wanted[0].text in _TITLES else wanted


def _covered(wanted: Sequence[Token], window: Sequence[tuple[int, Token]], ends: Set[str]) -> int:
    """Return how many tokens of the window hold all that is wanted; 0 if none do before a mark of ``ends``."""
    left = list(wanted)
    for length, (_, token) in enumerate(window, start=1):
        hit = next((w for w in left if same_token(w, token)), None)
        if hit is not None:
            left.remove(hit)
            if not left:
                return length
        elif token.kind == "mark" and token.text in ends:
            return 0
        if len(window) - length < len(left):
            return 0
    return 0


_BEGIN_OTHERWISE: Final = {"and", "y", *MONTH_NAMES, *DAY_NAMES}
_LETTERS_KEPT: Final = 3  # At the beginning of a word, by any other spelling or form of it.


@lru_cache(maxsize=1024)
def _beginnings(answer: str) -> tuple[tuple[str, ...], ...]:
    """Return, for each word of an answer, how its equals begin ("tie", "tying"), if they all begin alike."""
    words = (
        token
        for token in _wanted(answer)
        if token.kind == "word" and not token.value[0].isdigit() and token.text not in _BEGIN_OTHERWISE
    )
    return tuple(
        tuple(
            {
                stem[: max(1, min(_LETTERS_KEPT, len(stem) - 2))]
                for spelling in (word.text, *_SPELLINGS.get(SAME_WORDS.get(word.text, word.text), ()))
                for stem in (*word.value, spelling)
            }
        )
        for word in words
    )


_SPELLINGS: Final[Mapping[str, Sequence[str]]] = {
    longer: [word for word, other in SAME_WORDS.items() if other == longer] for longer in set(SAME_WORDS.values())
}


def has_the_letters_of(answer: str, text: str) -> bool:
    """Return whether a text may contain an answer, by first letters, in a hundredth of :func:`contains`' time."""
    plain = folded(text)
    if all(any(beginning in plain for beginning in word) for word in _beginnings(answer)):
        return True
    short = _short_form(answer)
    return short is not None and short.search(text) is not None


_CODE: Final = re.compile(r"(?=[A-Z0-9 -]*\d)[A-Z]{1,4}[\s-]?\d[A-Z0-9]*(?:[\s-][A-Z0-9]+)*")
"""A name of capital letters and figures, which people write with and without spaces: "B17", "LS8 3QT"."""
_LINKING: Final = r"(?:\s+(?:of|the|and|for|de|del|la|las|los|y|&))*"


@lru_cache(maxsize=1024)
def _short_form(answer: str) -> re.Pattern[str] | None:
    """ "NYC" for "New York City" or the reverse, "Postgres" for "PostgreSQL", "Mr Crane" for "Tom Crane"."""
    bare = re.sub(r"\A(?:the|el|la|los|las|an?|una?)\s", "", answer.strip(" ."), flags=re.IGNORECASE)
    if re.fullmatch(r"[A-Z]{2,6}", bare):
        # Three letters may stand in another order than the words: "Coordinated Universal Time" is UTC.
        orders = permutations(bare) if len(bare) == 3 else [tuple(bare)]
        forms = [(_LINKING + r"\s+").join(rf"{letter}[^\W\d_]+" for letter in order) for order in orders]
        return re.compile(rf"\b(?:{'|'.join(forms)})\b")
    if _CODE.fullmatch(bare):
        signs = r"[\s-]?".join(re.findall(r"[^\W_]", bare))
        return re.compile(rf"\b{signs}\b", re.IGNORECASE)
    words_of_it = re.findall(r"[^\W_]+", bare)
    forms = []
    if product := re.fullmatch(r"\W*([A-Z][a-z]{3,})([A-Z])[A-Z]+\W*", bare):
        forms.append(rf"(?i:{product[1]}{product[2]}?)")
    names = [word for word in words_of_it if word.casefold() not in STOP_WORDS]
    is_title = all(word[0].isupper() and word[1:].islower() for word in names)
    if 2 <= len(names) <= 6 and (is_title or len(names) > 2) and all(map(str.isalpha, names)):
        # The small words of a name may have their letter too: "UCLA".
        initials = "".join(
            rf"{word[0].upper()}\.?" if word in names else rf"(?:(?i:{word[0]})\.?)?" for word in words_of_it
        )
        forms.append(rf"{initials}(?!\w)")
    if is_title and 2 <= len(names) <= 3:
        forms.append(rf"{_TITLE}\.? {names[-1]}\b")
    return re.compile(rf"(?<![\w.])(?:{'|'.join(forms)})(?!\w)") if forms else None


_TITLE: Final = r"(?:Drs?|Doctora?|Dra|Prof|Professor|Profesora?|Mr|Mrs|Ms|Miss|Sra?|Señora?|Don|Doña|Sir|Lady)"


def spelled_out(answer: str, text: str) -> str:
    """Return the text with the answer in place of its initials, their words, or itself in one word or two."""
    if len(answer) >= _LONG_WORD and re.fullmatch(r"[^\W\d_]+(?:[ -][^\W\d_]+)*", answer):
        text = re.sub(r"[ -]?".join(re.sub("[ -]", "", answer)), lambda _: answer, text, flags=re.IGNORECASE)
    short = _short_form(answer)
    return short.sub(lambda _: answer, text) if short is not None else text


_LONG_WORD: Final = 8  # Letters of words that no other words have together by chance.
_LEADS: Final = frozenset("from to desde hasta".split())  # Words that tell what the next one is to the answer.
_FEW_WORDS: Final = 5  # Of a longer answer a reply may say one word in another way.


def binds_otherwise(answer: str, given: Sequence[Token], asked: Sequence[Token] = ()) -> bool:
    """Return whether what stands before one thing of an answer stands before another of them ("two dogs and a cat"
    for "a dog and two cats"), or is replaced there ("the green pot" for "the blue pot") by what is not ``asked``.
    """
    theirs = [pair for pair in _bound(given) if not any(same_token(one, pair[0]) for one in asked)]
    ours = _bound(tokens_of(answer))
    wanted = [token for _, token in content_of(tokens_of(answer))]
    things = [thing for thing in wanted if thing not in [one for one, _ in ours]]
    return any(
        any(
            same_token(thing, its) and not same_token(thing, own)
            for thing in (wanted if is_stop_word(one) else things)
        )
        if same_token(one, other)
        else len(wanted) <= _FEW_WORDS
        and same_token(own, its)
        and not (is_stop_word(one) or is_stop_word(other))
        and not any(same_token(one, token) for token in given)
        and not any(same_token(token, other) for token in wanted)
        for one, own in ours
        if not any(same_token(one, a) and same_token(own, b) for a, b in theirs)
        for other, its in theirs
    )


def _bound(found: Sequence[Token]) -> list[tuple[Token, Token]]:
    """Return the words that stand right behind a word or a figure, with those."""
    pairs = pairwise(token for token in found if token.text != "at")
    return [
        (one, own)
        for one, own in pairs
        if "mark" not in (one.kind, own.kind)
        and not is_stop_word(own)
        and (one.text in _LEADS or not is_stop_word(one))
    ]


def may_say_a_part_of(answer: str, text: str) -> bool:
    """Return whether a text may contain an answer or an item of it, by the first letters of words, as quickly."""
    return any(has_the_letters_of(item, text) for item in enumeration(answer)) or has_the_letters_of(answer, text)


def contains(answer: str, text: str) -> bool:
    """Return whether a text contains an answer, or all items of an enumeration, in any equivalent spelling."""
    if not has_the_letters_of(answer, text):
        return False
    text = spelled_out(answer, text)
    lines = [(text, folded(text))] if "\n" in answer else _lines_of(text)
    items = enumeration(answer)
    return _is_said_in(lines, answer) or (len(items) > 1 and all(_is_said_in(lines, item) for item in items))


def _is_said_in(lines: Sequence[tuple[str, str]], answer: str) -> bool:
    """Return whether one of the lines contains an answer as a whole."""
    for word in _beginnings(answer):
        lines = [line for line in lines if any(map(line[1].__contains__, word))]
    return any(next(matches(answer, line), None) is not None for line, _ in lines)


_LINE_STARTS: Final = re.compile(r"(?<=\n)")


@lru_cache(maxsize=256)
def _lines_of(text: str) -> Sequence[tuple[str, str]]:
    """Return the lines of a text, each with its folded form."""
    return [(line, folded(line)) for line in _LINE_STARTS.split(text)]


@lru_cache(maxsize=1024)
def enumeration(answer: str) -> tuple[str, ...]:
    """Return the items of "a, b and c"; the answer alone where it is no enumeration, or holds a date."""
    if any(token.kind == "date" for token in tokens_of(answer)):
        return (answer,)
    parts = re.split(r"\s*(?:,(?!\d{3}\b)|;|\band\b|\by\b|&|(?<=\s)\+(?=\s))\s*", answer)
    items = tuple(part for part in parts if content_of(tokens_of(part)))
    return items if len(items) > 1 else (answer,)
