"""Many questions behind one long context: the first is asked alone, so that the others find it in the cache.

Providers keep the beginning of a prompt for some minutes and charge a tenth to a half for it when it comes again,
but only once a first call with it has been read: twenty at once would pay for it twenty times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from app.answering.model import AnswerModel, AnswerRequest, Reply
from app.answering.model_catalogue import model_facts

SHORTEST_PREFIX = 4096
"""Characters; providers keep nothing shorter than about 1,024 tokens."""


def wants_marks(model: str) -> bool:
    """Whether the provider keeps only what it is told to keep: Anthropic's models do, wherever they are served."""
    return "claude" in model.lower() or model.startswith("anthropic/")


def keeps_prompts(model: str) -> bool:
    """Whether the provider is known to keep prompts."""
    return model_facts(model).keeps_prompts


@dataclass
class _Prefix:
    """Calls that were sent ahead with one prefix; ``turn`` lets one at a time do that."""

    sent_ahead: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedPrefixModel:
    """Holds back requests that share a long beginning until one of them has been answered.

    Where the provider wants a mark, the second of them is sent ahead too and marked, as are all after it: a mark
    costs a quarter more, and a context that is used once is not worth it.
    """

    def __init__(self, inner: AnswerModel, keeps: Callable[[str], bool] = keeps_prompts) -> None:
        self._inner = inner
        self._keeps = keeps
        self._prefixes: dict[bytes, _Prefix] = {}

    async def answer(self, request: AnswerRequest) -> Reply:
        """Ask, when the shared beginning has been read or this request is to have it read."""
        shared = "".join(segment for message in request.messages for segment in message.segments[:-1])
        if len(shared) < SHORTEST_PREFIX or not self._keeps(request.model):
            return await self._inner.answer(request)
        key = sha256(f"{request.model}\0{request.api_base}\0{shared}".encode("utf-8", "surrogatepass")).digest()
        prefix = self._prefixes.setdefault(key, _Prefix())
        wanted = 2 if wants_marks(request.model) else 1
        if prefix.sent_ahead < wanted:
            async with prefix.turn:
                if prefix.sent_ahead < wanted:
                    try:
                        return await self._inner.answer(self._marked(request, prefix.sent_ahead + 1))
                    finally:
                        # A failure counts: a provider that is down must not be asked one by one.
                        prefix.sent_ahead += 1
        return await self._inner.answer(self._marked(request, wanted))

    @staticmethod
    def _marked(request: AnswerRequest, place: int) -> AnswerRequest:
        if place < 2:
            return request
        return request.model_copy(update={"marks_prefix": True})
