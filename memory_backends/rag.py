"""The standard RAG agent (DD-02): one Qdrant document an exchange, a search on the raw message, no state.

The search of ``rag`` is dense, as DD-02 specifies. ``rag:keyword`` and ``rag:fused`` differ in nothing else, except
that ``rag:keyword`` stores its documents with a vector that says nothing: no search compares it. With a reranker,
search over-fetches and the reranker picks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import (
    MISSED_DEPTH,
    MISSED_DEPTH_OF_A_TURN,
    BackendError,
    ChannelScore,
    Clock,
    ClosingStatus,
    Exchange,
    Hit,
    MemoryBackend,
    MemoryDescription,
    Message,
    Namespace,
    PanelInfo,
    Recall,
    Snapshot,
    TextEmbedder,
    TextReranker,
    TokenCounter,
)
from memory_backends.editing import BY_HAND, PointEdit, StoreEdit
from memory_backends.metering import MeteredReranker
from memory_backends.records import RAG_COLLECTION, QdrantDocument
from memory_backends.resources import Resources
from memory_backends.retrieval.embedding import vectors_of
from memory_backends.retrieval.keyword import KeywordIndex, Scores, ranks_of, scaled
from memory_backends.retrieval.rendering import assemble, under_date
from memory_backends.retrieval.reranking import CHANNEL, RERANKED, best_first, with_reranker
from memory_backends.stores.qdrant import QDRANT, KnowledgeStore, Point, QdrantConnection
from memory_backends.stores.trace import MemoryTrace

FUSED_DEPTH = 100
"""Exchanges that the dense search contributes to a fusion; the others score like the last of these."""


@dataclass(frozen=True)
class RankedExchange:
    """A point that was found.

    ``score`` is what it is ranked by; ``content`` is None where it was found without reading it from the store.
    """

    id: str
    score: float
    channels: Mapping[str, ChannelScore]
    content: str | None = None


class ExchangeRetriever(Protocol):
    """Finds the exchanges of one conversation."""

    def add(self, id_: str, exchange: Exchange) -> None:
        """Note that an exchange was stored under this id."""
        ...

    async def search(self, store: KnowledgeStore, text: str, count: int) -> list[RankedExchange]:
        """At most ``count`` exchanges, best first."""
        ...


class DenseRetriever:
    """The nearest exchanges by cosine: one search in Qdrant."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder

    def add(self, id_: str, exchange: Exchange) -> None:
        return

    async def search(self, store: KnowledgeStore, text: str, count: int) -> list[RankedExchange]:
        """Return the nearest of all that is stored, however far."""
        vectors = await vectors_of(self._embedder, [text])
        found = await store.search(RAG_COLLECTION, text, vectors[0], count)
        return [
            RankedExchange(
                point.id,
                point.score,
                {"dense": ChannelScore(rank=rank, score=point.score)},
                content=point.payload["content"],
            )
            for rank, point in enumerate(found, start=1)
        ]


class KeywordRetriever:
    """The best exchanges by BM25; exchanges that share no word with the question are left out."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._index = KeywordIndex()

    def add(self, id_: str, exchange: Exchange) -> None:
        self._ids.append(id_)
        self._index.add(exchange.session, exchange.text)

    async def search(self, store: KnowledgeStore, text: str, count: int) -> list[RankedExchange]:
        """Return those with a score above 0. Qdrant is not asked: the index was made from what was written
        there.
        """
        scores = self.scores(text)
        best = [place for place in np.argsort(-scores, kind="stable")[:count] if scores[place] > 0]
        return [
            RankedExchange(self._ids[place], score, {"keyword": ChannelScore(rank=rank, score=score)})
            for rank, (place, score) in enumerate(((p, round(float(scores[p]), 6)) for p in best), start=1)
        ]

    def scores(self, text: str) -> Scores:
        """Return the score of every exchange, in the order in which they were added."""
        return self._index.scores(text, reach=0) if self._ids else np.zeros(0)

    @property
    def ids(self) -> list[str]:
        """Return all ids, in the order in which they were added."""
        return self._ids


class FusedRetriever:
    """Both together: the mean of the two scores, each scaled to 0..1 over all exchanges."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._dense = DenseRetriever(embedder)
        self._keyword = KeywordRetriever()

    def add(self, id_: str, exchange: Exchange) -> None:
        self._keyword.add(id_, exchange)

    async def search(self, store: KnowledgeStore, text: str, count: int) -> list[RankedExchange]:
        """Return the best of all that is stored."""
        near = {found.id: found for found in await self._dense.search(store, text, max(count, FUSED_DEPTH))}
        ids = self._keyword.ids
        if not near:
            return []
        farthest = min(found.score for found in near.values())
        channels = {
            "dense": np.array([near[id_].score if id_ in near else farthest for id_ in ids]),
            "keyword": self._keyword.scores(text),
        }
        fused = sum((scaled(values) for values in channels.values()), np.zeros(len(ids))) / len(channels)
        ranks = {name: ranks_of(values) for name, values in channels.items()}
        return [
            RankedExchange(
                ids[place],
                round(float(fused[place]), 6),
                {
                    name: ChannelScore(rank=int(ranks[name][place]), score=round(float(values[place]), 6))
                    for name, values in channels.items()
                },
                content=near[ids[place]].content if ids[place] in near else None,
            )
            for place in np.argsort(-np.round(fused, 9), kind="stable")[:count]
        ]


