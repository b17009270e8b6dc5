"""Picks the option, or the one or two sentences, that a context supports best: by meaning, words and speaker.

The weights were fitted, and the thresholds set, on the thirty short conversations, long-01, long-02 and five
conversations of LoCoMo: a softmax over the sentences (or options) of each question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from memory_backends.retrieval.embedding import CachedEmbedder, MiniLMEmbedder, StoredEmbedder
from memory_backends.retrieval.keyword import KeywordIndex, terms_in
from memory_backends.text import MONTHS, folded, numbers_in
from memreplay.grading.judge import is_abstention
from memreplay.llm.extractive.history import ASSISTANT, USER, Sentence, is_spanish, read_sentences
from memreplay.llm.prompts import NOT_SAID
from memreplay.paths import vectors_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

UNSUPPORTED = "The conversation supports none of these options."

_MONTHS = {name[:length]: f"month {number}" for name, number in MONTHS.items() for length in (3, len(name))}
_NAMES_OF_ROLES = {"user": USER, "usuario": USER, "usuaria": USER, "assistant": ASSISTANT, "asistente": ASSISTANT}
_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=65536)
def _terms(text: str, spanish: bool) -> frozenset[str]:
    """Return the stems, months and numbers of a text, however a number is written."""
    stems = terms_in(text, "spanish" if spanish else "english")
    plain = (folded(stem) for stem in stems if not stem[0].isdigit())
    return frozenset(_MONTHS.get(stem, stem) for stem in plain) | numbers_in(text)


@lru_cache(maxsize=1)
def _embedder() -> CachedEmbedder:
    return CachedEmbedder(StoredEmbedder(MiniLMEmbedder(), vectors_file()), capacity=50_000)


class Context:
    """The sentences of a context with what every question about it needs. A passage is turns without a gap."""

    def __init__(self, sentences: Sequence[Sentence], spanish: bool) -> None:
        import numpy as np

        self.sentences, self.spanish = sentences, spanish
        self.speakers = {one.speaker for one in sentences if one.speaker}
        self.terms = [_terms(one.dated, spanish) for one in sentences]
        self.vectors = _embedder().embed([one.text for one in sentences])
        numbers, self.turn = np.unique([one.turn for one in sentences], return_inverse=True)
        passages = np.cumsum(np.diff(numbers, prepend=-9) != 1) - 1
        self.passage = passages[self.turn]
        self.keywords = KeywordIndex()
        said: list[list[str]] = [[] for _ in numbers]
        for one, turn in zip(sentences, self.turn, strict=True):
            said[turn].append(one.text)
        for passage, texts in zip(passages, said, strict=True):
            self.keywords.add(int(passage), " ".join(texts))
        self._frequency = Counter(term for terms in self.terms for term in terms)

    def weight(self, term: str) -> float:
        """Return the inverse frequency of a term."""
        return math.log(1 + (len(self.terms) + 5) / (self._frequency[term] + 0.5))


_MOST_SENTENCES, _SHORTLIST = 2000, 500
"""Only so many sentences of a longer context are embedded: those with the most words of the question."""

_sentences_of = lru_cache(maxsize=8)(read_sentences)


@lru_cache(maxsize=8)
def _whole(text: str) -> Context:
    return Context(_sentences_of(text), is_spanish(text))


def read_context(text: str, question: str) -> Context:
    """Return a context read. Many questions are asked about the same one, unless it is too long to embed."""
    sentences, spanish = _sentences_of(text), is_spanish(text)
    if len(sentences) <= _MOST_SENTENCES:
        return _whole(text)
    asked = _terms(question, spanish)
    shared = [len(asked & _terms(one.dated, spanish)) for one in sentences]
    kept = sorted(sorted(range(len(sentences)), key=lambda place: -shared[place])[:_SHORTLIST])
    return Context([sentences[place] for place in kept], spanish)


# What a question asks for, and what a sentence that tells it has. The first that fits the question counts.
_KINDS = tuple(
    (re.compile(asks), re.compile(tells))
    for asks, tells in (
        (r"\bwhat time|what hour|que hora", r"\d[:.h]\d\d|\d ?(?:am|pm)\b|noon|midnight|o.clock|a las \w+"),
        (
            r"\bwhen\b|(?:what|which) (?:date|day|month|year)|weekday|\bcuando\b|\bfecha\b"
            r"|que (?:dia|mes|ano)",
            r"\d{1,2}(?:st|nd|rd|th)? (?:de )?[a-z]{3,9}|(?:19|20)\d\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
            r"|lunes|martes|miercoles|jueves|viernes|sabado|domingo",
        ),
        (
            r"how (?:much|many|long|old|often|far|big|tall|exact)|price|cost|charge|\b(?:rate|fee|sum|port)\b"
            r"|number|amount|rent\b|bill\b|premium|version|cuant[oa]s?\b|precio|renta|cantidad|cuota|numero|plazo",
            r"\d",
        ),
        (
            r"\bwho(?:m|se)?\b|\bnames?\b|called|\bwhere\b|(?:which|what) (?:city|town|place|company|street|school"
            r"|book|band|country|suburb|village)|quien|donde|llama|pueblo|ciudad|nombre|apellido|localidad",
            r"",
        ),
    )
)
_TIME, _DATE, _NUMBER, _NAME = range(4)
_NAME_INSIDE = re.compile(r"(?<![.!?…:] )(?<!^)\b(?!I\b)[A-ZÀ-Þ][\w-]+")


def _kind(question: str) -> int | None:
    plain = folded(question)
    return next((kind for kind, (asks, _) in enumerate(_KINDS) if asks.search(plain)), None)


def _tells(sentence: Sentence, kind: int | None, asked: set[str]) -> bool:
    if kind == _NAME:
        return any(folded(name) not in asked for name in _NAME_INSIDE.findall(sentence.text))
    return kind is not None and bool(
        _KINDS[kind][1].search(folded(sentence.dated)) or (kind == _NUMBER and numbers_in(sentence.text))
    )


_SENTENCE_WEIGHTS = (4.0, 4.7, 5.7, 3.1, 2.7, -2.2, 1.0, -1.5, -2.4)
"""In the order of :meth:`Asked._features`."""

_TELLS_KIND = 4

_ASKED_ABOUT = re.compile(
    r"\b(?:do|does|did|is|was|are|were|has|have|had|will|would|can|could|should) ([A-Z][a-z]+)"
    r"|\b([A-Z][a-z]+)['’]s\b"
)


class Asked:
    """A question put to a context: how much each sentence bears on it."""

    def __init__(self, context: Context, question: str) -> None:
        self.context, self.question = context, question
        words = set(_WORD.findall(folded(question)))
        self.named = {name for name in context.speakers if name.split()[0] in words or _is_short_for(name, words)}
        self.named |= {_NAMES_OF_ROLES[word] for word in words & _NAMES_OF_ROLES.keys()} & context.speakers
        if len(self.named & {USER, ASSISTANT}) == 2:
            self.named -= {USER}
        of_speakers = {term for name in [*self.named, *_NAMES_OF_ROLES] for term in _terms(name, context.spanish)}
        self.terms = _terms(question, context.spanish) - of_speakers
        self.kind = _kind(question)
        self.features = self._features(words)
        self.bearing = self.features @ _SENTENCE_WEIGHTS

    def is_answered_by(self, place: int) -> bool:
        """Return whether a sentence may tell it: where speakers have names, by or about whom the question names."""
        one = self.context.sentences[place]
        if one.speaker in (None, USER, ASSISTANT):
            return True
        others = {match[1] or match[2] for match in _ASKED_ABOUT.finditer(self.question)}
        return one.speaker in self.named if self.named else all(name in one.text for name in others)

    def signs(self, place: int) -> tuple[float, float, float, float]:
        """Return what tells an answer from what stands beside it.

        The share of the question's terms in a sentence, and with those beside it; whether the sentence has the kind
        of thing that is asked for; whether the question has names.
        """
        import numpy as np

        context = self.context
        beside = np.flatnonzero(abs(context.turn - context.turn[place]) <= 1)
        names = [_terms(name, context.spanish) for name in _NAME_INSIDE.findall(self.question)]
        return (
            self.share_of(context.terms[place]),
            self.share_of(frozenset().union(*(context.terms[one] for one in beside))),
            float(self.features[place, _TELLS_KIND]),
            float(any(name & self.terms for name in names)),
        )

    def share_of(self, terms: frozenset[str]) -> float:
        """Return the share of the question's terms, by weight, that are among some."""
        weight = self.context.weight
        return math.fsum(map(weight, terms & self.terms)) / (math.fsum(map(weight, self.terms)) or 1.0)

    def _features(self, words: set[str]) -> Numbers:
        """Return a row a sentence: meaning of it and of its passage, words, keywords, kind, question, speaker."""
        import numpy as np

        context, named = self.context, self.named
        (vector,) = _embedder().embed([self.question])
        meaning = context.vectors @ vector
        passages = np.full(context.passage.max() + 1, -1.0)
        np.maximum.at(passages, context.passage, meaning)
        keywords = context.keywords.scores(self.question, 1)
        flags = [
            (
                _tells(one, self.kind, words),
                one.text.rstrip("\"”')»").endswith("?"),
                one.speaker in named,
                bool(named) and one.speaker is not None and one.speaker not in named,
                one.speaker == ASSISTANT and ASSISTANT not in named,
            )
            for one in context.sentences
        ]
        return np.column_stack(
            [
                meaning,
                passages[context.passage],
                [self.share_of(terms) for terms in context.terms],
                (keywords / (keywords.max() or 1.0))[context.turn],
                np.array(flags, dtype=float),
            ]
        )


