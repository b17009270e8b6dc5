"""The hybrid memory (DD-01): working state in Redis, what was said and what was learnt from it in Qdrant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import TypeVar
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from memory_backends.base import (
    MISSED_DEPTH,
    MISSED_DEPTH_OF_A_TURN,
    BackendError,
    Clock,
    ClosingStatus,
    Exchange,
    MemoryBackend,
    MemoryDescription,
    Message,
    Namespace,
    PanelInfo,
    Recall,
    Snapshot,
    StoreInfo,
    TextEmbedder,
    TokenCounter,
)
from memory_backends.editing import BY_HAND, KeyEdit, StoreEdit, edited_state
from memory_backends.hybrid.candidates import (
    Candidate,
    Heard,
    candidates_from,
    candidates_of,
    question_at_the_end_of,
)
from memory_backends.hybrid.consolidation import ConsolidationAgent, decision_on_the_rest
from memory_backends.hybrid.planner import PlannerAgent
from memory_backends.hybrid.recall import RecallLimits, TierResults, compose
from memory_backends.hybrid.verbatim import CHANNEL_WORDS, VerbatimMemory, channels_kept, reranked, sentences_in
from memory_backends.hybrid.workspace import SharedWorkspace, values_of
from memory_backends.metering import MeteredReranker
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    VERBATIM_COLLECTION,
    ArchivedWorkspace,
    PersonalMemoryState,
    SharedWorkspaceState,
)
from memory_backends.resources import MemoryOptions, Resources
from memory_backends.retrieval.embedding import vectors_of
from memory_backends.retrieval.reranking import RERANKED, with_reranker
from memory_backends.stores.qdrant import QDRANT, KnowledgeStore, Point, ScoredPoint
from memory_backends.stores.redis import REDIS, OperatingMemory
from memory_backends.stores.trace import MemoryTrace

_ARCHIVES = UUID("5f2c1d1e-6f0e-5a53-9a50-0a3c5d0c7b1e")
"""The uuid5 namespace of archive ids."""


async def archive(
    workspace: SharedWorkspaceState, store: KnowledgeStore, embedder: TextEmbedder, clock: Clock
) -> None:
    """Write the workspace to ``hybrid_knowledge``. Archiving an event again replaces its document."""
    document = ArchivedWorkspace(
        id=str(uuid5(_ARCHIVES, workspace.event_id)),
        content=_in_words(workspace),
        workspace=workspace,
        archived_at=clock(),
    )
    vectors = await vectors_of(embedder, [document.content])
    await store.upsert(KNOWLEDGE_COLLECTION, [Point(document.id, vectors[0], document.model_dump(mode="json"))])


def _in_words(workspace: SharedWorkspaceState) -> str:
    """Return one line a slot."""
    lines = (
        f"{slot}: {'; '.join(str(value['value']) for value in values_of(held))}"
        for slot, held in workspace.shared_data.items()
    )
    return "\n".join([f"Workspace, {workspace.status}", *lines])


LINES_COUNTED = 4096
"""Texts whose number of tokens is remembered."""

LONG_TEXT = 16_384
"""Characters of a text whose reading takes so long that it happens beside the event loop."""

T = TypeVar("T")

COLLECTIONS = (VERBATIM_COLLECTION, KNOWLEDGE_COLLECTION)


@dataclass(frozen=True)
class _Parts:
    """The agents and stores of one conversation, from open to close."""

    memory: OperatingMemory
    store: KnowledgeStore
    workspace: SharedWorkspace
    planner: PlannerAgent
    consolidation: ConsolidationAgent
    verbatim: VerbatimMemory

    @property
    def keys(self) -> tuple[str, ...]:
        """Return every key in Redis."""
        return (self.planner.key, self.consolidation.key, self.workspace.key)


class HybridBackend(MemoryBackend):
    """A planner that reads and stages, a consolidation agent that distils behind it, and a workspace of both.

    Perceiving a message writes the planner's scratchpad and nothing that a recall reads.
    """

    name = "hybrid"
    perceive_changes_recall = False
    takes = ("ablate", "tier_share", "extractor", "reranker")
    description = MemoryDescription(
        stores=(
            StoreInfo(prefix=PersonalMemoryState.key(""), is_scratch=True),
            StoreInfo(prefix=SharedWorkspaceState.key(""), slots="shared_data"),
            StoreInfo(prefix=KNOWLEDGE_COLLECTION, superseded_field="superseded_by"),
        ),
        panels=(
            PanelInfo(panel="state", title="personal state", prefix=PersonalMemoryState.key(""), weight=7),
            PanelInfo(panel="state", title="shared state", prefix=SharedWorkspaceState.key(""), weight=6),
            PanelInfo(panel="promotions", weight=5),
            PanelInfo(panel="retrievals", weight=6),
        ),
        channels=CHANNEL_WORDS,
    )

    def __init__(self, resources: Resources) -> None:
        self.trace = MemoryTrace()
        self._resources = resources
        self._reranker = resources.reranker and MeteredReranker(resources.reranker, self.trace)
        if self._reranker:
            self.description = with_reranker(self.description)
        self._counters: dict[TokenCounter, TokenCounter] = {}
        self.set_token_counter(resources.count_tokens)
        self._open_parts: _Parts | None = None
        self._observed: set[str] = set()
        self._heard = Heard()
        self._consolidating: asyncio.Task[None] | None = None
        self._latest: datetime | None = None
        self._dates: dict[str, datetime | None] = {}

    @classmethod
    def create(cls, name: str, resources: Resources, evidence: object) -> HybridBackend:
        """Create the memory for the registry."""
        return cls(resources)

    @property
    def _options(self) -> MemoryOptions:
        return self._resources.options

    async def open(self, namespace: Namespace) -> None:
        """Empty states and collections, and an active event."""
        await self._release()
        parts = self._make(namespace)
        self._observed, self._latest, self._dates, self._heard = set(), None, {}, Heard()
        with self.trace.caused_by("open", parts.planner.agent_id):
            await parts.memory.remove(*parts.keys)
            for collection in COLLECTIONS:
                await parts.store.open_collection(collection)
            await parts.workspace.create()
            await parts.planner.begin()
        self._open_parts = parts

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        """Return the planner reads its state, searches long-term memory with the message, and writes its
        scratchpad.
        """
        await self.settle()
        parts = self._parts()
        with self.trace.caused_by("perceive", parts.planner.agent_id, (message.turn_id,)):
            state = await parts.planner.read()
            recalled = await self._recall(state, message.text, top_k, context_tokens, MISSED_DEPTH_OF_A_TURN)
            await parts.planner.think(state, message, recalled)
        return recalled

    async def observe(self, exchange: Exchange) -> None:
        """Store the exchange verbatim, stage its candidate facts, and start consolidation in the background."""
        await self.settle()
        parts = self._parts()
        if parts.verbatim.id_of(exchange) in self._observed:
            return
        self._dates |= {message.turn_id: message.said_at for message in exchange.messages}
        with self.trace.caused_by("observe", parts.planner.agent_id, exchange.turn_ids):
            if self._options.keeps("verbatim"):
                read = await _beside_the_loop(exchange.text, partial(sentences_in, exchange))
                whole, *sentences = await self._vectors(exchange.text, *read)
                await parts.verbatim.store(exchange, whole, sentences)
            if self._resources.extractor is None:
                candidates = await _beside_the_loop(exchange.text, partial(self._candidates_of, exchange))
                await self._stage(exchange, candidates)
                await _beside_the_loop(exchange.text, partial(self._heard.hear, exchange))
                for message in exchange.messages:
                    decision = await _beside_the_loop(message.text, partial(decision_on_the_rest, message))
                    if decision is not None:
                        self.trace.decide(decision)
        self._observed.add(parts.verbatim.id_of(exchange))
        self._latest = max(filter(None, (self._latest, exchange.said_at)), default=None)
        self._consolidating = asyncio.create_task(self._consolidate(exchange))

    async def settle(self) -> None:
        """Wait for consolidation, and raise its error if it failed."""
        task, self._consolidating = self._consolidating, None
        if task is not None:
            await task

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        if count_tokens not in self._counters:
            # The same lines are weighed for every question.
            self._counters[count_tokens] = lru_cache(maxsize=LINES_COUNTED)(count_tokens)
        self._count_tokens = self._counters[count_tokens]

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Return what all tiers return for a question. It only reads."""
        await self.settle()
        parts = self._parts()
        with self.trace.caused_by("recall", parts.planner.agent_id):
            state = await parts.planner.read()
            return await self._recall(state, question, top_k, context_tokens, MISSED_DEPTH)

    async def edit(self, edit: StoreEdit) -> bool:
        """Change a state or a distilled fact, or delete a fact or an exchange."""
        await self.settle()
        parts = self._parts()
        with self.trace.caused_by("by_hand", BY_HAND):
            if isinstance(edit, KeyEdit):
                return await edit_state(parts.memory, parts.keys, edit)
            if edit.id in await parts.store.dump(VERBATIM_COLLECTION):
                if edit.content is not None:
                    raise BackendError(f"Point {edit.id} is an exchange as it was said; edit its messages instead")
                await parts.verbatim.forget(edit.id)
                return True
            payload = (await parts.store.dump(KNOWLEDGE_COLLECTION)).get(edit.id)
            if payload is None:
                return False
            if edit.content is None:
                await parts.store.remove(KNOWLEDGE_COLLECTION, [edit.id])
            else:
                vector = (await self._vectors(edit.content))[0]
                point = Point(edit.id, vector, {**payload, "content": edit.content})
                await parts.store.upsert(KNOWLEDGE_COLLECTION, [point])
            return True

    async def snapshot(self) -> Snapshot:
        """Return the three states in Redis and both collections."""
        await self.settle()
        parts = self._parts()
        states = {key: await parts.memory.peek(key) for key in parts.keys}
        return Snapshot(
            values={REDIS: {key: state for key, state in states.items() if state is not None}},
            points={QDRANT: {collection: await parts.store.dump(collection) for collection in COLLECTIONS}},
        )

    async def close(self, status: ClosingStatus) -> None:
        """Give the event its last status, archive its workspace, and free an embedded store."""
        if self._open_parts is None:
            return
        parts = self._open_parts
        try:
            await self.settle()
            with self.trace.caused_by("close", parts.consolidation.agent_id):
                workspace = await parts.workspace.finish(parts.consolidation.agent_id, status)
                await archive(workspace, parts.store, self._resources.embedder, self._resources.clock)
                if self._resources.ttl_seconds is not None:
                    for key in parts.keys:
                        await parts.memory.expire(key, self._resources.ttl_seconds)
        finally:
            await self._release()

    @staticmethod
    def texts_to_embed(exchanges: Sequence[Exchange]) -> Sequence[str]:
        """Exchanges, their sentences, and the candidate facts in them."""
        return [
            *(exchange.text for exchange in exchanges),
            *(sentence for exchange in exchanges for sentence in sentences_in(exchange)),
            *(
                candidate.content
                for exchange, before in zip(exchanges, (None, *exchanges), strict=False)
                for candidate in candidates_of(exchange, question_at_the_end_of(before) if before else "")
            ),
        ]

    def _make(self, namespace: Namespace) -> _Parts:
        made = self._resources
        memory = OperatingMemory(made.redis, self.trace)
        store = KnowledgeStore(made.qdrant, self.trace, namespace, made.embedder.dimension)
        workspace = SharedWorkspace(memory, namespace, made.clock, made.options)
        planner = PlannerAgent(memory, workspace, namespace, made.clock)
        consolidation = ConsolidationAgent(
            memory, store, planner, workspace, made.embedder, self.trace, namespace, made.clock, made.options
        )
        channels = channels_kept(made.options.ablated)
        verbatim = VerbatimMemory(store, namespace, made.clock, made.embedder.dimension, channels)
        return _Parts(memory, store, workspace, planner, consolidation, verbatim)

    async def _consolidate(self, exchange: Exchange) -> None:
        consolidation = self._parts().consolidation
        with self.trace.caused_by("consolidate", consolidation.agent_id, exchange.turn_ids):
            if self._resources.extractor is not None:
                facts, extraction = await self._resources.extractor.extract(exchange)
                self.trace.extracted(extraction)
                await self._stage(exchange, candidates_from(exchange, facts, self._resources.extractor.name))
            await consolidation.consolidate(self._latest)

    def _candidates_of(self, exchange: Exchange) -> Sequence[Candidate]:
        return self._heard.mark(candidates_of(exchange, self._heard.asked))

    async def _stage(self, exchange: Exchange, candidates: Sequence[Candidate]) -> None:
        planner = self._parts().planner
        await planner.stage(exchange, candidates)
        if self._options.keeps("shared"):
            await planner.share(candidates)

    async def _recall(
        self, state: PersonalMemoryState, question: str, top_k: int, context_tokens: int, depth: int
    ) -> Recall:
        """Search every tier, and compose one context."""
        if top_k < 1:
            return Recall()
        parts = self._parts()
        parsed = await _beside_the_loop(question, partial(parts.verbatim.parse, question))
        vector, topic = await self._vectors(parsed.text, parsed.topic)
        limits = RecallLimits.of(self._options, top_k, context_tokens, depth)
        facts: Sequence[ScoredPoint] = ()
        if self._options.keeps("knowledge"):
            facts = await parts.store.search(KNOWLEDGE_COLLECTION, question, vector, limits.facts)
        count = max(limits.turns, RERANKED) if self._reranker else limits.turns
        turns = await parts.verbatim.rank(parsed, vector, topic, count)
        if self._reranker:
            turns = await reranked(self._reranker, question, turns)
        results = TierResults(
            question=question,
            planner=state,
            workspace=await parts.workspace.read(),
            facts=facts,
            turns=turns[: limits.turns],
            date_of=self._dates.get,
        )
        longest = max((question, *(turn.message.text for turn in results.turns)), key=len)
        return await _beside_the_loop(longest, partial(compose, results, limits, self._count_tokens))

    async def _vectors(self, *texts: str) -> NDArray[np.float32]:
        """Return one row a text."""
        return await vectors_of(self._resources.embedder, texts)

    async def _release(self) -> None:
        """Release the stores; consolidation that is still running is cancelled first."""
        if self._consolidating is not None:
            self._consolidating.cancel()
            await asyncio.gather(self._consolidating, return_exceptions=True)
            self._consolidating = None
        if self._open_parts is not None:
            self._open_parts.store.close()
            self._open_parts = None

    def _parts(self) -> _Parts:
        if self._open_parts is None:
            raise BackendError("The hybrid memory is not open")
        return self._open_parts


async def _beside_the_loop(text: str, work: Callable[[], T]) -> T:
    """Return the result of reading a text; of a long one in a thread, so that nobody else waits for it."""
    return work() if len(text) < LONG_TEXT else await asyncio.to_thread(work)


async def edit_state(memory: OperatingMemory, keys: Sequence[str], edit: KeyEdit) -> bool:
    """Apply an edit to the one state that has such a place; False if none has."""
    found = {}
    for key in keys:
        state = await memory.peek(key) if edit.fits(key) else None
        if isinstance(state, dict) and (changed := edited_state(state, edit)) is not None:
            found[key] = changed
    if len(found) > 1:
        raise BackendError(f"{edit.key}{edit.pointer} fits several states: {', '.join(found)}")
    for key, changed in found.items():
        kind = SharedWorkspaceState if key.startswith("shared_state:") else PersonalMemoryState
        try:
            await memory.write_state(key, kind.model_validate(changed))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "/".join(map(str, first["loc"]))
            raise BackendError(f"{key}: {place} cannot be so: {first['msg']}") from None
    return bool(found)
