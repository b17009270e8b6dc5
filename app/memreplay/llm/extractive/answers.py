"""Picks the option, or the sentences, that a context supports best: by meaning, words and speaker.

The weights were fitted, as a softmax over the sentences of each question and as a logistic regression of what was
said, on the thirty short conversations, long-01, long-02 and three conversations of LoCoMo.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from memory_backends.retrieval.embedding import CachedEmbedder, MiniLMEmbedder, StoredEmbedder
from memory_backends.retrieval.keyword import KeywordIndex, language_of, terms_in
from memory_backends.text import folded, numbers_in
from memreplay.grading.judge import is_abstention
from memreplay.grading.times import times_in
from memreplay.llm.extractive.history import ASSISTANT, USER, Sentence, marks_of, read_sentences
from memreplay.llm.prompts import NOT_SAID
from memreplay.paths import vectors_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

UNSUPPORTED = "The conversation supports none of these options."

_NAMES_OF_ROLES = {"user": USER, "usuario": USER, "usuaria": USER, "assistant": ASSISTANT, "asistente": ASSISTANT}
_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=65536)
def _terms(text: str, spanish: bool) -> frozenset[str]:
    """Return the stems, numbers and times of a text, however they are written."""
    stems = terms_in(text, "spanish" if spanish else "english")
    plain = frozenset(folded(stem) for stem in stems if not stem[0].isdigit())
    return plain | numbers_in(text) | marks_of(times_in(text))


@lru_cache(maxsize=65536)
def _told(one: Sentence, spanish: bool) -> frozenset[str]:
    return _terms(one.text, spanish) | marks_of(one.times())


@lru_cache(maxsize=1)
def _embedder() -> CachedEmbedder:
    return CachedEmbedder(StoredEmbedder(MiniLMEmbedder(), vectors_file()), capacity=50_000)


class Context:
    """The sentences of a context with what every question about it needs."""

    def __init__(self, sentences: Sequence[Sentence], spanish: bool) -> None:
        import numpy as np

        self.sentences, self.spanish = sentences, spanish
        self.speakers = {one.speaker for one in sentences if one.speaker}
        self.terms = [_told(one, spanish) for one in sentences]
        self.vectors = _embedder().embed([one.text for one in sentences])
        numbers, self.turn = np.unique([one.turn for one in sentences], return_inverse=True)
        said: list[list[str]] = [[] for _ in numbers]
        for one, turn in zip(sentences, self.turn, strict=True):
            said[turn].append(one.text)
        self.keywords = KeywordIndex()
        for texts in said:
            self.keywords.add(0, " ".join(texts))
        self._frequency = Counter(term for terms in self.terms for term in terms)

    def weight(self, term: str) -> float:
        """Return the inverse frequency of a term."""
        return math.log(1 + (len(self.terms) + 5) / (self._frequency[term] + 0.5))

    def share(self, wanted: frozenset[str], terms: frozenset[str]) -> float:
        """Return the share of the wanted terms, by weight, that are among others."""
        return math.fsum(map(self.weight, terms & wanted)) / (math.fsum(map(self.weight, wanted)) or 1.0)


_MOST_SENTENCES, _SHORTLIST = 2000, 500
"""Only so many sentences of a longer context are embedded: those with the most words of the question."""

_sentences_of = lru_cache(maxsize=8)(read_sentences)
_SAMPLE = 4000
"""Characters of a context by which its language is told."""


@lru_cache(maxsize=8)
def _whole(text: str) -> Context:
    return Context(_sentences_of(text), _is_spanish(text))


def _is_spanish(text: str) -> bool:
    return language_of(text[:_SAMPLE]) == "spanish"


def read_context(text: str, question: str) -> Context:
    """Return a context read. Many questions are asked about the same one, unless it is too long to embed."""
    sentences, spanish = _sentences_of(text), _is_spanish(text)
    if len(sentences) <= _MOST_SENTENCES:
        return _whole(text)
    asked = _terms(question, spanish)
    shared = [len(asked & _terms(one.text, spanish)) for one in sentences]
    kept = sorted(sorted(range(len(sentences)), key=lambda place: -shared[place])[:_SHORTLIST])
    return Context([sentences[place] for place in kept], spanish)


# What a question asks for, and what a sentence that tells it has. The first that fits the question counts.
_NAME_INSIDE = re.compile(r"(?<![.!?…:] )(?<!^)\b(?!I\b)[A-ZÀ-Þ][\w-]+")
_KINDS = tuple(
    (kind, re.compile(asks))
    for kind, asks in (
        ("clock", r"\bwhat time|what hour|que hora"),
        (
            "date",
            r"\bwhen\b|(?:what|which) (?:date|day|month|year)|weekday|\bcuando\b|\bfecha\b|que (?:dia|mes|ano)",
        ),
        (
            "number",
            r"how (?:much|many|long|old|often|far|big|tall|exact)|price|cost|charge|\b(?:rate|fee|sum|port)\b"
            r"|number|amount|rent\b|bill\b|premium|version|cuant[oa]s?\b|precio|renta|cantidad|cuota|numero|plazo",
        ),
        (
            "name",
            r"\bwho(?:m|se)?\b|\bnames?\b|called|\bwhere\b|(?:which|what) (?:city|town|place|company|street|school"
            r"|book|band|country|suburb|village)|quien|donde|llama|pueblo|ciudad|nombre|apellido|localidad",
        ),
    )
)
_CLOCK = re.compile(r"\d[:.h]\d\d|\d ?(?:am|pm)\b|noon|midnight|o.clock|a las \w+")


def _kind(question: str) -> str | None:
    plain = folded(question)
    return next((kind for kind, asks in _KINDS if asks.search(plain)), None)


def _tells(one: Sentence, kind: str | None, asked: set[str]) -> bool:
    match kind:
        case "clock":
            return bool(_CLOCK.search(folded(one.text)))
        case "date":
            return bool(times_in(one.text, one.said))
        case "number":
            return bool(numbers_in(one.text))
        case "name":
            return any(folded(name) not in asked for name in _NAME_INSIDE.findall(one.text))
    return False


_SENTENCE_WEIGHTS = (5.0, 3.4, 5.0, 2.6, -2.3, -2.6, -3.7)
"""In the order of :meth:`Asked._features`."""

_TELLS = 3


class Asked:
    """A question put to a context: how much each sentence bears on it."""

    def __init__(self, context: Context, question: str) -> None:
        self.context, self.question = context, question
        words = set(_WORD.findall(folded(question)))
        self.named = {name for name in context.speakers if any(_calls(word, name) for word in words)}
        if ASSISTANT in self.named:
            self.named -= {USER}
        of_speakers = {term for name in [*self.named, *_NAMES_OF_ROLES] for term in _terms(name, context.spanish)}
        self.terms = _terms(question, context.spanish) - of_speakers
        names = [_terms(name, context.spanish) for name in _NAME_INSIDE.findall(question)]
        self.matter = self.terms.difference(*names) or self.terms
        self.kind = _kind(question)
        self.features = self._features(words)
        self.bearing = self.features @ _SENTENCE_WEIGHTS

    def signs(self, place: int) -> tuple[float, float, float]:
        """Return what tells an answer from what stands beside it.

        The share of the question's terms, without names, in a sentence, and with those beside it; whether the
        sentence has the kind of thing that is asked for.
        """
        import numpy as np

        share, terms, turn = self.context.share, self.context.terms, self.context.turn
        beside = np.flatnonzero(abs(turn - turn[place]) <= 1)
        around = share(self.matter, frozenset().union(*(terms[one] for one in beside)))
        return share(self.matter, terms[place]), around, float(self.features[place, _TELLS])

    def is_about(self, place: int) -> bool:
        """Return whether a sentence is by or about whom the question names, where speakers have names."""
        one, names = self.context.sentences[place], {folded(name) for name in _NAME_INSIDE.findall(self.question)}
        if one.speaker in (None, USER, ASSISTANT) or not names:
            return True
        return one.speaker in self.named if self.named else any(name in folded(one.text) for name in names)

    def _features(self, words: set[str]) -> Numbers:
        """Return a row a sentence: meaning, words, keywords, kind, a question, another's, the assistant's."""
        import numpy as np

        context, named = self.context, self.named
        keywords = context.keywords.scores(self.question, 1)
        flags = [
            (
                _tells(one, self.kind, words),
                one.text.rstrip("\"”')»").endswith("?"),
                bool(named) and one.speaker is not None and one.speaker not in named,
                one.speaker == ASSISTANT and ASSISTANT not in named,
            )
            for one in context.sentences
        ]
        return np.column_stack(
            [
                context.vectors @ _embedder().embed([self.question])[0],
                [context.share(self.terms, terms) for terms in context.terms],
                (keywords / (keywords.max() or 1.0))[context.turn],
                np.array(flags, dtype=float),
            ]
        )


def _calls(word: str, name: str) -> bool:
    """Return whether a word calls a speaker: "Mel" for Melanie, "usuaria" for the user."""
    if name in (USER, ASSISTANT):
        return _NAMES_OF_ROLES.get(word) == name
    return word == name.split()[0] or (
        len(word) >= 3 and name.startswith(word) and word not in ("the", "her", "his")
    )


_NEAR = 6.0
"""How fast the words of an option count less behind the best sentence."""

_SURE, _LEAST_SURE = (1.9, 3.1, -3.5), 0.25
_TOLD, _LEAST_TOLD = (1.0, -0.85, 0.6), -0.3
"""Of the words of an option, and of :meth:`Asked.signs`: what was never said often shares its words with sentences
beside.
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
    support = option_support(asked, [options[index] for index in places])
    best, holder = np.unravel_index(support.argmax(), support.shape)
    words = float(support[best, holder])
    place = int(holder)
    is_sure = np.dot((words, *asked.signs(place)[:2]), _SURE) >= _LEAST_SURE and asked.is_about(place)
    return str(places[best]) if words > 0 and (is_sure or nothing is None) else given_up


