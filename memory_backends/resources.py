"""What memories are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_backends.base import Clock, FactExtractor, TextEmbedder, TokenCounter
from memory_backends.hybrid.options import HybridOptions
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection


@dataclass(frozen=True)
class Resources:
    """What memories are made of; one for all conversations of a run.

    ``ttl_seconds`` is set on the Redis keys of a conversation when it is closed; None keeps them. ``extractor``
    reads the candidate facts of the hybrid memory; None leaves it to the rules.
    """

    redis: RedisConnection
    qdrant: QdrantConnection
    embedder: TextEmbedder
    count_tokens: TokenCounter
    clock: Clock
    ttl_seconds: int | None = None
    hybrid: HybridOptions = field(default_factory=HybridOptions)
    extractor: FactExtractor | None = None
