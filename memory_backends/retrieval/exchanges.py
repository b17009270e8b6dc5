"""How ``rag`` finds exchanges of a conversation: by their vectors, by keyword, or by both fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memory_backends.base import ChannelScore, Exchange, TextEmbedder
from memory_backends.records import RAG_COLLECTION
from memory_backends.retrieval.embedding import vectors_of
from memory_backends.retrieval.keyword import KeywordIndex, Scores, ranks_of, scaled
from memory_backends.stores.qdrant import KnowledgeStore

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
        """An exchange was stored under this id."""
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
        """The nearest of all that is stored, however far."""
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
        """Those with a score above 0. Qdrant is not asked: the index was made from what was written there."""
        scores = self.scores(text)
        best = [place for place in np.argsort(-scores, kind="stable")[:count] if scores[place] > 0]
        return [
            RankedExchange(self._ids[place], score, {"keyword": ChannelScore(rank=rank, score=score)})
            for rank, (place, score) in enumerate(((p, round(float(scores[p]), 6)) for p in best), start=1)
        ]

    def scores(self, text: str) -> Scores:
        """The score of every exchange, in the order in which they were added."""
        return self._index.scores(text, reach=0) if self._ids else np.zeros(0)

    @property
    def ids(self) -> list[str]:
        """All ids, in the order in which they were added."""
        return self._ids


class FusedRetriever:
    """Both together: the mean of the two scores, each scaled to 0..1 over all exchanges."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._dense = DenseRetriever(embedder)
        self._keyword = KeywordRetriever()

    def add(self, id_: str, exchange: Exchange) -> None:
        self._keyword.add(id_, exchange)

    async def search(self, store: KnowledgeStore, text: str, count: int) -> list[RankedExchange]:
        """The best of all that is stored."""
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
