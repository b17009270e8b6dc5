"""A hybrid memory on embedded stores, and the parts that it is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memory_backends.hybrid.backend import HybridBackend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import OperatingMemory, RedisConnection
from memory_backends.stores.trace import MemoryTrace
from tests.stubs.memory import TickingClock, WordEmbedder, count_words, namespace


@pytest.fixture
async def resources() -> AsyncIterator[Resources]:
    redis, qdrant = RedisConnection.embedded(), QdrantConnection.embedded()
    yield Resources(redis, qdrant, WordEmbedder(), count_words, TickingClock())
    await redis.aclose()
    await qdrant.aclose()


@pytest.fixture
async def hybrid(resources: Resources) -> AsyncIterator[HybridBackend]:
    """Open, and closed after the test."""
    backend = HybridBackend(resources)
    await backend.open(namespace("hybrid"))
    yield backend
    await backend.close("cancelled")


@pytest.fixture
def memory(resources: Resources) -> OperatingMemory:
    """Redis, as a second writer sees it."""
    return OperatingMemory(resources.redis, MemoryTrace())
