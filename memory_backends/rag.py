"""The standard RAG agent (DD-02): one Qdrant document an exchange, a search on the raw message, no state.

The search of ``rag`` is dense, as the document has it. ``rag:keyword`` and ``rag:fused`` differ in nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from memory_backends.base import (
    MISSED_DEPTH,
    MISSED_DEPTH_OF_A_TURN,
    BackendError,
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
from memory_backends.knowledge_store import KnowledgeStore, Point, QdrantConnection
from memory_backends.operations import MemoryTrace
from memory_backends.rag_retrieval import ExchangeRetriever, RankedExchange
from memory_backends.records import RAG_COLLECTION, QdrantDocument
from memory_backends.rendering import assemble, under_date

ACTOR = "rag_agent"


class RagBackend(MemoryBackend):
    """Stateless retrieve-then-read. Nothing is in Redis; what is in Qdrant is the exchanges as they were said.

    In a context the passages stand in the order in which they were said, not in that of their rank: a date that
    runs backwards misleads a reader, and a correction has to stand after what it corrects.
    """

    def __init__(
        self,
        name: str,
        qdrant: QdrantConnection,
        embedder: TextEmbedder,
        count_tokens: TokenCounter,
        clock: Clock,
        new_retriever: Callable[[], ExchangeRetriever],
    ) -> None:
        self.name = name
        self._new_retriever = new_retriever
        self._retriever = new_retriever()
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
        self._retriever = self._new_retriever()
        self._store = KnowledgeStore(self._qdrant, self.trace, namespace, self._embedder.dimension)
        with self.trace.caused_by("open", ACTOR):
            await self._store.open_collection(RAG_COLLECTION)

    async def perceive(self, message: Message, limit: int, budget: int) -> Recall:
        """The search that an ordinary turn makes; it changes nothing."""
        with self.trace.caused_by("perceive", ACTOR, (message.turn_id,)):
            return await self._retrieve(message.text, limit, budget, MISSED_DEPTH_OF_A_TURN)

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
        self._retriever.add(point_id, exchange)
        self._exchanges[point_id] = exchange

    def read_by(self, count_tokens: TokenCounter) -> None:
        """Hits and contexts are measured by it."""
        self._count_tokens = count_tokens

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        """The same search for a question."""
        with self.trace.caused_by("recall", ACTOR):
            return await self._retrieve(question, limit, budget, MISSED_DEPTH)

    async def snapshot(self) -> Snapshot:
        """The documents, read from Qdrant."""
        return Snapshot(qdrant={RAG_COLLECTION: await self._opened().dump(RAG_COLLECTION)})

    async def close(self, status: ClosingStatus) -> None:
        """Free an embedded store; on a server the documents stay."""
        if self._store is not None:
            self._store.close()
            self._store = None

    async def _retrieve(self, text: str, limit: int, budget: int, depth: int) -> Recall:
        if limit < 1:
            return Recall()
        found = await self._retriever.search(self._opened(), text, limit + depth)
        if not found:
            return Recall(why_empty="below_threshold" if self._exchanges else "nothing_stored")
        ranked = [self._hit(rank, item) for rank, item in enumerate(await self._read(found, limit), start=1)]
        numbers = {id_: exchange.turn_number for id_, exchange in self._exchanges.items()}
        recalled = assemble(ranked[:limit], numbers, budget, self._count_tokens)
        missed = tuple(hit.model_copy(update={"text": "", "in_prompt": False}) for hit in ranked[limit:])
        return recalled.model_copy(update={"missed": missed})

    async def _read(self, found: Sequence[RankedExchange], limit: int) -> list[RankedExchange]:
        """What was found, the first ``limit`` with their content as it stands in the store."""
        unread = [item.id for item in found[:limit] if item.content is None]
        if not unread:
            return list(found)
        held = {point.id: point.payload["content"] for point in await self._opened().fetch(RAG_COLLECTION, unread)}
        return [replace(item, content=item.content or held.get(item.id)) for item in found]

    def _hit(self, rank: int, item: RankedExchange) -> Hit:
        exchange = self._exchanges[item.id]
        return Hit(
            id=item.id,
            store="qdrant",
            place=RAG_COLLECTION,
            rank=rank,
            score=item.score,
            text=under_date(item.content or "", exchange.said_at),
            turns=exchange.turn_ids,
            channels=item.channels,
        )

    def _opened(self) -> KnowledgeStore:
        if self._store is None:
            raise BackendError(f"The {self.name} memory is not open")
        return self._store
