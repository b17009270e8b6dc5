"""What memories are made from."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_backends.base import Clock, FactExtractor, TextEmbedder, TokenCounter
from memory_backends.options import MemoryOptions
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection


@dataclass(frozen=True)
class Resources:
    """What memories are made from; shared by all conversations of a run.

    ``ttl_seconds`` is set on the Redis keys of a conversation when it is closed; None keeps them. ``extractor``
    reads candidate facts by a model; without one a memory uses its own rules.
    """

    redis: RedisConnection
    qdrant: QdrantConnection
    embedder: TextEmbedder
    count_tokens: TokenCounter
    clock: Clock
    ttl_seconds: int | None = None
    options: MemoryOptions = field(default_factory=MemoryOptions)
    extractor: FactExtractor | None = None
