"""Which texts a regular expression can match at all, told from the letters that every match of it has.

Looking for a few letters takes a hundredth of the time of a search, and most sentences have those of few patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from re import _constants as op
from re import _parser
from typing import Any

_MOST = 200
"""Needles of a pattern that has more are not looked for one by one."""

Needles = frozenset[str] | None
"""Case-folded strings of which every match has at least one; None where nothing is known."""


@lru_cache(maxsize=256)
def plain(text: str) -> str:
    """The form of a text in which needles are looked for."""
    return text.casefold()


def needles_of(pattern: str, flags: int) -> Needles:
    """Strings of which :func:`plain` of every text that the pattern matches has at least one."""
    found = _of_sequence(_parser.parse(pattern, flags))
    return found if found is not None and len(found) <= _MOST else None


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> Needles:
    """The best needles of what has to be matched one after another."""
    candidates: list[frozenset[str]] = []
    run = ""
    for code, argument in items:
        letter = _letter(code, argument)
        if letter is not None:
            run += letter
            continue
        if code is op.AT:
            continue
        if run:
            candidates.append(frozenset([run]))
            run = ""
        inner = _of_item(code, argument)
        if inner is not None:
            candidates.append(inner)
    if run:
        candidates.append(frozenset([run]))
    return max(candidates, key=_worth, default=None)


def _of_item(code: Any, argument: Any) -> Needles:
    if code is op.SUBPATTERN:
        return _of_sequence(argument[-1])
    if code is op.ATOMIC_GROUP:
        return _of_sequence(argument)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT) and argument[0] > 0:
        return _of_sequence(argument[2])
    if code is op.BRANCH:
        branches = [_of_sequence(branch) for branch in argument[1]]
        known = [branch for branch in branches if branch is not None]
        return frozenset().union(*known) if len(known) == len(branches) else None
    return None


def _letter(code: Any, argument: Any) -> str | None:
    """The letter that is matched here in whatever case, if it is only one."""
    if code is op.LITERAL:
        return chr(argument).casefold()
    if code is op.IN and all(kind is op.LITERAL for kind, _ in argument):
        letters = {chr(letter).casefold() for _, letter in argument}
        return letters.pop() if len(letters) == 1 else None
    return None


def _worth(needles: frozenset[str]) -> tuple[int, int]:
    """Long needles are rare; of equally long ones, few are found fast."""
    return min(map(len, needles)), -len(needles)
