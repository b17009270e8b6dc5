"""A memory that keeps facts and no words: what becomes of each turn is written down beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from memory_backends.base import (
    ChannelScore,
    Exchange,
    Hit,
    MemoryBackend,
    MemoryDescription,
    Namespace,
    Recall,
    Snapshot,
    StoreInfo,
)
from memory_backends.stores.qdrant import QDRANT, KnowledgeStore, Point, QdrantConnection
from memory_backends.stores.trace import MemoryTrace, PromotionDecision, SignificanceFactors

COLLECTION = "facts"
DESCRIPTION = MemoryDescription(stores=(StoreInfo(prefix=COLLECTION, superseded_field="superseded_by"),))
_FACTORS = SignificanceFactors(
    certainty=0.6, impact=0.7, age_days=0.0, accesses=0, age_decay=1.0, recency_boost=1.0
)


@dataclass(frozen=True)
class Fate:
    """What becomes of a turn: a fact with a value is kept, or ``dropped`` is; a fact may end older turns' facts.

    What is ``in_words`` is kept as it was said, and is no fact.
    """

    value: str | None = None
    dropped: str | None = None
    supersedes: str | None = None
    removes: str | None = None
    in_words: bool = False


@dataclass
class FactsMemory(MemoryBackend):
    """``fates`` are by turn id; a turn without one leaves nothing. ``given`` and ``cut`` name turns by rank."""

    fates: Mapping[str, Fate]
    given: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    name: str = "facts"
    trace: MemoryTrace = field(default_factory=MemoryTrace)
    description: MemoryDescription = DESCRIPTION

    async def open(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._store = KnowledgeStore(QdrantConnection.embedded(), self.trace, namespace, 2)
        with self.trace.caused_by("open", self.name):
            await self._store.open_collection(COLLECTION)

    async def observe(self, exchange: Exchange) -> None:
        with self.trace.caused_by("observe", self.name, exchange.turn_ids):
            for turn in exchange.turn_ids:
                await self._remember(turn, self.fates.get(turn, Fate()))

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        hits = [self._hit(rank, turn) for rank, turn in enumerate((*self.given, *self.cut), start=1)]
        below = [self._hit(rank, turn) for rank, turn in enumerate(self.missed, start=len(hits) + 1)]
        return Recall(
            hits=tuple(hit.model_copy(update={"in_prompt": hit.sources[0] in self.given}) for hit in hits),
            missed=tuple(below),
        )

    async def snapshot(self) -> Snapshot:
        return Snapshot(points={QDRANT: {COLLECTION: await self._store.dump(COLLECTION)}})

    async def _remember(self, turn: str, fate: Fate) -> None:
        id_ = self._id(turn)
        if fate.value is not None:
            payload = {"text": fate.value} if fate.in_words else {"value": fate.value, "sources": [turn]}
            await self._store.upsert(COLLECTION, [Point(id_, np.array([1, 0], dtype=np.float32), payload)])
        if fate.supersedes is not None:
            await self._store.change_payload(COLLECTION, self._id(fate.supersedes), {"superseded_by": id_})
        if fate.removes is not None:
            await self._store.remove(COLLECTION, [self._id(fate.removes)])
        if fate.dropped is not None or fate.supersedes is not None:
            self.trace.decide(
                PromotionDecision(
                    candidate_id=turn,
                    content=fate.dropped or f"what turn {turn} says",
                    slot=None,
                    sources=(turn,),
                    factors=_FACTORS,
                    score=0.42,
                    threshold=0.6,
                    decision="DROP" if fate.dropped is not None else "UPDATE",
                    justification="It was written down.",
                    knowledge_id=None if fate.dropped is not None else id_,
                    superseded_id=self._id(fate.supersedes) if fate.supersedes else None,
                )
            )

    def _id(self, turn: str) -> str:
        return self._namespace.point_id(turn)

    def _hit(self, rank: int, turn: str) -> Hit:
        channels = {"dense": ChannelScore(rank=rank + 3, score=0.5), "keyword": ChannelScore(rank=rank, score=2.0)}
        return Hit(
            id=self._id(turn),
            store=QDRANT,
            place=COLLECTION,
            rank=rank,
            score=1 / rank,
            text=self.fates.get(turn, Fate()).value or "a fact",
            sources=(turn,),
            channels=channels,
        )
