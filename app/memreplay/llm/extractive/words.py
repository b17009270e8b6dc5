"""The terms that the reader compares: folded words, stemmed, numbers in words as digits."""

from __future__ import annotations

import re
from functools import lru_cache

import Stemmer

from memory_backends.text import NUMBERS, folded

_WORD = re.compile(r"[^\W_]+(?:[.:'’/@_-][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s?\Z")


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\S+", text))


STOP_WORDS = frozenset(
    _words("""
    a an the this that these those and or but if then so than as of at by for with about into onto to from in on
    off out over under up down again once here there all any both each few more most other some such no nor not
    only own same too very can will just don should now i me my myself we our ours us you your yours he him his
    she her hers it its they them their theirs what which who whom whose when where why how is am are was were
    be been being have has had having do does did doing would could may might must shall s t re ve ll d m isn
    aren wasn weren doesn didn hasn haven hadn won wouldn couldn shouldn im ive id hey hi oh yeah yep wow thanks
    thank really also got get gets getting one ones thing things lot much many like well ok okay let s user
    users say said says tell told mention mentioned conversation according does kind type sort specific
    currently
    """)
    + _words("""
    el la los las un una unos unas lo al del de a ante bajo con contra desde en entre hacia hasta para por segun
    sin sobre tras y e o u ni que quien quienes cual cuales cuando cuanto cuanta cuantos cuantas donde como
    porque si no es son era eran fue fueron ser estar esta estan este esto estos estas ese eso esos esas aquel
    aquella ha han he has hay haber habia tiene tienen tener me te se nos os le les mi mis tu tus su sus yo ella
    ellos ellas usted ustedes mas menos muy ya tambien pero usuario usuaria persona dice dijo cosa cosas
    """)
)
"""Folded words without meaning of their own, and words by which a question refers to the conversation itself."""

# "One", "uno" and "once" often count nothing.
_DIGITS = {word: str(value) for word, value in NUMBERS.items() if word not in ("one", "once", "uno")}
_DIGITS["dozen"] = "12"

_ENGLISH = Stemmer.Stemmer("english")
_SPANISH = Stemmer.Stemmer("spanish")
_SPANISH_SIGNS = re.compile(
    r"[¿¡ñ]|\b(?:el|los|las|una|que|qué|cuál|dónde|cómo|quién|está|del|por|con|en|la|de|desde|y|mi|se)\b",
    re.IGNORECASE,
)


def is_spanish(text: str) -> bool:
    """Whether a text is Spanish rather than English: at least a seventh of its words are typical."""
    return len(_SPANISH_SIGNS.findall(text)) * 7 >= max(len(text.split()), 7)


@lru_cache(maxsize=65536)
def _terms_of(word: str, spanish: bool) -> tuple[str, ...]:
    """The terms of a word: itself, and the parts of a compound such as ``node-18`` or ``api/v2``."""
    plain = _POSSESSIVE.sub("", folded(word))
    parts = [plain, *_PART.findall(plain)] if _PART.fullmatch(plain) is None else [plain]
    return tuple(dict.fromkeys(_term(part, spanish) for part in parts if part and part not in STOP_WORDS))


def _term(part: str, spanish: bool) -> str:
    if part in _DIGITS:
        return _DIGITS[part]
    stem: str = (_SPANISH if spanish else _ENGLISH).stemWord(part)
    return stem


def terms(text: str, spanish: bool = False) -> list[str]:
    """The terms of a text in order, without stop words."""
    return [term for word in _WORD.findall(text) for term in _terms_of(word, spanish)]
