"""Pay once: equal requests share one reply, and requests with a shared prefix let the provider cache it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol
from weakref import WeakValueDictionary

from memreplay.llm.catalogue import model_facts
from memreplay.llm.model import AnswerModel, AnswerRequest, Reply


class ReplyCache(Protocol):
    """A port: where paid replies are kept, by the key of their request."""

    def get(self, key: str) -> Reply | None:
        """The reply on record, as it was put, or None."""
        ...

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply. It is on disk when this returns."""
        ...


def request_key(request: AnswerRequest) -> str:
    """SHA-256, in hexadecimal, over everything that a reply may depend on.

    How a message is cut into segments is not part of it: the model sees the joined text.
    """
    parts = {
        "model": request.model,
        "api_base": request.api_base,
        "messages": [[message.role, message.content] for message in request.messages],
        "parameters": request.parameters,
        "repeat": request.repeat,
    }
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


class RunReplies:
    """A part of a cache that one run has to itself. ``run`` gives the run's id."""

    def __init__(self, cache: ReplyCache, run: Callable[[], str]) -> None:
        self._cache = cache
        self._run = run

    def get(self, key: str) -> Reply | None:
        """The reply that this run paid for."""
        return self._cache.get(f"{self._run()}:{key}")

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply for this run."""
        self._cache.put(f"{self._run()}:{key}", reply)


class CachedModel:
    """An answering model that asks the inner one only for what is not on record.

    A reply from the record comes with its original usage, cost and time, marked as reused. An error is never kept.
    Equal requests under way at the same time wait for the first of them.
    """

    def __init__(self, inner: AnswerModel, cache: ReplyCache) -> None:
        self._inner = inner
        self._cache = cache
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, request: AnswerRequest) -> Reply:
        """The reply on record, else a new one, kept before it is returned."""
        key = request_key(request)
        lock = self._under_way.get(key) or asyncio.Lock()
        self._under_way[key] = lock
        async with lock:
            kept = self._cache.get(key)
            if kept is not None:
                return kept.model_copy(update={"reused": True})
            reply = await self._inner.answer(request)
            if reply.error is None:
                self._cache.put(key, reply)
            return reply


SHORTEST_PREFIX = 4096
"""Characters; providers keep nothing shorter than about 1,024 tokens."""


def needs_cache_markers(model: str) -> bool:
    """Whether the provider keeps only what it is told to keep: Anthropic's models do, wherever they are served."""
    return "claude" in model.lower() or model.startswith("anthropic/")


def caches_prompts(model: str) -> bool:
    """Whether the provider is known to keep prompts."""
    return model_facts(model).caches_prompts


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

    def __init__(self, inner: AnswerModel, keeps: Callable[[str], bool] = caches_prompts) -> None:
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
        wanted = 2 if needs_cache_markers(request.model) else 1
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
