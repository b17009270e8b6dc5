"""The memories of a run, from its settings: made afresh for each conversation, out of what they share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from memory_backends.base import (
    BackendError,
    FactExtractor,
    MemoryBackend,
    StoreAddressError,
    StoreUnavailableError,
    system_clock,
)
from memory_backends.options import MemoryOptionError, MemoryOptions, memory_options
from memory_backends.registry import TAKEN_BY, Evidence, create_backend
from memory_backends.resources import Resources
from memory_backends.retrieval.embedding import CachedEmbedder
from memory_backends.retrieval.vector_cache import StoredEmbedder
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.models import Conversation
from memreplay.engine.remote.backend import AgentBackend, RemoteAgent
from memreplay.engine.remote.client import AgentAddress, AgentClient, AgentError, is_agent
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.tokens import token_counter
from memreplay.runtime.embedders import ensure_embedder_answers, stored_embedder
from memreplay.settings import Settings


def resources_of(settings: Settings) -> tuple[Resources, StoredEmbedder]:
    """What memories are made of, without an extractor, and the vectors on disk in it, which the caller closes.

    No server is reached and no model loaded yet.

    Raises:
        UsageError: an address or an option cannot be one.
    """
    redis, qdrant = connections(settings)
    options = memory_options_of(settings)
    vectors = stored_embedder(settings.embedder, settings.api_base)
    resources = Resources(
        redis=redis,
        qdrant=qdrant,
        embedder=CachedEmbedder(vectors),
        count_tokens=token_counter(settings.model[0]),
        clock=system_clock,
        ttl_seconds=settings.redis_ttl,
        options=options,
    )
    return resources, vectors


def agents_of(settings: Settings) -> dict[str, RemoteAgent]:
    """The remote agents among the backends, by name. Nothing is reached yet.

    Raises:
        UsageError: an address cannot be one.
    """
    token = settings.agent_token.get_secret_value() if settings.agent_token else None
    return {
        name: RemoteAgent(AgentClient(AgentAddress.read(name), token))
        for name in settings.backend
        if is_agent(name)
    }


def memory_options_of(settings: Settings) -> MemoryOptions:
    """Which mechanisms are switched off, and the shares of the tiers.

    Raises:
        UsageError: an unknown mechanism or share, or one that no memory in the run takes.
    """
    try:
        options = memory_options(settings.ablate, settings.tier_share)
    except MemoryOptionError as error:
        raise UsageError(str(error)) from None
    for option, name in TAKEN_BY.items():
        if getattr(settings, option) and name not in settings.backend:
            raise UsageError(f"--{option.replace('_', '-')} is an option of {name}, which is not in this run")
    if settings.extractor == EXTRACTIVE_MODEL:
        raise UsageError(f"--extractor needs a language model; {EXTRACTIVE_MODEL} only answers questions")
    return options


def connections(settings: Settings) -> tuple[RedisConnection, QdrantConnection]:
    """The stores: servers where addresses are given, else embedded ones. Nothing is reached yet.

    Raises:
        UsageError: an address cannot be one.
    """
    key = settings.qdrant_api_key
    try:
        redis = RedisConnection.to(settings.redis_url) if settings.redis_url else RedisConnection.embedded()
        if settings.qdrant_url is None:
            return redis, QdrantConnection.embedded()
        return redis, QdrantConnection.to(settings.qdrant_url, api_key=key.get_secret_value() if key else None)
    except StoreAddressError as error:
        raise UsageError(str(error)) from None


class RunMemories:
    """The stores, the embedder and the agents of a run, and the memories that are built on them.

    Raises:
        UsageError: an address or an option cannot be one.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._agents = agents_of(settings)
        self._resources, self._vectors = resources_of(settings)

    def use_extractor(self, extractor: FactExtractor | None) -> None:
        """Let memories that are made from now on have their facts read by it, where there is one."""
        self._resources = replace(self._resources, extractor=extractor)

    def fresh(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        """Fresh memories for a conversation, by name.

        Raises:
            UsageError: one cannot be made.
        """
        evidence = {question.text: question.evidence for question in conversation.questions if question.evidence}
        return self._made(names, evidence)

    def beside(self, conversation: Conversation, name: str) -> MemoryBackend:
        """A memory beside those of the session. The one memory of an agent without sessions cannot be had twice."""
        if is_agent(name):
            return AgentBackend(name, replace(self._agents[name], serves_without_sessions=False))
        return self.fresh(conversation, [name])[name]

    def refuse_unusable(self) -> None:
        """Make sure that every memory can be made; no server is reached for it.

        Raises:
            UsageError: one cannot be made, or not asked offline.
        """
        self._made(self._settings.backend, {})
        if self._settings.offline and self._agents:
            raise UsageError(f"--offline reaches no network, and {next(iter(self._agents))} is asked over one")

    async def check(self) -> None:
        """Make sure of every server that the memories need, and of the embedder.

        Raises:
            MissingServerOrKeyError: one is missing; the sentence says which.
        """
        embedder, base = self._settings.embedder, self._settings.api_base
        await asyncio.to_thread(ensure_embedder_answers, embedder, self._vectors, base)
        try:
            await self._resources.redis.check()
            await self._resources.qdrant.check()
            for agent in self._agents.values():
                await agent.client.check()
        except (StoreUnavailableError, AgentError) as error:
            raise MissingServerOrKeyError(str(error)) from None

    async def warm_up(self) -> None:
        """Load the embedder in a thread, ahead of its first use."""
        await asyncio.to_thread(self._resources.embedder.embed, ["warm"])

    async def embed_ahead(self, texts: Sequence[str]) -> None:
        """Embed much of a conversation in one go; memories that search by vectors then find them ready."""
        # What cannot be embedded now is an error of the memory that needs it, when it needs it.
        with suppress(BackendError):
            await asyncio.to_thread(self._resources.embedder.embed, texts)

    def described(self) -> dict[str, Any]:
        """What the memories are really made of, as it is recorded; no secrets."""
        return {
            "embedder": self._resources.embedder.name,
            "tier_share": [f"{tier}={share:g}" for tier, share in self._resources.options.shares.items()],
            "redis": self._resources.redis.description,
            "qdrant": self._resources.qdrant.description,
        }

    async def close(self) -> None:
        """Let go of the stores, the vectors on disk and the agents."""
        self._vectors.close()
        for agent in self._agents.values():
            await agent.client.aclose()
        await self._resources.redis.aclose()
        await self._resources.qdrant.aclose()

    def _made(self, names: Sequence[str], evidence: Evidence) -> dict[str, MemoryBackend]:
        try:
            return {
                name: AgentBackend(name, self._agents[name])
                if is_agent(name)
                else create_backend(name, self._resources, evidence)
                for name in names
            }
        except BackendError as error:
            raise UsageError(str(error)) from None
