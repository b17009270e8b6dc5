"""Parses a question: which speakers and which months it names.

People call themselves "I", not by their own name. So the name of a speaker in a question selects whose turns are
meant, and the topic, which is compared with the turns, has "I" or "my" in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_backends.text import MONTHS, folded_words

_ALSO_A_WORD = frozenset({"may", "march"})
"""Months that count as such only beside a number, or after ``in`` or ``of``."""

_ALSO_CALLED: Mapping[str, frozenset[str]] = {"user": frozenset({"usuario", "usuaria"})}
"""Other words by which a question may name a speaker."""

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_POSSESSIVE = re.compile(r"['’]s$")
_REPEATED = re.compile(r"\bI(?:\W+(I|my)\b)+")
_ARTICLE = re.compile(r"\b(?:the|el|la)\s+(?=(?:I|my)\b)", re.I)


@dataclass(frozen=True)
class ParsedQuestion:
    """A question and what it names.

    ``topic`` is the question in the words of the speaker that it names; if it names several, without their
    names; if nothing else is left, the question itself. ``speakers`` are the folded labels that it names.
    """

    text: str
    topic: str
    speakers: frozenset[str]
    months: frozenset[int]
    years: frozenset[int]

    def means_date(self, said_at: datetime | None) -> bool:
        """Return whether a date is in a month that the question names."""
        if said_at is None or said_at.month not in self.months:
            return False
        return not self.years or said_at.year in self.years


def parse_question(text: str, labels: Iterable[str]) -> ParsedQuestion:
    """Read a question; ``labels`` are the folded labels of those who speak."""
    words = folded_words(text).split()
    names = {label: {label, *_ALSO_CALLED.get(label, ())} for label in labels if label}
    named = {label: called for label, called in names.items() if any(_occurs_in(name, words) for name in called)}
    return ParsedQuestion(
        text=text,
        topic=_topic(text, list(named.values())),
        speakers=frozenset(named),
        months=frozenset(_months(words)),
        years=frozenset(int(word) for word in words if _YEAR.fullmatch(word)),
    )


def _occurs_in(name: str, words: Sequence[str]) -> bool:
    return f" {name} " in f" {' '.join(words)} "


def _topic(text: str, named: Sequence[Iterable[str]]) -> str:
    """``named`` has the names of each speaker that the question names."""
    names = {part for called in named for name in called for part in name.split()}

    def in_their_words(word: re.Match[str]) -> str:
        owned = _POSSESSIVE.search(word[0])
        if folded_words(_POSSESSIVE.sub("", word[0])) not in names:
            return word[0]
        return "" if len(named) > 1 else "my" if owned else "I"

    topic = _ARTICLE.sub("", _REPEATED.sub(r"\1", _WORD.sub(in_their_words, text)))
    is_about_something = any(word not in ("I", "my") for word in _WORD.findall(topic))
    return " ".join(topic.split()) if is_about_something else text


def _months(words: list[str]) -> Iterable[int]:
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        is_dated = before in ("in", "of") or before.isdigit() or after.isdigit()
        if word in MONTHS and (is_dated or word not in _ALSO_A_WORD):
            yield MONTHS[word]
