"""The memories of a run, from its settings: made afresh for each conversation, out of what they share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from app.agents.address import is_agent
from app.agents.backend import AgentBackend
from app.agents.client import AgentError
from app.assembling.embedders import ensure_embedder_answers
from app.assembling.resources import agents_of, resources_of
from app.conversations.models import Conversation
from app.errors import MissingServerOrKeyError, UsageError
from app.settings import Settings
from memory_backends.base import BackendError, MemoryBackend, StoreUnavailableError
from memory_backends.extraction import FactExtractor
from memory_backends.registry import Evidence, create_backend


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
            "tier_share": [f"{tier}={share:g}" for tier, share in self._resources.hybrid.shares.items()],
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
