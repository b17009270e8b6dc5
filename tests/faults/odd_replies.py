"""Replies of odd forms, built from what a question expects: the same for a seed, on every machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Final

from memreplay.conversations.models import Question
from memreplay.llm.prompts import NOT_SAID

_JOINTS: Final = (
    " ", ", ", "; ", ". ", "\n", " but ", "; but ", ", but not ", " and ", " or ", "/", " rather than ",
    " then ", " because ", ": ", " - ", " — ", "! ", "? ", ", then ", ") ", " (", " y ", " pero ", " o ",
    ", no wait, ", " to ", " instead of ", "...", " = ", " | ", "\n\n- ", " while ", " before ",
)  # fmt: skip
_BEFORE: Final = (
    "Not ", "No, ", "Yes, ", "But ", "And ", "Or ", "Well, ", "I think ", "I don't know, but ", "It was ", "(",
    "- ", "Answer: ", "It is not ", "Either ", "Neither ", "Between ", "From ", "Until ", "She said ",
    "My sister's ", "You ", "He ", "No es ", "Creo que ", "If it was ", "They used to ", "At ", "1. ", "**",
    "\"", "{\"answer\": \"", "<think>", "</think>", "~~", "The answer is ", "Final answer: ", "option ",
    "Not happy, but ", "'", "`", "\\boxed{", "Almost ", "Asked whether ", "Her ", "which ", "la ", "las ",
    "half ", "twenty ", "v", "$", "0", "-", "+", "...",
)  # fmt: skip
_AFTER: Final = (
    ".", "?", "!", ";", ",", ")", " or so.", " was ruled out.", " maybe?", " did not.", " does.", " is wrong.",
    ", then", " but", " and", " or", " not", "\"}", "</think>", "~~", " - no", " is a guess", "'s",
    " and a half", " o'clock", " pm", "th", "%", " or", "\n", " each", " because", ": no", ", I believe.",
    ", no?", " per day", " minutes to", "}", "**",
)  # fmt: skip
_NUMBERS: Final = (
    "0", "1", "12", "3.10", "1,340", "²", "½", "Ⅻ", "٣", "४५", "31/12/2023", "2023-13-45", "99/99", "25:61",
    "7 pm", "May 2023", "the 32nd", "0x1F", "1e999", "-0", "--5", "9" * 400, "9" * 5000, "1." * 40,
    "1,000" * 90, "$1.2m", "half past", "a quarter to", "two hundred", "1/0", "12th", "0th", "1h30", "5'10\"",
    "+44 20 7946 0958", "①", "𝟗", "1 000 000", "three dozen", "9" * 350 + " million", "½ an hour", "24 pm",
    "-1 March", "0 May 0000", "99999 km",
)  # fmt: skip
_ODD: Final = (
    "İ", "ß", "ſ", "ﬁ", "\u0301", "\u200b", "\ufeff", "\u202e", "\ud800", "\0", "\x1b[2J", "￼", "𝕊", "ﷺ", "ŉ",
    "ǰ", "́a", "’", "“", "…", "\u2028", "\x85", "\r", "\t", "👩‍👩‍👧", "क्ष", "ａ", "Ⅷ", "ᾳ", "Σς", "ŀ", "ẖ", "℡",
    "ΐ", "\udfff", "\\",
)  # fmt: skip
_WORDS: Final = (
    "but", "and", "or", "not", "no", "yes", "so", "then", "the", "of", "it", "somewhat", "happy", "Friday",
    "May", "blue", "Girona", "three", "who", "does", "did", "is", "was", "she", "your", "brother", "you", "we",
    "7", "2021", "km", "or", ";", ".", ",", "(", ")", "!", "?", "\n", "-", "/", ":", "pero", "y", "no", "ni",
    "si", "nunca", "half", "past", "a",
)  # fmt: skip


def _as_it_is(text: str, _: Random) -> str:
    return text


def _joined(text: str, random: Random) -> str:
    """Its words with other joints between some of them."""
    words = text.split()
    return "".join(word + (random.choice(_JOINTS) if random.random() < 0.4 else " ") for word in words)


def _reordered(text: str, random: Random) -> str:
    words = text.split()
    random.shuffle(words)
    return " ".join(words)


def _turned(text: str, random: Random) -> str:
    """What stands behind one of its words, then what stands before."""
    words = text.split() or [""]
    at = random.randrange(len(words))
    return " ".join(words[at:]) + random.choice(_JOINTS) + " ".join(words[:at])


def _mixed(text: str, random: Random) -> str:
    """With other words among its own."""
    words = text.split()
    for _ in range(random.randint(1, 4)):
        words.insert(random.randint(0, len(words)), random.choice(_WORDS))
    return " ".join(words)


def _cut(text: str, random: Random) -> str:
    return text[random.randint(0, len(text)) :] if random.random() < 0.3 else text[: random.randint(0, len(text))]


def _twice(text: str, random: Random) -> str:
    return text + random.choice(_JOINTS) + text


def _often(text: str, random: Random) -> str:
    """As a model that repeats itself without end."""
    return (text[:120] + random.choice(_JOINTS)) * random.choice((10, 50, 200))


def _with_number(text: str, random: Random) -> str:
    words = text.split() or [""]
    words[random.randrange(len(words))] = random.choice(_NUMBERS)
    return " ".join(words)


def _with_odd_letter(text: str, random: Random) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice(_ODD) + text[at + random.randint(0, 1) :]


def _in_other_case(text: str, random: Random) -> str:
    return random.choice((str.upper, str.lower, str.title, str.swapcase, str.capitalize))(text)


def _introduced(text: str, random: Random) -> str:
    return random.choice(_BEFORE) + text


def _continued(text: str, random: Random) -> str:
    return text + random.choice(_AFTER)


def _in_json(text: str, random: Random) -> str:
    value = random.choice((text, [text], {"answer": text}, [[text, None]], 9**400, 1e308, True))
    return json.dumps({random.choice(("answer", "choice", "other", "INDEX")): value})


_CHANGES: Final[Sequence[Callable[[str, Random], str]]] = (
    _as_it_is, _joined, _joined, _reordered, _reordered, _turned, _turned, _mixed, _mixed, _cut, _twice,
    _with_number, _with_odd_letter, _in_other_case, _introduced, _introduced, _continued, _continued, _in_json,
)  # fmt: skip
_SHARE_OF_LONG: Final = 0.005


def odd_replies(said: Sequence[str], count: int, random: Random) -> Iterator[str]:
    """So many replies made of these texts, each changed one to four times."""
    for _ in range(count):
        text = random.choice(said)
        for _ in range(random.randint(1, 4)):
            text = random.choice(_CHANGES)(text, random)
        yield _often(text, random) if random.random() < _SHARE_OF_LONG else text


def texts_about(question: Question) -> list[str]:
    """What a reply to a question may be made of: its answer above all."""
    answer = [question.expected] * 4
    options = [*question.choices, *map(str, range(len(question.choices))), *"ABCDEFGHIJ"[: len(question.choices)]]
    others = [question.text, NOT_SAID, "yes", "no", *question.expected_entities, *question.supersedes]
    pairs = [f"{one}, {other}" for one, other in pairwise(options)]
    return [text for text in (*answer, *options, *others, *pairs) if text]
