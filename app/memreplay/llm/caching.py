"""Pay once: equal requests share a cached reply; requests with a shared prefix use the provider's prompt cache."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol
from weakref import WeakValueDictionary

from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import model_facts
from memreplay.llm.model import AnswerModel, AnswerRequest, Reply


class ReplyCache(Protocol):
    """A port: stores replies by the key of their request."""

    def get(self, key: str) -> Reply | None: ...

    def put(self, key: str, reply: Reply) -> None:
        """Store a reply. It is on disk when this returns."""
        ...


def request_key(request: AnswerRequest) -> str:
    """SHA-256, in hexadecimal, over everything that a reply depends on.

    The segments of a message count as their joined text, which is all that the model sees.
    """
    parts: dict[str, Any] = {
        "model": request.model,
        "api_base": request.api_base,
        "messages": [[message.role, message.content] for message in request.messages],
        "parameters": request.parameters,
        "repeat": request.repeat,
    }
    if request.raw_messages:
        parts["raw_messages"] = request.raw_messages
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def is_cacheable(request: AnswerRequest) -> bool:
    """Return whether replies are kept. The embedded reader is always asked: it costs nothing, and another version
    of it may reply otherwise.
    """
    return request.model != EXTRACTIVE_MODEL


class RunReplies:
    """A reply cache namespaced by run id. ``run`` returns the run's id."""

    def __init__(self, cache: ReplyCache, run: Callable[[], str]) -> None:
        self._cache = cache
        self._run = run

    def get(self, key: str) -> Reply | None:
        return self._cache.get(f"{self._run()}:{key}")

    def put(self, key: str, reply: Reply) -> None:
        self._cache.put(f"{self._run()}:{key}", reply)


class CachedModel:
    """Calls the inner model only on a cache miss.

    A cached reply keeps its original usage, cost and time, and is marked as reused. Errors are not cached, nor are
    refusals of a content filter, which differ from one call to the next. Of equal
    requests at the same time, one is sent and the others wait for its reply.
    """

    def __init__(self, inner: AnswerModel, cache: ReplyCache) -> None:
        self._inner = inner
        self._cache = cache
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, request: AnswerRequest) -> Reply:
        if not is_cacheable(request):
            return await self._inner.answer(request)
        key = request_key(request)
        lock = self._under_way.get(key) or asyncio.Lock()
        self._under_way[key] = lock
        async with lock:
            kept = self._cache.get(key)
            if kept is not None and not kept.refused:
                return kept.model_copy(update={"reused": True})
            reply = await self._inner.answer(request)
            if reply.error is None and not reply.refused:
                self._cache.put(key, reply)
            return reply


SHORTEST_PREFIX = 4096
"""Characters. Providers cache no prefix shorter than about 1,024 tokens."""


def needs_cache_markers(model: str) -> bool:
    """Return whether the provider caches only marked prefixes: true of Anthropic's models wherever they are
    served.
    """
    return "claude" in model.lower() or model.startswith("anthropic/")


def caches_prompts(model: str) -> bool:
    return model_facts(model).caches_prompts


@dataclass
class _Prefix:
    """How many calls were sent ahead to fill the provider's cache; ``lock`` lets one at a time do so."""

    sent_ahead: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedPrefixModel:
    """Holds back requests that share a long prefix until the first has filled the provider's prompt cache.

    Where the provider wants prefixes marked, the second request fills the cache: writing costs a quarter more,
    which a context that is used once does not earn back. That request and all after it are marked.
    """

    def __init__(self, inner: AnswerModel, caches: Callable[[str], bool] = caches_prompts) -> None:
        self._inner = inner
        self._caches = caches
        self._prefixes: dict[bytes, _Prefix] = {}

    async def answer(self, request: AnswerRequest) -> Reply:
        prefix = self._prefix_of(request)
        if prefix is None:
            return await self._inner.answer(request)
        wanted = 2 if needs_cache_markers(request.model) else 1
        if prefix.sent_ahead < wanted:
            async with prefix.lock:
                if prefix.sent_ahead < wanted:
                    try:
                        return await self._inner.answer(self._marked(request, prefix.sent_ahead + 1))
                    finally:
                        # Count failures too, or calls to a provider that is down would run one by one.
                        prefix.sent_ahead += 1
        return await self._inner.answer(self._marked(request, wanted))

    def _prefix_of(self, request: AnswerRequest) -> _Prefix | None:
        """None where the provider would cache none. The text is freed before the call, which may take minutes."""
        if not self._caches(request.model):
            return None
        shared = "".join(segment for message in request.messages for segment in message.segments[:-1])
        if len(shared) < SHORTEST_PREFIX:
            return None
        key = sha256(f"{request.model}\0{request.api_base}\0{shared}".encode("utf-8", "surrogatepass")).digest()
        return self._prefixes.setdefault(key, _Prefix())

    @staticmethod
    def _marked(request: AnswerRequest, place: int) -> AnswerRequest:
        if place < 2:
            return request
        return request.model_copy(update={"marks_prefix": True})
