"""The memories of a run: created for each conversation, from stores and an embedder that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memory_backends.base import (
    BackendError,
    MemoryBackend,
    Namespace,
    StoreAddressError,
    StoreUnavailableError,
)
from memory_backends.metering import ChatModel, FactExtractor, MeteredChat
from memory_backends.registry import (
    BACKEND_NAMES,
    Evidence,
    contacts_a_server,
    create_backend,
    settings_taken,
    works_elsewhere,
)
from memory_backends.resources import MemoryOptionError, MemoryOptions, Resources, memory_options, system_clock
from memory_backends.retrieval.embedding import CachedEmbedder
from memory_backends.stores.cleanup import COLLECTIONS, remove_namespace
from memory_backends.stores.leases import Lease
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.models import Conversation
from memreplay.engine.remote.addresses import is_agent
from memreplay.engine.remote.backend import AgentBackend, RemoteAgent
from memreplay.engine.remote.client import AgentError
from memreplay.engine.remote.openai import agent_client
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.litellm_setup import watch_litellm
from memreplay.llm.tokens import token_counter
from memreplay.paths import cache_folder
from memreplay.runtime.embedders import (
    EMBEDDED,
    REMOTE,
    ensure_dimension_is_known,
    ensure_embedder_answers,
    ensure_reranker_answers,
    stored_embedder,
    stored_reranker,
)
from memreplay.runtime.kept_memories import KeptMemories, writing_settings
from memreplay.settings import Settings

if TYPE_CHECKING:
    from memreplay.runtime.counting import Counting


def resources_of(settings: Settings, counting: Counting | None = None) -> tuple[Resources, ExitStack]:
    """Return the resources of memories, without an extractor; and what closes the files of embedder and
    reranker.

    Opens no connection and loads no model yet. With ``counting`` no provider is ever called.

    Raises:
        UsageError: an invalid address or option.
    """
    redis, qdrant = connections(settings)
    options = memory_options_of(settings)
    files = ExitStack()
    vectors = stored_embedder(settings.embedder, settings.api_base, offline=settings.offline, counting=counting)
    files.callback(vectors.close)
    reranker = None
    if settings.reranker is not None:
        reranker = stored_reranker(
            settings.reranker, settings.api_base, offline=settings.offline, counting=counting
        )
        files.callback(reranker.close)
    resources = Resources(
        redis=redis,
        qdrant=qdrant,
        embedder=CachedEmbedder(vectors),
        count_tokens=token_counter(settings.model[0]),
        clock=system_clock,
        ttl_seconds=settings.redis_ttl,
        options=options,
        reranker=reranker,
        configs=settings.backend_config,
    )
    return resources, files


def ensure_models_answer(settings: Settings, resources: Resources) -> None:
    """Ask the embedder and the reranker for a word; offline, what a provider returned before must be in the cache.

    Raises:
        UsageError: unknown provider.
        MissingServerOrKeyError: no key, no server, or a model cannot be loaded.
    """

    def is_asked(spec: str) -> bool:
        return not (settings.offline and spec.startswith(REMOTE))

    if is_asked(settings.embedder):
        ensure_embedder_answers(settings.embedder, resources.embedder, settings.api_base)
    else:
        ensure_dimension_is_known(resources.embedder)
    spec, reranker = settings.reranker, resources.reranker
    if spec is not None and reranker is not None and is_asked(spec):
        ensure_reranker_answers(spec, reranker, settings.api_base)


def agents_of(settings: Settings) -> dict[str, RemoteAgent]:
    """Return the remote agents among the backends, by name; opens no connection yet.

    Raises:
        UsageError: an invalid address.
    """
    return {
        name: RemoteAgent(agent_client(name, settings.agent_token, settings.agent_session_header))
        for name in settings.backend
        if is_agent(name)
    }


def memory_options_of(settings: Settings) -> MemoryOptions:
    """Ablations and tier shares.

    Raises:
        UsageError: an unknown ablation or share, or an option that no memory in the run takes.
    """
    try:
        options = memory_options(settings.ablate, settings.tier_share)
    except MemoryOptionError as error:
        raise UsageError(str(error)) from None
    for option in ("ablate", "tier_share", "extractor", "reranker", "backend_config"):
        if getattr(settings, option) and not _is_taken(option, settings.backend):
            takers = ", ".join(name for name in BACKEND_NAMES if option in settings_taken(name))
            raise UsageError(f"--{option.replace('_', '-')} is an option of {takers}; this run has no such memory")
    for name in settings.backend_config:
        if "backend_config" not in (settings_taken(name) if name in BACKEND_NAMES else ()):
            takers = ", ".join(each for each in BACKEND_NAMES if "backend_config" in settings_taken(each))
            raise UsageError(
                f"--backend-config: {name} takes no configuration of its own; expected a table of {takers}"
            )
    if settings.extractor == EXTRACTIVE_MODEL:
        raise UsageError(f"--extractor needs a language model; {EXTRACTIVE_MODEL} can only answer questions")
    return options


def _is_taken(option: str, names: Sequence[str]) -> bool:
    try:
        return any(option in settings_taken(name) for name in names if not is_agent(name))
    except BackendError as error:
        raise UsageError(str(error)) from None


def connections(settings: Settings) -> tuple[RedisConnection, QdrantConnection]:
    """Redis and Qdrant: servers if addresses are given, else embedded; opens no connection yet.

    Raises:
        UsageError: an invalid address.
    """
    try:
        redis = RedisConnection.to(settings.redis_url) if settings.redis_url else RedisConnection.embedded()
        if settings.qdrant_url is None:
            return redis, QdrantConnection.embedded()
        return redis, QdrantConnection.to(settings.qdrant_url, api_key=settings.qdrant_api_key)
    except StoreAddressError as error:
        raise UsageError(str(error)) from None


class RunMemories:
    """The stores, the embedder and the agents of a run, and the memories that are built on them.

    With ``counting`` they are those of an estimate, and use nothing outside this process.
    """

    def __init__(
        self,
        settings: Settings,
        warn: Callable[[str], None] = lambda sentence: None,
        counting: Counting | None = None,
    ) -> None:
        self._settings = settings
        self._warn = warn
        self._counting = counting
        watch_litellm()
        self._agents = agents_of(settings)
        self._resources, self._files = resources_of(settings, counting)
        self._lease = Lease(self._resources.redis, self._resources.qdrant, warn)

    def use_models(self, extractor: FactExtractor | None, chat: ChatModel | None) -> None:
        """Memories created from now on use these."""
        self._resources = replace(self._resources, extractor=extractor, chat=MeteredChat(chat) if chat else None)

    def fresh(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        """Return new memories for a conversation, by name.

        Raises:
            UsageError: one cannot be created.
        """
        evidence = {question.text: question.evidence for question in conversation.questions if question.evidence}
        return self._create(names, evidence)

    def beside(self, conversation: Conversation, name: str) -> MemoryBackend:
        """Return a second memory, beside the one of the session. An agent without sessions has only one, so it
        fails.
        """
        if is_agent(name):
            return AgentBackend(name, replace(self._agents[name], serves_without_sessions=False))
        return self.fresh(conversation, [name])[name]

    async def forget(self, namespace: Namespace) -> None:
        """Remove what a closed memory left on servers."""
        await remove_namespace(self._resources.redis, self._resources.qdrant, namespace.path)

    def filled_before(self, conversation: Conversation, names: Sequence[str]) -> frozenset[str]:
        """Return those of the memories that an earlier run filled with the whole of a conversation."""
        keeper = self.keeper(conversation)
        known = [name for name in names if not is_agent(name)]
        return frozenset(name for name in known if keeper is not None and keeper.has_whole(name))

    def keeper(self, conversation: Conversation) -> KeptMemories | None:
        """Return where filled memories of a conversation are kept; None if this run neither uses nor keeps any."""
        if self._settings.fresh or not self._settings.cache:
            return None
        if self._counting is not None and self._settings.embedder != EMBEDDED:
            # The vectors of an estimate do not go with those of a kept memory.
            return None
        written_by = writing_settings(self._settings, self._resources.embedder.name)
        return KeptMemories(cache_folder() / "memories", written_by, conversation, self._warn)

    def refuse_unusable(self) -> None:
        """Raise UsageError for a memory that cannot be created, or not used offline; opens no connection."""
        self._create(self._settings.backend, {})
        if self._settings.offline:
            for name in self._settings.backend:
                if is_agent(name) or contacts_a_server(name):
                    raise UsageError(f"--offline uses no network, but {name} needs one")

    async def check(self) -> None:
        """Raise MissingServerOrKeyError if a store, an agent, the embedder or the reranker cannot be reached."""
        await asyncio.to_thread(ensure_models_answer, self._settings, self._resources)
        try:
            await self._resources.redis.check()
            for sentence in await self._resources.redis.warnings():
                self._warn(sentence)
            await self._resources.qdrant.check()
            await self._resources.qdrant.check_collections(COLLECTIONS)
            await self._resources.qdrant.check_writing(COLLECTIONS)
            for agent in self._agents.values():
                await agent.client.check()
        except (StoreUnavailableError, AgentError) as error:
            raise MissingServerOrKeyError(str(error)) from None

    @property
    def silence(self) -> str:
        """Return the servers of the stores that have not answered for a while; else empty."""
        stores = (self._resources.redis, self._resources.qdrant)
        return ", ".join(store.waited_for for store in stores if store.waited_for)

    async def warm_up(self) -> None:
        """Load the embedder in a thread before its first use."""
        await asyncio.to_thread(self._resources.embedder.embed, ["warm"])

    async def embed_ahead(self, texts: Sequence[str]) -> None:
        """Embed many texts in one batch, so that memories find the vectors cached."""
        # A text that cannot be embedded is an error of the memory that needs it, when it needs it.
        with suppress(BackendError):
            await asyncio.to_thread(self._resources.embedder.embed, texts)

    def described(self) -> dict[str, Any]:
        """Return the embedder and stores in use, as they are recorded; no secrets."""
        return {
            "embedder": self._resources.embedder.name,
            "tier_share": [f"{tier}={share:g}" for tier, share in self._resources.options.shares.items()],
            "redis": self._resources.redis.description,
            "qdrant": self._resources.qdrant.description,
        }

    def hold_lease(self, run_id: str) -> None:
        """Show others on these servers that a run is alive, until :meth:`close`."""
        self._lease.hold(run_id)

    async def close(self) -> None:
        self._files.close()
        await self._lease.release()
        for agent in self._agents.values():
            await agent.client.aclose()
        await self._resources.redis.aclose()
        await self._resources.qdrant.aclose()

    def _create(self, names: Sequence[str], evidence: Evidence) -> dict[str, MemoryBackend]:
        try:
            return {
                name: AgentBackend(name, self._agents[name])
                if is_agent(name)
                else create_backend(name, self._resources_for(name), evidence)
                for name in names
            }
        except BackendError as error:
            raise UsageError(str(error)) from None

    def _resources_for(self, name: str) -> Resources:
        if self._counting is None:
            return self._resources
        if works_elsewhere(name):
            raise BackendError(f"{name} works in a server or a process of its own, which an estimate does not use")
        return self._counting.resources_of(name, self._resources)