def _is_short_for(name: str, words: set[str]) -> bool:
    """Whether a question calls somebody by the beginning of the name: ``Mel`` for Melanie."""
    return name not in (USER, ASSISTANT) and any(
        len(word) >= 3 and name.startswith(word) and word not in ("the", "her", "his") for word in words
    )


_SUPPORT = (4.9, 5.0)
"""Of an option: its words, in the sentence where they count most; its likeness to what bears on the question."""

_NEAR, _READ = 6.0, 60
"""How fast words count less behind the best sentence; how many sentences an option's meaning is compared with."""

_ALREADY_ASKED = 0.2

_SURE, _LEAST_SURE = (1.9, 0.3, 0.25, 0.0, -0.65), 0.75
_TOLD, _LEAST_TOLD = (0.19, 2.5, -1.3, 1.0, -0.9), 1.1
"""Of the words of an option, or the bearing of a sentence, and of :meth:`Asked.signs`: what was never said often
shares its words with sentences beside.
"""


def answer_choice(text: str, question: str, options: Sequence[str]) -> str:
    """Return the index of the best supported option, of "not answerable", or :data:`UNSUPPORTED`."""
    import numpy as np

    nothing = next((index for index, option in enumerate(options) if is_abstention(option)), None)
    given_up = UNSUPPORTED if nothing is None else str(nothing)
    context, places = read_context(text, question), [index for index in range(len(options)) if index != nothing]
    if not context.sentences or not places:
        return given_up
    asked = Asked(context, question)
    support, holders = option_support(asked, [options[index] for index in places])
    best = int(np.argmax(support @ _SUPPORT))
    if nothing is None:
        return str(places[best]) if support[best, 0] > 0 else given_up
    is_sure = np.dot((support[best, 0], *asked.signs(holders[best])), _SURE) >= _LEAST_SURE
    return str(places[best]) if is_sure and asked.is_answered_by(holders[best]) else given_up


