"""The embedded reader: prompt in, reply out. It picks the option, or the sentences, that a context supports best.

It is not a language model: no key, no network, usage counted, the same reply every time. All weights were fitted on
the thirty short conversations, long-01, long-02 and three conversations of LoCoMo: those of sentences as a softmax
over the sentences of each question, those of abstaining as logistic regressions, with the evidence, all of the
conversation, and what memories found as context.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memory_backends.text import folded, numbers_in
from memreplay.grading.judge import is_abstention
from memreplay.grading.times import times_in
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.extractive.context import ASSISTANT, USER, Context, Sentence, read_context, terms_of
from memreplay.llm.model import AnswerRequest, Reply, TokenUsage
from memreplay.llm.prompts import NOT_SAID, read_prompt, remembered_in
from memreplay.llm.tokens import token_counter

_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"(?<![.!?…:] )(?<!^)\b(?!I\b)[A-ZÀ-Þ][\w-]+")
"""A name, unless it begins a sentence."""
_CALLED = re.compile(
    r"(?i:\b(?:named?|name.s|name is|called|i.?a?m|me llam\w+|se llam\w+|soy|nombre(?: es)?)\b)[^\w.]{1,3}[A-ZÀ-Þ]"
)
_CLOCK = re.compile(r"\d[:.h]\d\d|\d ?(?:am|pm)\b|noon|midnight|o.clock|a las \w+")
_FIRST = r"^\W*(?:\w+ )?"
_DATE = _FIRST + r"(?:when|cuando)\b|(?:what|which) (?:date|day|month|year)|weekday|\bfecha|que (?:dia|mes|ano)"
_NUMBER = (
    r"how (?:much|many|long|old|often|far|big|tall)|price|cost|charge|number|amount|cuant[oa]s?\b|precio|cantidad"
    r"|numero|plazo"
)
_PLACE = r"city|town|place|company|street|school|book|band|country|suburb|village"
_WHO = rf"{_FIRST}(?:who(?:m|se)?|where|quien(?:es)?|donde)\b|(?:which|what) (?:{_PLACE})|pueblo|ciudad|localidad"
_KINDS: tuple[tuple[str, Callable[[Sentence, set[str]], object]], ...] = (
    (r"\bwhat time|what hour|que hora", lambda one, asked: _CLOCK.search(folded(one.text))),
    (_DATE, lambda one, asked: times_in(one.text, one.said)),
    (_NUMBER, lambda one, asked: numbers_in(one.text)),
    (r"\b(?:sur)?names?\b|\bcalled\b|\bllam\w+|\bnombre|apellido", lambda one, asked: _CALLED.search(one.text)),
    (_WHO, lambda one, asked: not asked.issuperset(map(folded, _NAME.findall(one.text)))),
)
"""Kinds of questions, each with a test of sentences that can answer it. The first kind that fits counts."""
_ROLES = {"user": USER, "usuario": USER, "usuaria": USER, "assistant": ASSISTANT, "asistente": ASSISTANT}

_SENTENCE_WEIGHTS = (5.0, 5.0, 3.4, 2.6, -2.3, -2.6, -3.7)
"""Weights of a sentence's meaning, keywords, words and kind of answer, and of being a question, another's words or
the assistant's."""


class Asked:
    """A question put to a context: how much each sentence bears on it, and the signs that it is an answer."""

    def __init__(self, context: Context, question: str) -> None:
        self.context = context
        plain, words = folded(question), _WORD.findall(question)
        self.names = {folded(name) for name in _NAME.findall(question)} - _ROLES.keys()
        called = {folded(word) for word in words if word[0].isupper() or folded(word) in _ROLES}
        self.named = {one for one in context.speakers if any(_calls(word, one) for word in called)}
        self.named -= {USER} if ASSISTANT in self.named else set()
        self.others = {name for name in self.names if not any(_calls(name, one) for one in self.named)}
        of_speakers = {term for name in (*self.named, *_ROLES) for term in terms_of(name, context.spanish)}
        self.terms = terms_of(question, context.spanish) - of_speakers
        of_names = {term for name in self.names for term in terms_of(name, context.spanish)}
        self.matter = self.terms - of_names or self.terms
        kind, tells = next(((asks, tells) for asks, tells in _KINDS if re.search(asks, plain)), (None, None))
        self.asks_when = kind == _DATE
        asked = set(map(folded, words))
        self.tells = [bool(tells and tells(one, asked)) for one in context.sentences]
        self.bearing: NDArray[np.float64] = np.array(_SENTENCE_WEIGHTS) @ np.array(
            [
                *context.likeness(question),
                [context.share(self.terms, terms) for terms in context.terms],
                self.tells,
                [one.text.rstrip("\"”')»").endswith("?") for one in context.sentences],
                [bool(self.named) and one.speaker not in (None, *self.named) for one in context.sentences],
                [one.speaker == ASSISTANT and ASSISTANT not in self.named for one in context.sentences],
            ]
        )

    def signs(self, place: int) -> tuple[float, ...]:
        """Return the signs that a sentence answers: the share of the question's words, but for names, that it and
        those beside it have; whether it has what is asked for; whether the question names others than who speaks,
        and how much the best sentence bears on it, which both count against it; and 1.
        """
        near = frozenset().union(*self.context.terms[max(0, place - 1) : place + 2])
        return self.context.share(self.matter, near), self.tells[place], bool(self.others), self.bearing.max(), 1.0

    def is_about(self, place: int) -> bool:
        """Return whether a sentence is by or about whom the question names, where speakers have names."""
        one = self.context.sentences[place]
        if one.speaker in (None, USER, ASSISTANT) or not self.names:
            return True
        return one.speaker in self.named if self.named else any(name in folded(one.text) for name in self.names)


