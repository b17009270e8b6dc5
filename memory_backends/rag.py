"""The standard RAG agent (DD-02): one Qdrant document an exchange, a dense search on the raw message, no state."""

from __future__ import annotations

import asyncio

from memory_backends.base import (
    BackendError,
    ChannelScore,
    Clock,
    ClosingStatus,
    Exchange,
    Hit,
    MemoryBackend,
    Message,
    Namespace,
    Recall,
    Snapshot,
    TextEmbedder,
    TokenCounter,
)
from memory_backends.knowledge_store import Found, KnowledgeStore, Point, QdrantConnection
from memory_backends.operations import MemoryTrace
from memory_backends.records import RAG_COLLECTION, QdrantDocument
from memory_backends.rendering import assemble, under_date

ACTOR = "rag_agent"


class RagBackend(MemoryBackend):
    """Stateless retrieve-then-read. Nothing is in Redis; what is in Qdrant is the exchanges as they were said.

    In a context the passages stand in the order in which they were said, not in that of their rank: a date that
    runs backwards misleads a reader, and a correction has to stand after what it corrects.
    """

    name = "rag"

    def __init__(
        self, qdrant: QdrantConnection, embedder: TextEmbedder, count_tokens: TokenCounter, clock: Clock
    ) -> None:
        self.trace = MemoryTrace()
        self._qdrant = qdrant
        self._embedder = embedder
        self._count_tokens = count_tokens
        self._clock = clock
        self._store: KnowledgeStore | None = None
        # Where each point came from: its payload has the four fields of the data dictionary and no more.
        self._exchanges: dict[str, Exchange] = {}

    async def open(self, namespace: Namespace) -> None:
        """An empty ``goodai_ltm_full_history`` for this namespace."""
        if self._store is not None:
            self._store.close()
        self._namespace = namespace
        self._exchanges = {}
        self._store = KnowledgeStore(self._qdrant, self.trace, namespace, self._embedder.dimension)
        with self.trace.caused_by("open", ACTOR):
            await self._store.open_collection(RAG_COLLECTION)

    async def perceive(self, message: Message, limit: int, budget: int) -> Recall:
        """The search that an ordinary turn makes; it changes nothing."""
        with self.trace.caused_by("perceive", ACTOR, (message.turn_id,)):
            return await self._retrieve(message.text, limit, budget)

    async def observe(self, exchange: Exchange) -> None:
        """Embed the exchange and store it as one document."""
        point_id = self._namespace.point_id("exchange", exchange.turn_number)
        if point_id in self._exchanges:
            return
        document = QdrantDocument(
            id=point_id,
            content=exchange.text,
            turn_number=exchange.turn_number,
            timestamp=exchange.said_at or self._clock(),
        )
        with self.trace.caused_by("observe", ACTOR, exchange.turn_ids):
            vectors = await asyncio.to_thread(self._embedder.embed, [document.content])
            await self._opened().upsert(
                RAG_COLLECTION, [Point(point_id, vectors[0], document.model_dump(mode="json"))]
            )
        self._exchanges[point_id] = exchange

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        """The same search for a question."""
        with self.trace.caused_by("recall", ACTOR):
            return await self._retrieve(question, limit, budget)

    async def snapshot(self) -> Snapshot:
        """The documents, read from Qdrant."""
        return Snapshot(qdrant={RAG_COLLECTION: await self._opened().dump(RAG_COLLECTION)})

    async def close(self, status: ClosingStatus) -> None:
        """Free an embedded store; on a server the documents stay."""
        if self._store is not None:
            self._store.close()
            self._store = None

    async def _retrieve(self, text: str, limit: int, budget: int) -> Recall:
        if limit < 1:
            return Recall()
        vectors = await asyncio.to_thread(self._embedder.embed, [text])
        found = await self._opened().search(RAG_COLLECTION, text, vectors[0], limit)
        hits = [self._hit(rank, point) for rank, point in enumerate(found, start=1)]
        numbers = {point.id: int(point.payload["turn_number"]) for point in found}
        return assemble(hits, numbers, budget, self._count_tokens)

    def _hit(self, rank: int, point: Found) -> Hit:
        exchange = self._exchanges[point.id]
        return Hit(
            id=point.id,
            store="qdrant",
            place=RAG_COLLECTION,
            rank=rank,
            score=point.score,
            text=under_date(point.payload["content"], exchange.said_at),
            turns=exchange.turn_ids,
            channels={"dense": ChannelScore(rank=rank, score=point.score)},
        )

    def _opened(self) -> KnowledgeStore:
        if self._store is None:
            raise BackendError("The rag memory is not open")
        return self._store
