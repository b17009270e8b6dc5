"""The embedded reader: prompt in, reply out. No key, no network, usage counted, the same reply every time."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from threading import Lock

from memreplay.conversations.models import Frozen
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.extractive.answers import answer_choice, answer_recall
from memreplay.llm.model import AnswerRequest, Reply, TokenUsage
from memreplay.llm.prompts import (
    CHOICE_CUE,
    HISTORY_HEADING,
    INSTRUCTIONS_HEADING,
    NO_HISTORY,
    OPTIONS_HEADING,
    QUESTION_LABEL,
    RECALL_CUE,
    remembered_in,
)
from memreplay.llm.tokens import token_counter

_NUMBERED = re.compile(r"([0-9]+)\. ?(.*)")


class ReadPrompt(Frozen):
    """A parsed prompt. Without ``options``, a recall question; without ``context``, nothing was remembered."""

    context: str
    question: str
    options: tuple[str, ...] = ()


def read_prompt(prompt: str) -> ReadPrompt | None:
    """Context, question and options of one of our prompts; None for any other text.

    Parses from the end (cue, instructions, options, question); the rest is the history.
    """
    # Split at "\n" only: a history may contain the other separators that str.splitlines knows.
    lines = prompt.rstrip().split("\n")
    cue = lines.pop().strip()
    if cue not in (CHOICE_CUE, RECALL_CUE):
        return None
    _drop_numbered(lines)
    if not lines or lines.pop() != INSTRUCTIONS_HEADING:
        return None
    options: tuple[str, ...] = ()
    if cue == CHOICE_CUE:
        options = _drop_numbered(lines)
        if not options or not lines or lines.pop() != OPTIONS_HEADING:
            return None
    _drop_blank(lines)
    if not lines or not lines[-1].startswith(QUESTION_LABEL):
        return None
    question = lines.pop().removeprefix(QUESTION_LABEL).strip()
    history = "\n".join(lines).strip("\n").removeprefix(HISTORY_HEADING).strip("\n")
    return ReadPrompt(context="" if history == NO_HISTORY else history, question=question, options=options)


def _drop_blank(lines: list[str]) -> None:
    while lines and not lines[-1].strip():
        lines.pop()


def _drop_numbered(lines: list[str]) -> tuple[str, ...]:
    """Remove the numbered lines at the end; returns their texts in order."""
    _drop_blank(lines)
    texts: list[str] = []
    while lines and (match := _NUMBERED.fullmatch(lines[-1])):
        texts.append(match.group(2))
        lines.pop()
        if match.group(1) == "0":
            break
    return tuple(reversed(texts))


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
    """Return an option's index, one or two sentences of the context, or that it has no answer."""
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
