"""The sentence that answers a recall question best, as it stands in the history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from app.answering.extractive.context_lines import ROLES
from app.answering.extractive.evidence import Bearing, History, Sentence, bearing
from app.answering.extractive.questions import Wanted, asks_who_speaks, holds, introduces_itself, wanted_by
from app.answering.extractive.words import folded
from app.answering.prompts import NOT_SAID

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
    """What is known of a question before any sentence is looked at."""

    bears: Bearing
    wanted: Wanted
    words: frozenset[str]
    newest: bool
    who_speaks: bool


def answer_recall(history: History, question: str) -> str:
    """One sentence of the history, or two that belong together; or that it was not said."""
    plain = folded(question)
    asked = _Asked(
        bears=bearing(history, question),
        wanted=wanted_by(question),
        words=frozenset(re.findall(r"[^\W_]+", plain)),
        newest=bool(_WANTS_THE_NEWEST.search(plain)),
        who_speaks=asks_who_speaks(question),
    )
    scored = [(_score(history, asked, sentence), sentence) for sentence in history.sentences]
    score, best = max(scored, key=lambda pair: (pair[0], pair[1].place), default=(0.0, None))
    if best is None or score <= 0 or _said_by_another(history, asked, scored):
        return NOT_SAID
    return _with_its_neighbour(history, asked, best)


def _score(history: History, asked: _Asked, sentence: Sentence) -> float:
    """0 for a sentence that does not bear on the question at all."""
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
    """Whether only somebody else than the named speaker says such a thing. Of User and AI each speaks for both."""
    named = asked.bears.named
    if not named or named & ROLES:
        return False
    best, best_of_named = 0.0, 0.0
    for score, sentence in scored:
        speaker = history.lines[sentence.line].speaker
        best = max(best, score)
        if speaker is None or folded(speaker) in named:
            best_of_named = max(best_of_named, score)
    return best_of_named < _SHARE_OF_THE_NAMED * best


def _with_its_neighbour(history: History, asked: _Asked, best: Sentence) -> str:
    """The sentence; where it holds nothing of the kind that is asked for, with the one beside it that does."""
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