def option_support(asked: Asked, options: Sequence[str]) -> Numbers:
    """Return the share of each option's words that each sentence has, less the less it bears on the question.

    Words that several options have count less, and those of the question not at all. The shape is
    ``(options, sentences)``.
    """
    import numpy as np

    context, near = asked.context, np.exp((asked.bearing - asked.bearing.max()) / _NEAR)
    wanted = [_terms(option, context.spanish) for option in options]
    shared_by = Counter(term for option in wanted for term in option)
    support = []
    for option in wanted:
        weights = {
            term: context.weight(term) / (1 + 2 * (shared_by[term] - 1) / len(options))
            for term in option - asked.terms or option
        }
        total = math.fsum(weights.values()) or 1.0
        support.append(
            near * [math.fsum(weights[term] for term in weights.keys() & terms) / total for terms in context.terms]
        )
    return np.array(support)


_BESIDE, _SAME = 5.0, 0.7
"""How far behind the best sentence others may be; from which likeness two say the same."""

_MOST = 3


def answer_recall(text: str, question: str) -> str:
    """Return the one to three sentences that bear most on a question, in their order, or :data:`NOT_SAID`.

    They are as they were said; asked for a date, with each date written out. Of two that say the same the later
    counts.
    """
    import numpy as np

    context = read_context(text, question)
    if not context.sentences:
        return NOT_SAID
    asked = Asked(context, question)
    bearing, sentences = asked.bearing, context.sentences
    order = np.argsort(-bearing, kind="stable")
    best = int(order[0])
    signs = asked.signs(best)
    if not any(signs) or np.dot(signs, _TOLD) < _LEAST_TOLD or not asked.is_about(best):
        return NOT_SAID
    picked: list[int] = []
    for place in map(int, order[: 2 * _MOST]):
        twin = next((one for one in picked if context.vectors[one] @ context.vectors[place] >= _SAME), None)
        if twin is not None:
            picked[picked.index(twin)] = max(twin, place)
        elif len(picked) < (1 if asked.kind == "date" else _MOST) and bearing[place] >= bearing[best] - _BESIDE:
            picked.append(place)
    said = [sentences[place] for place in sorted(picked)]
    return "\n".join(one.with_dates(context.spanish) if asked.kind == "date" else one.text for one in said)
