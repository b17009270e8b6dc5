"""The embedded reader as a model: no key, no network, usage counted, the same reply every time."""

from __future__ import annotations

import asyncio
import time

from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.extractive.reader import answer_messages
from memreplay.llm.model import AnswerRequest, Reply, TokenUsage
from memreplay.llm.tokens import token_counter


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
