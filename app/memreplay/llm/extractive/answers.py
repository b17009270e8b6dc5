"""The embedded reader's answers: the best supported option, the best sentence, a reply in conversation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from memory_backends.text import folded
from memreplay.grading.judge import is_abstention
from memreplay.llm.extractive.dates import Span, likeness, spans_in, written_span
from memreplay.llm.extractive.history import ROLES, Bearing, History, Line, Sentence, bearing, read_history
from memreplay.llm.extractive.language import (
    Wanted,
    asks_who_speaks,
    holds,
    introduces_itself,
    is_spanish,
    terms,
    wanted_by,
)
from memreplay.llm.prompts import NOT_SAID

UNSUPPORTED = "The conversation supports none of these options."

_LEAST_SUPPORT = 0.05
_LEAST_WHERE_NOTHING_IS_OFFERED = 0.3
_BASE = 0.1
_TOGETHER = 0.5
_ASKED_ALREADY = 0.2
_OTHER_SPEAKER = 0.6
_SAID_THEN = 0.35
_HOLDS_THE_DAY = 0.45
_NOT_A_DATE = 0.5
_YES = re.compile(r"\A(?:likely |probably |most likely )?(?:yes|si)\b")
_NO = re.compile(r"\A(?:likely |probably |most likely )?(?:no|not)\b")


class Support(NamedTuple):
    """How well the history supports an option, about 0..1, and the line that supports it best, if any."""

    score: float
    line: int | None = None


def answer_choice(history: History, question: str, options: Sequence[str]) -> str:
    """The index of the best supported option, else of "not answerable", else :data:`UNSUPPORTED`."""
    nothing = next((index for index, option in enumerate(options) if is_abstention(option)), None)
    if history.sentences:
        bears = bearing(history, question)
        found = support(history, bears, question, options)
        best = max(
            (index for index in range(len(options)) if index != nothing), key=lambda index: found[index].score
        )
        if found[best].score >= _LEAST_SUPPORT and (nothing is None or _convinces(history, bears, found[best])):
            return str(best)
    return UNSUPPORTED if nothing is None else str(nothing)


def _convinces(history: History, bears: Bearing, best: Support) -> bool:
    """Whether to prefer an option to "not answerable": enough support, by a speaker whom the question names."""
    if best.line is None or best.score < _LEAST_WHERE_NOTHING_IS_OFFERED:
        return False
    return not _by_another(history, bears, best.line)


def _by_another(history: History, bears: Bearing, line: int) -> bool:
    speaker = history.speakers[line]
    return bool(bears.named) and speaker is not None and speaker not in bears.named


def support(history: History, bears: Bearing, question: str, options: Sequence[str]) -> list[Support]:
    """How well the history supports each option as the answer."""
    spelled = [tuple(dict.fromkeys(terms(option, history.spanish))) for option in options]
    strength = [
        score * (_OTHER_SPEAKER if _by_another(history, bears, number) else 1.0)
        for number, score in enumerate(bears.by_line)
    ]
    weights = _option_weights(history, bears, spelled)
    wanted = wanted_by(question)
    spans = _spans(history, strength)
    years = {line.said.year for line in history.lines if line.said}
    found = []
    for option, text in zip(spelled, options, strict=True):
        dates = {written_span(text, year) for year in years or [None]} - {None}
        by_words = _words_support(history, strength, option, weights)
        if wanted == "date" and not dates:
            by_words = by_words._replace(score=by_words.score * _NOT_A_DATE)
        by_date = max((_date_support(spans, span) for span in dates if span), default=Support(0.0))
        polar = _polar_support(bears, text) if wanted == "yes_no" else Support(0.0)
        found.append(max(by_words, by_date, polar, key=lambda one: one.score))
    return found


def _option_weights(history: History, bears: Bearing, spelled: Sequence[Sequence[str]]) -> dict[str, float]:
    """The weight of each term of the options: low if the question or many options contain it."""
    holders = Counter(term for option in spelled for term in option)
    asked = set(bears.question_terms)
    return {
        term: history.weight(term)
        * (_ASKED_ALREADY if term in asked else 1.0)
        / (1 + 2 * (count - 1) / len(spelled))
        for term, count in holders.items()
    }


def _words_support(
    history: History, strength: Sequence[float], option: Sequence[str], weights: dict[str, float]
) -> Support:
    """Support by the option's terms in lines relevant to the question; more if they occur together."""
    total = sum(weights[term] for term in option)
    if not total:
        return Support(0.0)
    apart = 0.0
    together: Counter[int] = Counter()
    for term in option:
        lines = {history.sentences[place].line for place in history.postings.get(term, ())}
        if lines:
            apart += weights[term] * (_BASE + max(strength[line] for line in lines))
        for line in lines:
            together[line] += weights[term]  # type: ignore[assignment]
    if not together:
        return Support(0.0)
    best = max(together, key=lambda line: together[line] * (_BASE + strength[line]))
    joint = together[best] * (_BASE + strength[best])
    return Support(((1 - _TOGETHER) * apart + _TOGETHER * joint) / total / (1 + _BASE), best)


@lru_cache(maxsize=16384)
def _spans_of(line: Line) -> tuple[Span, ...]:
    return tuple(spans_in(line.text, line.said))


def _spans(history: History, strength: Sequence[float]) -> list[tuple[float, Span, int]]:
    """The dates in each relevant line, as strength, span and line; its own day counts too."""
    found: list[tuple[float, Span, int]] = []
    for number, line in enumerate(history.lines):
        if not strength[number]:
            continue
        found += [(strength[number], span, number) for span in _spans_of(line)]
        if line.said:
            found.append((strength[number] * _SAID_THEN, Span(line.said, line.said), number))
    return found


