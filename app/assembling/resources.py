"""What memories are made of, from the settings: stores, vectors, the options of the hybrid one, and agents."""

from __future__ import annotations

from app.agents.address import AgentAddress, is_agent
from app.agents.backend import RemoteAgent
from app.agents.client import AgentClient
from app.answering.model_names import EXTRACTIVE_MODEL
from app.answering.tokens import token_counter
from app.assembling.embedders import stored_embedder
from app.errors import UsageError
from app.settings import Settings
from memory_backends.base import StoreAddressError
from memory_backends.clock import system_clock
from memory_backends.embedding import CachedEmbedder
from memory_backends.hybrid_options import HybridOptionError, HybridOptions, hybrid_options
from memory_backends.knowledge_store import QdrantConnection
from memory_backends.operating_memory import RedisConnection
from memory_backends.resources import Resources
from memory_backends.vector_cache import StoredEmbedder


def resources_of(settings: Settings) -> tuple[Resources, StoredEmbedder]:
    """What memories are made of, without an extractor, and the vectors on disk in it, which the caller closes.

    No server is reached and no model loaded yet.

    Raises:
        UsageError: an address or an option cannot be one.
    """
    redis, qdrant = connections(settings)
    hybrid = options_of_hybrid(settings)
    vectors = stored_embedder(settings.embedder, settings.api_base)
    resources = Resources(
        redis=redis,
        qdrant=qdrant,
        embedder=CachedEmbedder(vectors),
        count_tokens=token_counter(settings.model[0]),
        clock=system_clock,
        ttl_seconds=settings.redis_ttl,
        hybrid=hybrid,
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


def options_of_hybrid(settings: Settings) -> HybridOptions:
    """What is switched off in the hybrid memory, and the shares of its tiers.

    Raises:
        UsageError: there is no such mechanism or share, or no hybrid memory in the run that it could be of.
    """
    try:
        options = hybrid_options(settings.ablate, settings.tier_share)
    except HybridOptionError as error:
        raise UsageError(str(error)) from None
    for option in ("ablate", "tier_share", "extractor"):
        if getattr(settings, option) and "hybrid" not in settings.backend:
            raise UsageError(f"--{option.replace('_', '-')} is of the hybrid memory, which is not in this run")
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
