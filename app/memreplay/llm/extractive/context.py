"""Reads the context of a prompt: its sentences with speaker and day, their words and their vectors.

Memories write ``[8 May 2023, 13:56]`` above lines of ``Speaker: text``; a line without a speaker continues the turn
above it. "Yesterday" then is 7 May 2023; a sentence that says no time is about the day on which it was said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_backends.retrieval.embedding import CachedEmbedder, MiniLMEmbedder, StoredEmbedder
from memory_backends.retrieval.keyword import KeywordIndex, language_of, terms_in
from memory_backends.retrieval.rendering import MONTHS
from memory_backends.text import folded, numbers_in, sentences_of
from memreplay.grading.times import Time, times_in
from memreplay.paths import vectors_file

USER, ASSISTANT = "user", "assistant"
_ROLES = {"user": USER, "human": USER, "ai": ASSISTANT, "assistant": ASSISTANT, "agent": ASSISTANT}
_KNOWN = re.compile(r"\A\s*(?:Known:|[-*•])\s+")
_STAMP = re.compile(r"\s*\[([^\]\n]{4,60})\]\s*")
_LABEL = re.compile(r"([^\W\d_][\w.'’ -]{0,39}?):\s+(?=\S)")
_FEWEST_WORDS = 4


class Sentence(NamedTuple):
    """A sentence of a context. ``said`` is the day, where it is known; ``turn`` numbers what was said from 1."""

    text: str
    speaker: str | None
    said: date | None
    turn: int

    def times(self) -> tuple[Time, ...]:
        """Return the times that it says, or else the day on which it was said."""
        return times_in(self.text, self.said) or ((Time(self.said, self.said, ""),) if self.said else ())

    def with_dates(self) -> str:
        """Return the sentence with its times written out behind it: ``I was there yesterday. (7 May 2023)``."""
        written = dict.fromkeys(_written(time) for time in self.times() if not time.is_of_any_year)
        new = [one for one in written if folded(one) not in folded(self.text)]
        return f"{self.text} ({'; '.join(new)})" if new else self.text


def _written(time: Time) -> str:
    """Return a time as ``7 May 2023``, ``about 1 May 2023`` of a week, ``May 2023`` or ``2023``."""
    day = time.middle
    month = f"{MONTHS[day.month - 1]} {day.year}"
    if time.days > 14:
        return month if time.days <= 31 else str(day.year)
    return f"{'about ' if time.days > 1 else '' if time.words else 'said on '}{day.day} {month}"


def _days_in(stamp: str) -> list[date]:
    return [time.first for time in times_in(stamp) if time.days == 1 and not time.is_of_any_year]


def read_sentences(context: str) -> Iterator[Sentence]:
    """Yield the sentences of a context, in order."""
    rows = context.split("\n")
    only_roles = any(folded(match[1]) in _ROLES for row in rows if (match := _LABEL.match(row)))
    speaker: str | None = None
    said: date | None = None
    turn = 0
    for row in rows:
        body, begins = _KNOWN.sub("", row), row.startswith("Known:")
        if (stamp := _STAMP.match(body)) and (days := _days_in(stamp[1])):
            body, begins, said = body[stamp.end() :], True, days[0]
        if (label := _LABEL.match(body)) and (not only_roles or folded(label[1]) in _ROLES):
            name = folded(label[1])
            begins, speaker, body = True, _ROLES.get(name, name), body[label.end() :]
        elif begins:
            speaker = None
        turn += begins
        begun = ""  # One of a few words stands with the next, or says nothing.
        for text in sentences_of(body):
            begun = f"{begun} {text}".strip()
            if len(text.split()) >= _FEWEST_WORDS:
                yield Sentence(begun, speaker, said, turn)
                begun = ""
        if begun:
            yield Sentence(begun, speaker, said, turn)


@lru_cache(maxsize=65536)
def terms_of(text: str, spanish: bool, times: tuple[Time, ...] | None = None) -> frozenset[str]:
    """Return the stems, numbers and times of a text, however they are written."""
    stems = terms_in(text, "spanish" if spanish else "english")
    plain = {folded(stem) for stem in stems if not stem[0].isdigit()}
    return frozenset({*plain, *numbers_in(text), *_marks_of(times_in(text) if times is None else times)})


def _marks_of(times: Iterable[Time]) -> Iterator[str]:
    """Yield the years, months, weeks and days of times, as terms that texts share."""
    for time in times:
        middle, year = time.middle, not time.is_of_any_year
        marks = (("%Y", 9999, year), ("month %m", 31, True), ("week %G %V", 14, year), ("%m-%d", 1, True))
        yield from (f"{middle:{mark}}" for mark, most, is_known in marks if time.days <= most and is_known)


@lru_cache(maxsize=1)
def _embedder() -> CachedEmbedder:
    return CachedEmbedder(StoredEmbedder(MiniLMEmbedder(), vectors_file()), capacity=50_000)


_SAME = 0.8


class Context:
    """The sentences of a context with what every question about it needs."""

    def __init__(self, sentences: Sequence[Sentence], spanish: bool) -> None:
        self.sentences, self.spanish = sentences, spanish
        self.speakers = {one.speaker for one in sentences if one.speaker}
        self.terms = [terms_of(one.text, spanish, one.times()) for one in sentences]
        self._vectors = _embedder().embed([one.text for one in sentences])
        turns = [list(said) for _, said in groupby(sentences, lambda one: one.turn)]
        self._turn = np.repeat(np.arange(len(turns)), [len(said) for said in turns])
        self._keywords = KeywordIndex()
        for said in turns:
            self._keywords.add(0, " ".join(one.text for one in said))
        self._frequency = Counter(term for terms in self.terms for term in terms)

    def likeness(self, text: str) -> NDArray[np.float64]:
        """Return how like a text each sentence is in meaning, and its turn, with those beside it, in words."""
        meaning, words = self._vectors @ _embedder().embed([text])[0], self._keywords.scores(text, 1)
        return np.array([meaning, (words / (words.max() or 1.0))[self._turn]])

    def is_outdated(self, place: int, others: Iterable[int]) -> bool:
        """Return whether a later one of other sentences says the same."""
        return any(place < one and self._vectors[one] @ self._vectors[place] >= _SAME for one in others)

    def share(self, wanted: frozenset[str], terms: frozenset[str]) -> float:
        """Return the share of the wanted terms, by inverse frequency, that are among others."""
        return math.fsum(map(self._weight, terms & wanted)) / (math.fsum(map(self._weight, wanted)) or 1.0)

    def _weight(self, term: str) -> float:
        return math.log(1 + (len(self.terms) + 5) / (self._frequency[term] + 0.5))


_MOST_SENTENCES, _SHORTLIST = 2000, 500
"""Only so many sentences of a longer context are embedded: those with the most words of the question."""
_SAMPLE = 4000
"""Characters of a context by which its language is told."""

_sentences = lru_cache(maxsize=8)(lambda text: tuple(read_sentences(text)))
_whole = lru_cache(maxsize=8)(Context)


def read_context(text: str, question: str) -> Context:
    """Return a context read. Many questions are asked about the same one, unless it is too long to embed."""
    sentences, spanish = _sentences(text), language_of(text[:_SAMPLE]) == "spanish"
    if len(sentences) <= _MOST_SENTENCES:
        return _whole(sentences, spanish)
    asked = terms_of(question, spanish)
    shared = [len(asked & terms_of(one.text, spanish)) for one in sentences]
    kept = sorted(sorted(range(len(sentences)), key=lambda place: -shared[place])[:_SHORTLIST])
    return Context([sentences[place] for place in kept], spanish)
