"""What memories are made from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from memory_backends.base import Clock, TextEmbedder, TextReranker, TokenCounter
from memory_backends.metering import FactExtractor, MeteredChat, MeteredEmbedder, MeteredExtractor, MeteredReranker
from memory_backends.options import MemoryOptions
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import MemoryTrace


def system_clock() -> datetime:
    """Now, in UTC and timezone-aware."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Resources:
    """What memories are made from; shared by all conversations of a run.

    ``ttl_seconds`` is set on the Redis keys of a conversation when it is closed; None keeps them. With
    ``--extractor`` a memory may call that model: ``extractor`` reads candidate facts with our prompt, ``chat``
    answers any prompt. Both are None without it: then a memory writes by its own rules, or word for word.
    ``reranker`` is that of ``--reranker``, None without it.
    """

    redis: RedisConnection
    qdrant: QdrantConnection
    embedder: TextEmbedder
    count_tokens: TokenCounter
    clock: Clock
    ttl_seconds: int | None = None
    options: MemoryOptions = field(default_factory=MemoryOptions)
    extractor: FactExtractor | None = None
    chat: MeteredChat | None = None
    reranker: TextReranker | None = None

    def metered_by(self, trace: MemoryTrace) -> Resources:
        """The same for one memory, whose model calls become entries of its trace."""
        return replace(
            self,
            embedder=MeteredEmbedder(self.embedder, trace),
            extractor=self.extractor and MeteredExtractor(self.extractor, trace),
            chat=self.chat and self.chat.metered_by(trace),
            reranker=self.reranker and MeteredReranker(self.reranker, trace),
        )
