"""Paying for a call once: equal requests share one reply."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Protocol
from weakref import WeakValueDictionary

from app.answering.model import AnswerModel, AnswerRequest, Reply


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
