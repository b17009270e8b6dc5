"""What was said, word for word: every exchange is a point in Qdrant, found by meaning and by keywords.

Exchanges are written and ranked; turns are what is scored. A turn's score is the weighted sum of its channels, each
scaled to 0..1 over all turns; an exchange is as good as its best turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import ChannelScore, Clock, Exchange, Namespace
from memory_backends.hybrid.facts import folded
from memory_backends.hybrid.keyword_index import KeywordIndex, Scores, weighted
from memory_backends.knowledge_store import KnowledgeStore, Point
from memory_backends.records import VERBATIM_COLLECTION, QdrantDocument

CHANNEL_WEIGHTS: Mapping[str, float] = {
    "dense": 1.0,
    "dense_near": 1.0,
    "keyword": 1.0,
    "keyword_near": 1.0,
    "keyword_wide": 1.0,
    "session": 0.5,
    "speaker": 0.5,
}
"""The channels and what each counts for.

``dense`` is the cosine of the exchange, ``dense_near`` the same averaged with the exchanges beside it; ``keyword``
is the turn's BM25, ``keyword_near`` and ``keyword_wide`` that of the turn with one and with two neighbours on both
sides, ``session`` that of its whole session; ``speaker`` is 1 where the question names who said it.
"""

NEIGHBOUR_WEIGHT = 0.5
SEARCH_DEPTH = 100
"""Exchanges that the dense search gives; the others count as no better than the last of them."""


@dataclass(frozen=True)
class RankedExchange:
    """An exchange and how it was found.

    ``place`` is its 0-based place in the conversation; ``score`` is in 0..1.
    """

    id: str
    place: int
    exchange: Exchange
    score: float
    channels: Mapping[str, ChannelScore]


class VerbatimMemory:
    """The exchanges of one conversation, in Qdrant. What is kept here beside them comes from the same writes."""

    def __init__(self, store: KnowledgeStore, namespace: Namespace, clock: Clock) -> None:
        self._store = store
        self._namespace = namespace
        self._clock = clock
        self._exchanges: dict[str, Exchange] = {}
        self._places: dict[str, int] = {}
        self._keywords = KeywordIndex()
        self._owner: list[int] = []
        self._labels: list[str] = []

    def id_of(self, exchange: Exchange) -> str:
        """The id of the point that it is, or would be, stored as."""
        return self._namespace.point_id("exchange", exchange.turn_number)

    async def store(self, exchange: Exchange, vector: NDArray[np.float32]) -> None:
        """Write an exchange. Writing it again changes nothing."""
        id_ = self.id_of(exchange)
        if id_ in self._exchanges:
            return
        document = QdrantDocument(
            id=id_,
            content=exchange.text,
            turn_number=exchange.turn_number,
            timestamp=exchange.said_at or self._clock(),
        )
        point = Point(id=id_, vector=vector, payload=document.model_dump(mode="json"))
        await self._store.upsert(VERBATIM_COLLECTION, [point])
        self._places[id_] = len(self._exchanges)
        self._exchanges[id_] = exchange
        for message in exchange.messages:
            self._keywords.add(message.session, message.line)
            self._owner.append(self._places[id_])
            self._labels.append(folded(message.label))

    async def rank(self, question: str, vector: NDArray[np.float32]) -> list[RankedExchange]:
        """All exchanges, best first; of two equal ones the earlier first."""
        found = await self._store.search(VERBATIM_COLLECTION, question, vector, SEARCH_DEPTH)
        if not found:
            return []
        dense = np.full(len(self._exchanges), min(point.score for point in found))
        for point in found:
            dense[self._places[point.id]] = point.score
        owner = np.array(self._owner)
        channels = self._channels(question, dense, owner)
        turn_scores = sum(
            (weight * _scaled(channels[name]) for name, weight in CHANNEL_WEIGHTS.items()), np.zeros(len(owner))
        )
        scores = _best_of_each(turn_scores, owner, len(dense)) / sum(CHANNEL_WEIGHTS.values())
        by_channel = {name: _best_of_each(values, owner, len(dense)) for name, values in channels.items()}
        ranks = {name: _ranks(values) for name, values in by_channel.items()}
        ids = list(self._exchanges)
        return [
            RankedExchange(
                id=ids[place],
                place=int(place),
                exchange=self._exchanges[ids[place]],
                score=float(scores[place]),
                channels={
                    name: ChannelScore(rank=int(ranks[name][place]), score=float(values[place]))
                    for name, values in by_channel.items()
                },
            )
            for place in np.argsort(-scores, kind="stable")
        ]

    def _channels(self, question: str, dense: Scores, owner: NDArray[np.int_]) -> dict[str, Scores]:
        """Every channel's score of every turn."""
        sessions = np.array([exchange.session for exchange in self._exchanges.values()])
        around = [NEIGHBOUR_WEIGHT]
        smoothed = weighted(dense, sessions, around) / weighted(np.ones(len(dense)), sessions, around)
        asked = f" {folded(question)} "
        return {
            "dense": dense[owner],
            "dense_near": smoothed[owner],
            "keyword": self._keywords.scores(question, reach=0),
            "keyword_near": self._keywords.scores(question, reach=1),
            "keyword_wide": self._keywords.scores(question, reach=2),
            "session": self._keywords.session_scores(question),
            "speaker": np.array([float(f" {label} " in asked) for label in self._labels]),
        }


def _scaled(values: Scores) -> Scores:
    """Values scaled to 0..1; all 0 where they do not differ."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _best_of_each(values: Scores, owner: NDArray[np.int_], count: int) -> Scores:
    best = np.full(count, -np.inf)
    np.maximum.at(best, owner, values)
    return best


def _ranks(values: Scores) -> NDArray[np.int_]:
    """1-based ranks, best first."""
    ranks = np.empty(len(values), dtype=int)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