def _calls(word: str, name: str) -> bool:
    """Return whether a word calls a speaker: "Mel" for Melanie, "usuaria" for the user."""
    if name in (USER, ASSISTANT):
        return _ROLES.get(word) == name
    return name.split()[0] == word or (len(word) > 2 and name.startswith(word))


_NEAR = 8.0
"""Scores behind the best sentence over which the words of an option lose their weight."""
_SURE = (3.92, 3.39, 0.89, -1.17, -0.25, 1.76)
"""Weights of the lead of the best option and of :meth:`Asked.signs`. It is picked if the sum is at least 0."""
_TOLD = (0.31, 3.46, 2.47, 1.12, -1.03, -0.19, -2.12)
"""Weights of the lead of the best sentence over the fourth, or over nothing if there is none, of whether it is
about whom the question names, and of :meth:`Asked.signs`.
"""
_MOST, _BESIDE, _LEAST = 3, 5.0, 1.0
"""Most sentences of a reply, most that they may score behind the best, and least score of the best."""
UNSUPPORTED = "The conversation supports none of these options."


def answer_choice(text: str, question: str, options: Sequence[str]) -> str:
    """Return the index of the best supported option, of "not answerable", or :data:`UNSUPPORTED`."""
    nothing = next((index for index, option in enumerate(options) if is_abstention(option)), None)
    given_up = UNSUPPORTED if nothing is None else str(nothing)
    context, places = read_context(text, question), [index for index in range(len(options)) if index != nothing]
    if not context.sentences or not places:
        return given_up
    asked = Asked(context, question)
    support = option_support(asked, [options[index] for index in places])
    best, holder = map(int, np.unravel_index(support.argmax(), support.shape))
    second, first = sorted([0.0, 0.0, *support.max(axis=1)])[-2:]
    told = np.dot((first - second, *asked.signs(holder)), _SURE) >= 0 and asked.is_about(holder)
    return str(places[best]) if first > 0 and (told or nothing is None) else given_up


def option_support(asked: Asked, options: Sequence[str]) -> NDArray[np.float64]:
    """Return the share of each option's words, without the question's, that each sentence has, times how near it is
    to the best sentence. The shape is ``(options, sentences)``.
    """
    context, near = asked.context, np.exp((asked.bearing - asked.bearing.max()) / _NEAR)
    wanted = [terms_of(option, context.spanish) for option in options]
    held = [[context.share(one - asked.terms or one, terms) for terms in context.terms] for one in wanted]
    support: NDArray[np.float64] = np.array(held) * near
    return support


def answer_recall(text: str, question: str) -> str:
    """Return the one to three sentences that bear most on a question, in their order, or :data:`NOT_SAID`.

    Of two that say the same the later counts. Asked when, it is one sentence with its date written out.
    """
    context = read_context(text, question)
    if not context.sentences:
        return NOT_SAID
    asked = Asked(context, question)
    order = [int(place) for place in np.argsort(-asked.bearing, kind="stable")]
    best, fourth = order[0], asked.bearing[order[3]] if len(order) > 3 else 0.0
    signs = (asked.bearing[best] - fourth, asked.is_about(best), *asked.signs(best))
    if asked.bearing[best] < _LEAST or np.dot(signs, _TOLD) < 0:
        return NOT_SAID
    near = [place for place in order[: 2 * _MOST] if asked.bearing[place] >= asked.bearing[best] - _BESIDE]
    kept = [place for place in near if not context.is_outdated(place, near)]
    if asked.asks_when:
        return context.sentences[kept[0]].with_dates()
    return "\n".join(context.sentences[place].text for place in sorted(kept[:_MOST]))


NOT_OUR_PROMPT = "This reader found no question that it understands at the end of the prompt."
NOTED = "Noted."
"""The reply to a message that asks nothing."""
_ASKS = re.compile(
    r"[?？]|^\W*(?:tell|list|name|recite|repeat|remind|give|say|reply|answer|what|which|who|when|where|how)\b",
    re.IGNORECASE,
)
_READING = Lock()
"""Held while a question is read: those asked at once about one context share it, and one core is kept busy."""


def answer_messages(contents: Sequence[str]) -> str:
    """Return the reply to the messages of an agent's prompt, or to the question of any other."""
    if len(contents) != 2 or (remembered := remembered_in(contents[0])) is None:
        return read_and_answer("\n".join(contents))
    if not _ASKS.search(contents[1]):
        return NOTED
    with _READING:
        return answer_recall(remembered, contents[1])


def read_and_answer(prompt: str) -> str:
    """Return an option's index, one to three sentences of the context, or that it has no answer."""
    asked = read_prompt(prompt)
    if asked is None:
        return NOT_OUR_PROMPT
    with _READING:
        if asked.options:
            return answer_choice(asked.context, asked.question, asked.options)
        return answer_recall(asked.context, asked.question)


async def read(request: AnswerRequest) -> Reply:
    """Answer a prompt from the prompt alone, in a thread."""
    return await asyncio.to_thread(_reply, request)


def _reply(request: AnswerRequest) -> Reply:
    started = time.perf_counter()
    contents = [message.content for message in request.messages]
    said = answer_messages(contents)
    elapsed = (time.perf_counter() - started) * 1000
    count = token_counter(EXTRACTIVE_MODEL)
    usage = TokenUsage(prompt=count("\n".join(contents)), completion=count(said))
    return Reply(text=said, usage=usage, cost_usd=0.0, ms=elapsed)