def option_support(asked: Asked, options: Sequence[str]) -> tuple[Numbers, list[int]]:
    """Return a row of words and meaning for each option, and the place that holds it best."""
    import numpy as np

    context, near = asked.context, np.exp((asked.bearing - asked.bearing.max()) / _NEAR)
    read = np.argsort(-asked.bearing, kind="stable")[:_READ]
    alike = context.vectors[read] @ _embedder().embed(list(options)).T
    wanted = [_terms(option, context.spanish) for option in options]
    shared_by = Counter(term for option in wanted for term in option)
    words, holders = [], []
    for number, option in enumerate(wanted):
        weights = {
            term: context.weight(term)
            * (_ALREADY_ASKED if term in asked.terms else 1.0)
            / (1 + 2 * (shared_by[term] - 1) / len(options))
            for term in option
        }
        total = math.fsum(weights.values()) or 1.0
        held = near * [math.fsum(weights[term] for term in option & terms) / total for terms in context.terms]
        words.append(held.max())
        holders.append(int(held.argmax() if held.max() > 0 else read[alike[:, number].argmax()]))
    return np.column_stack([words, alike.max(axis=0)]), holders


_BESIDE, _AS_GOOD, _SAME = 5.0, 1.0, 0.7
"""How far behind the best sentence a second, or a later one that says the same, may be; and how alike that is."""

_WRITTEN_DATE = re.compile(r"\d{1,2} (?:de )?[^\W\d_]{3,} (?:de )?\d{4}|\b(?:19|20)\d\d\b")


def answer_recall(text: str, question: str) -> str:
    """Return the one or two sentences that bear most on a question, or :data:`NOT_SAID`.

    They are as they were said; asked for a date, with each date written out.
    """
    import numpy as np

    context = read_context(text, question)
    if not context.sentences:
        return NOT_SAID
    asked = Asked(context, question)
    bearing, sentences = asked.bearing, context.sentences
    best, *others = (int(place) for place in np.argsort(-bearing, kind="stable")[:2])
    if np.dot((bearing[best], *asked.signs(best)), _TOLD) < _LEAST_TOLD or not asked.is_answered_by(best):
        return NOT_SAID
    alike = context.vectors @ context.vectors[best] >= _SAME
    first = int(np.flatnonzero(alike & (bearing >= bearing[best] - _AS_GOOD)).max(initial=best))
    second = [place for place in others if bearing[place] >= bearing[best] - _BESIDE and not alike[place]]
    picked = [sentences[place] for place in sorted({first, *second})]
    if asked.kind != _DATE:
        return "\n".join(one.text for one in picked)
    reply = "\n".join(one.dated for one in picked)
    said = sentences[first].said
    return reply if not said or _WRITTEN_DATE.search(reply) else f"{reply} ({said})"
