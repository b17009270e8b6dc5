"""Options named in other words than a label: "the third one", or by what a sentence asserts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memreplay.grading.assertion import asserted

_OPTION = (
    r"(?:options?|choices?|answers?|one|alternatives?|opci[oó]n|respuesta|item"
    r"|(?:of|in) the (?:list|options?|listed))"
)
_ORDINALS = tuple("first second third fourth fifth sixth seventh eighth ninth tenth".split())
_ORDINALES = tuple("primera segunda tercera cuarta quinta sexta s[eé]ptima octava novena d[eé]cima".split())
_ORDINAL = re.compile(
    r"\b(?:the|la)\s+(?:(?P<name>"
    + "|".join((*_ORDINALS, *_ORDINALES))
    + r")|(?P<digits>[0-9]{1,2})(?:st|nd|rd|th)|(?P<last>last|final|[uú]ltima))"
    r"(?:\s+(?:of\s+the\s+(?:listed\s+)?)?|(?=\W*\Z))" + r"(?:" + _OPTION + r"\b|(?=\W*\Z))",
    re.IGNORECASE,
)


def with_ordinals_as_labels(text: str, choices: Sequence[str]) -> str:
    """The text with "the third option" as the label of that option; labels begin with 0."""

    def label(found: re.Match[str]) -> str:
        if found["last"]:
            return f"option {len(choices) - 1}"
        if found["digits"]:
            return f"option {int(found['digits']) - 1}" if int(found["digits"]) else found.group()
        for names in (_ORDINALS, _ORDINALES):
            for place, name in enumerate(names):
                if re.fullmatch(name, found["name"], re.IGNORECASE):
                    return f"option {place}"
        return found.group()

    return _ORDINAL.sub(label, text)


_NO_CHOICE = re.compile(
    r"\b(?:or|if|maybe|perhaps|might|could|would|ni|si|quiz[aá]s?|both|neither|none|ambas|ambos|ning[uú]n\w*)\b|\?",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|must be|has to be|that leaves|leaves|as[ií] que|por tanto)\b", re.IGNORECASE
)
_REMAINING = re.compile(
    r"\b(?:remaining|elimination|only (?:one|option) left|by exclusion|descarte|eliminaci[oó]n|la que queda)\b",
    re.IGNORECASE,
)
_LONGEST_SAID = 60
"""Words. A longer reply discusses options more than it chooses one."""


def options_said(text: str, choices: Sequence[str], question: str) -> list[int]:
    """The one option that a reply asserts in a sentence of its own ("It was blue, I believe."), or leaves over."""
    if len(text.split()) > _LONGEST_SAID:
        return []
    verdicts = [asserted(choice, text, question) for choice in choices]
    denied = [index for index, (_, why) in enumerate(verdicts) if why == "denied"]
    if _REMAINING.search(text) and len(denied) == len(choices) - 1:
        return [index for index in range(len(choices)) if index not in denied]
    sentences = [one for one in re.split(r"(?<=[.!?])\s+|\n", text) if one.strip()]
    whole = [] if _NO_CHOICE.search(text) else _asserted_in(text, choices, question)
    if len(whole) == 1 or len(sentences) < 2 or not _CONCLUDES.search(sentences[-1]):
        return whole
    return [] if _NO_CHOICE.search(sentences[-1]) else _asserted_in(sentences[-1], choices, question)


def _asserted_in(text: str, choices: Sequence[str], question: str) -> list[int]:
    """The options that a text asserts, but for those that are a part of another ("green" of "dark green")."""
    plain = f" {_words_of(text)} "
    given = [
        index
        for index, choice in enumerate(choices)
        if (f" {_words_of(choice)} " in plain or not _NEGATED.search(choice))
        and asserted(choice, text, question)[0]
    ]
    parts = {
        index
        for index in given
        for other in given
        if len(choices[index]) < len(choices[other]) and asserted(choices[index], choices[other])[0]
    }
    return [index for index in given if index not in parts]


_NEGATED = re.compile(r"\b(?:not?|none|never|nothing|nada|ning[uú]n\w*)\b", re.IGNORECASE)


def _words_of(text: str) -> str:
    return re.sub(r"\W+", " ", text.casefold()).strip()