def _date_support(spans: Sequence[tuple[float, Span, int]], option: Span) -> Support:
    best = Support(0.0)
    for strength, span, line in spans:
        alike = likeness(span, option)
        if alike and option.start <= span.start and span.end <= option.end:
            alike = max(alike, _HOLDS_THE_DAY)
        if strength * alike > best.score:
            best = Support(strength * alike, line)
    return best


def _polar_support(bears: Bearing, option: str) -> Support:
    plain = folded(option)
    best = max(range(len(bears.by_line)), key=lambda line: bears.by_line[line])
    return Support(bears.by_line[best] * (0.5 if _YES.match(plain) else 0.45 if _NO.match(plain) else 0.0), best)


_LEAST_BEARING = 0.18
_HOLDS_WHAT_IS_WANTED = 0.35
_INTRODUCES_ITSELF = 0.8
_IS_A_QUESTION = 0.25
_HAS_NO_WORD_OF_IT = 0.1
_CORRECTS = 0.2
_CORRECTS_UNASKED = 0.08
_LATER = 0.03
_SHORTEST_CORRECTION = 2
_SHARE_OF_THE_NAMED = 0.7
_CORRECTION = re.compile(
    r"\b(?:actually|moved|instead|changed|change of plan|correction|scratch|turns out|no longer|rather than|now|"
    r"new|updated|wrong|sorry|switched|en realidad|al final|ahora|correccion|me equivoque|ya no|cambiado|"
    r"perdon|mejor dicho)\b"
)
_WANTS_THE_NEWEST = re.compile(
    r"\b(?:now|new|actually|current|currently|after|latest|last|in the end|finally|final|corrected|updated|changed|"
    r"moved|ahora|nuev[oa]|corregid[oa]|actual|al final|definitiv[oa])\b"
)


class _Asked(NamedTuple):
    """A question, analysed once for all sentences."""

    bears: Bearing
    wanted: Wanted
    words: frozenset[str]
    newest: bool
    who_speaks: bool


def answer_recall(history: History, question: str) -> str:
    """One sentence of the history, or two that belong together, or :data:`NOT_SAID`."""
    plain = folded(question)
    asked = _Asked(
        bears=bearing(history, question),
        wanted=wanted_by(question),
        words=frozenset(re.findall(r"[^\W_]+", plain)),
        newest=bool(_WANTS_THE_NEWEST.search(plain)),
        who_speaks=asks_who_speaks(question),
    )
    scored = [
        (score, sentence) for sentence in history.sentences if (score := _score(history, asked, sentence)) > 0
    ]
    if not scored or _said_by_another(history, asked, scored):
        return NOT_SAID
    _, best = max(scored, key=lambda pair: (pair[0], pair[1].place))
    return _with_its_neighbour(history, asked, best)


def _score(history: History, asked: _Asked, sentence: Sentence) -> float:
    """0 for a sentence that is not relevant to the question."""
    introduced = asked.who_speaks and introduces_itself(sentence.text)
    score = asked.bears.by_sentence[sentence.place] + (_INTRODUCES_ITSELF if introduced else 0.0)
    if score < _LEAST_BEARING:
        return 0.0
    if holds(sentence.text, asked.wanted, asked.words):
        score += _HOLDS_WHAT_IS_WANTED
    if sentence.text.rstrip("\"”')").endswith("?"):
        score -= _IS_A_QUESTION
    if not set(sentence.terms) & set(asked.bears.question_terms):
        score -= _HAS_NO_WORD_OF_IT
    if len(sentence.terms) >= _SHORTEST_CORRECTION and _CORRECTION.search(folded(sentence.text)):
        score += _CORRECTS if asked.newest else _CORRECTS_UNASKED
    return max(score + _LATER * sentence.place / len(history.sentences), 1e-6)


def _said_by_another(history: History, asked: _Asked, scored: Sequence[tuple[float, Sentence]]) -> bool:
    """Whether only speakers whom the question does not name say such a thing. User and AI speak for each other."""
    named = asked.bears.named
    if not named or named & ROLES:
        return False
    by_named = (score for score, sentence in scored if not _by_another(history, asked.bears, sentence.line))
    return max(by_named, default=0.0) < _SHARE_OF_THE_NAMED * max(score for score, _ in scored)


def _with_its_neighbour(history: History, asked: _Asked, best: Sentence) -> str:
    """The sentence; if it contains nothing of the wanted kind, with the adjacent one that does."""
    if asked.wanted in ("anything", "yes_no") or holds(best.text, asked.wanted, asked.words):
        return best.text
    beside = [
        sentence
        for sentence in history.sentences_of(best.line)
        if abs(sentence.place - best.place) == 1 and holds(sentence.text, asked.wanted, asked.words)
    ]
    if not beside:
        return best.text
    other = max(beside, key=lambda sentence: (asked.bears.by_sentence[sentence.place], sentence.place))
    return " ".join(sentence.text for sentence in sorted((best, other)))


NOTED = "Noted."
"""The reply to a message that asks nothing."""

_ASKS = re.compile(
    r"[?？]|^\W*(?:tell|list|name|recite|repeat|remind|give|say|reply|answer|what|which|who|when|where|how)\b",
    re.IGNORECASE,
)


def reply_to_message(context: str, message: str) -> str:
    """An agent's reply: the answer from the context, or :data:`NOTED` to a message that asks nothing."""
    if not _ASKS.search(message):
        return NOTED
    return answer_recall(read_history(context, is_spanish(message)), message)
