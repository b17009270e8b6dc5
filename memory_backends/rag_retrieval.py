"""How the rag memory and its variants find an exchange: by meaning, by words, or by both.

Store and unit are the same for all three, so that what separates them is the retriever alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memory_backends.base import ChannelScore, Exchange, TextEmbedder
from memory_backends.keyword_index import KeywordIndex
from memory_backends.knowledge_store import KnowledgeStore
from memory_backends.ranking import Scores, ranks_of, scaled
from memory_backends.records import RAG_COLLECTION

FUSED_DEPTH = 100
"""Exchanges that the dense search gives to a fusion; the others count as no better than the last of them."""


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
        """Qdrant has it already."""

    async def search(self, store: KnowledgeStore, text: str, count: int) -> list[RankedExchange]:
        """The nearest of all that is stored, however far."""
        vectors = await asyncio.to_thread(self._embedder.embed, [text])
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
    """The best exchanges by BM25; one that shares no word with the question is none."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._index = KeywordIndex()

    def add(self, id_: str, exchange: Exchange) -> None:
        """Read its words."""
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
        """Read its words."""
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