ACTOR = "rag_agent"


class RagBackend(MemoryBackend):
    """Stateless retrieve-then-read. Nothing is in Redis; what is in Qdrant is the exchanges as they were said.

    A context has the passages in the order of the conversation, not of their rank: dates that run backwards mislead
    a reader, and a correction has to follow what it corrects.
    """

    takes = ("reranker",)
    description = MemoryDescription(
        panels=(PanelInfo(panel="retrievals", weight=5), PanelInfo(panel="written", weight=3)),
        channels={
            "dense": "how near the meaning of the exchange is to that of the message (cosine of their vectors)",
            "keyword": "how many rare words they share (BM25)",
        },
    )

    def __init__(
        self,
        name: str,
        qdrant: QdrantConnection,
        embedder: TextEmbedder,
        count_tokens: TokenCounter,
        clock: Clock,
        new_retriever: Callable[[], ExchangeRetriever],
        reranker: TextReranker | None = None,
    ) -> None:
        self.name = name
        self._new_retriever = new_retriever
        self._retriever = new_retriever()
        self.trace = MemoryTrace()
        self._reranker = reranker and MeteredReranker(reranker, self.trace)
        if reranker:
            self.description = with_reranker(self.description)
        self._qdrant = qdrant
        self._embedder = embedder
        self._count_tokens = count_tokens
        self._clock = clock
        self._store: KnowledgeStore | None = None
        # Which exchange each point is: its payload has no session and no date of its own.
        self._exchanges: dict[str, Exchange] = {}
        self._rewritten: dict[str, str] = {}

    @classmethod
    def create(cls, name: str, resources: Resources, evidence: object) -> RagBackend:
        """Create the memory for the registry; the name says which retriever it has."""
        retrievers: Mapping[str, Callable[[], ExchangeRetriever]] = {
            "rag": lambda: DenseRetriever(resources.embedder),
            "rag:keyword": KeywordRetriever,
            "rag:fused": lambda: FusedRetriever(resources.embedder),
        }
        return cls(
            name,
            resources.qdrant,
            cls._embedder_of(resources),
            resources.count_tokens,
            resources.clock,
            retrievers[name],
            resources.reranker,
        )

    @staticmethod
    def _embedder_of(resources: Resources) -> TextEmbedder:
        return resources.embedder

    async def open(self, namespace: Namespace) -> None:
        """Open an empty ``goodai_ltm_full_history`` for this namespace."""
        if self._store is not None:
            self._store.close()
        self._namespace = namespace
        self._exchanges, self._rewritten = {}, {}
        self._retriever = self._new_retriever()
        self._store = KnowledgeStore(self._qdrant, self.trace, namespace, self._embedder.dimension)
        with self.trace.caused_by("open", ACTOR):
            await self._store.open_collection(RAG_COLLECTION)

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        """Return the search that an ordinary turn makes; it changes nothing."""
        with self.trace.caused_by("perceive", ACTOR, (message.turn_id,)):
            return await self._retrieve(message.text, top_k, context_tokens, MISSED_DEPTH_OF_A_TURN)

    async def observe(self, exchange: Exchange) -> None:
        """Embed the exchange and store it as one document."""
        point_id = self._namespace.point_id("exchange", exchange.turn_number)
        if point_id in self._exchanges:
            return
        document = QdrantDocument(
            id=point_id,
            content=exchange.text,
            turn_number=len(self._exchanges) + 1,
            turns=list(exchange.turn_ids),
            timestamp=exchange.said_at or self._clock(),
        )
        with self.trace.caused_by("observe", ACTOR, exchange.turn_ids):
            vectors = await vectors_of(self._embedder, [document.content])
            await self._opened().upsert(
                RAG_COLLECTION, [Point(point_id, vectors[0], document.model_dump(mode="json"))]
            )
        self._retriever.add(point_id, exchange)
        self._exchanges[point_id] = exchange

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        self._count_tokens = count_tokens

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Return the same search for a question."""
        with self.trace.caused_by("recall", ACTOR):
            return await self._retrieve(question, top_k, context_tokens, MISSED_DEPTH)

    async def edit(self, edit: StoreEdit) -> bool:
        """Change or delete an exchange."""
        if not isinstance(edit, PointEdit) or edit.id not in self._exchanges:
            return False
        store = self._opened()
        with self.trace.caused_by("by_hand", BY_HAND):
            if edit.content is None:
                await store.remove(RAG_COLLECTION, [edit.id])
                del self._exchanges[edit.id]
            else:
                payload = (await store.dump(RAG_COLLECTION))[edit.id]
                vectors = await vectors_of(self._embedder, [edit.content])
                changed = Point(edit.id, vectors[0], {**payload, "content": edit.content})
                await store.upsert(RAG_COLLECTION, [changed])
                self._rewritten[edit.id] = edit.content
        self._retriever = self._new_retriever()
        for id_, exchange in self._exchanges.items():
            self._retriever.add(id_, _with_text(exchange, self._rewritten.get(id_)))
        return True

    async def snapshot(self) -> Snapshot:
        """Return the documents, read from Qdrant."""
        return Snapshot(points={QDRANT: {RAG_COLLECTION: await self._opened().dump(RAG_COLLECTION)}})

    async def close(self, status: ClosingStatus) -> None:
        """Free an embedded store; on a server the documents stay."""
        if self._store is not None:
            self._store.close()
            self._store = None

    @staticmethod
    def texts_to_embed(exchanges: Sequence[Exchange]) -> Sequence[str]:
        """Return the exchanges as they are stored."""
        return [exchange.text for exchange in exchanges]

    async def _retrieve(self, text: str, top_k: int, context_tokens: int, depth: int) -> Recall:
        if top_k < 1:
            return Recall()
        candidates = top_k + depth
        found = await self._retriever.search(
            self._opened(), text, max(candidates, RERANKED) if self._reranker else candidates
        )
        if not found:
            return Recall(why_empty="below_threshold" if self._exchanges else "nothing_stored")
        read = await self._read(found, max(top_k, RERANKED) if self._reranker else top_k)
        hits = [self._hit(item) for item in read]
        if self._reranker:
            hits = await _reranked(self._reranker, text, hits)
        ranked = [hit.model_copy(update={"rank": rank}) for rank, hit in enumerate(hits[:candidates], start=1)]
        numbers = {id_: exchange.turn_number for id_, exchange in self._exchanges.items()}
        recalled = assemble(ranked[:top_k], numbers, context_tokens, self._count_tokens)
        missed = tuple(hit.model_copy(update={"text": "", "in_prompt": False}) for hit in ranked[top_k:])
        return recalled.model_copy(update={"missed": missed})

    async def _read(self, found: Sequence[RankedExchange], count: int) -> list[RankedExchange]:
        """Return what was found, the first ``count`` with their content as stored."""
        unread = [item.id for item in found[:count] if item.content is None]
        if not unread:
            return list(found)
        held = {point.id: point.payload["content"] for point in await self._opened().fetch(RAG_COLLECTION, unread)}
        return [replace(item, content=item.content or held.get(item.id)) for item in found]

    def _hit(self, item: RankedExchange) -> Hit:
        exchange = self._exchanges[item.id]
        return Hit(
            id=item.id,
            store=QDRANT,
            place=RAG_COLLECTION,
            rank=1,
            score=item.score,
            text=under_date(item.content or "", exchange.said_at),
            turns=() if item.id in self._rewritten else exchange.turn_ids,
            sources=exchange.turn_ids if item.id in self._rewritten else (),
            channels=item.channels,
        )

    def _opened(self) -> KnowledgeStore:
        if self._store is None:
            raise BackendError(f"The {self.name} memory is not open")
        return self._store


class KeywordRagBackend(RagBackend):
    """``rag:keyword``. No search compares its vectors, so nothing is embedded."""

    @staticmethod
    def texts_to_embed(exchanges: Sequence[Exchange]) -> Sequence[str]:
        """None."""
        return ()

    @staticmethod
    def _embedder_of(resources: Resources) -> TextEmbedder:
        return PlaceholderEmbedder(resources.embedder.dimension)


class PlaceholderEmbedder(TextEmbedder):
    """The same vector for every text: the collection, which other memories may share, wants one of each point."""

    name = "placeholder"

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        """Return the dimension of the collection's vectors."""
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, shape ``(len(texts), dimension)``."""
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        vectors[:, 0] = 1.0
        return vectors


async def _reranked(reranker: TextReranker, text: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the first hits by the reranker's scores; the others follow as they were, without a score."""
    best = await best_first(reranker, text, [hit.text for hit in hits[:RERANKED]])
    return [
        *(
            hits[place].model_copy(
                update={"score": scored.score, "channels": {**hits[place].channels, CHANNEL: scored}}
            )
            for place, scored in best
        ),
        *(hit.model_copy(update={"score": None}) for hit in hits[len(best) :]),
    ]


def _with_text(exchange: Exchange, text: str | None) -> Exchange:
    """Return the exchange with another text, as one message; as it is without."""
    if text is None:
        return exchange
    first = exchange.messages[0]
    label, _, said = text.partition(": ")
    return Exchange(messages=(first.model_copy(update={"label": label, "text": said}),))
