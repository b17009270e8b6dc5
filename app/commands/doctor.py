"""``memreplay doctor``: what this configuration reaches, what is missing, and the command that mends it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from app.agents.backend import RemoteAgent
from app.agents.client import AgentError
from app.answering.model_names import EXTRACTIVE_MODEL
from app.answering.reachability import ensure_reachable
from app.assembling.embedders import EMBEDDED, ensure_embedder_answers, plain_embedder
from app.assembling.resources import agents_of, connections
from app.errors import EXIT_DONE, EXIT_MISSING_SERVER_OR_KEY, MemreplayError
from app.paths import cache_folder, config_file, datasets_folder, recordings_folder
from app.settings import Settings, without_secrets
from memory_backends.base import BackendError
from memory_backends.knowledge_store import QdrantConnection
from memory_backends.operating_memory import RedisConnection


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``mend`` is a command or a setting, where something is missing."""

    subject: str
    sound: bool
    says: str
    mend: str = ""


def examine(settings: Settings) -> int:
    """Print one line a subject; 0 where all is sound, else the exit code of a missing server or key."""
    findings = asyncio.run(_examine(settings))
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        print(f"{'ok     ' if finding.sound else 'MISSING'}  {finding.subject:<{width}}  {finding.says}")
        if finding.mend:
            print(f"{'':<{width + 11}}mend it: {finding.mend}")
    for subject, place in (
        ("config file", config_file()),
        ("datasets", datasets_folder()),
        ("recordings", recordings_folder()),
        ("caches", cache_folder()),
    ):
        print(f"         {subject:<{width}}  {place}")
    return EXIT_DONE if all(finding.sound for finding in findings) else EXIT_MISSING_SERVER_OR_KEY


async def _examine(settings: Settings) -> list[Finding]:
    redis, qdrant = connections(settings)
    findings = [
        await _reached("Redis", redis, "redis-url", settings.redis_url),
        await _reached("Qdrant", qdrant, "qdrant-url", settings.qdrant_url),
        await asyncio.to_thread(_embedder, settings),
    ]
    findings += [await _agent(name, agent) for name, agent in agents_of(settings).items()]
    for model in settings.model:
        findings.append(await asyncio.to_thread(_model, model, settings.api_base))
    return findings


async def _reached(
    subject: str, connection: RedisConnection | QdrantConnection, option: str, url: str | None
) -> Finding:
    mend = f"start it, or leave out --{option} {without_secrets(url)} to use the embedded one"
    try:
        await connection.check()
    except BackendError as error:
        return Finding(subject, False, str(error), mend)
    finally:
        await connection.aclose()
    return Finding(subject, True, connection.description)


async def _agent(name: str, agent: RemoteAgent) -> Finding:
    try:
        await agent.client.check()
    except AgentError as error:
        return Finding("agent", False, str(error), f"start it, or leave out --backend {name}")
    finally:
        await agent.client.aclose()
    return Finding("agent", True, name)


def _embedder(settings: Settings) -> Finding:
    mend = (
        "pip install --force-reinstall memreplay"
        if settings.embedder == EMBEDDED
        else f"or use the one inside the package: --embedder {EMBEDDED}"
    )
    try:
        embedder = plain_embedder(settings.embedder, settings.api_base)
        ensure_embedder_answers(settings.embedder, embedder, settings.api_base)
        vectors = embedder.embed(["a fact"])
    except (MemreplayError, BackendError, ImportError, OSError) as error:
        return Finding("embedder", False, str(error), mend)
    return Finding("embedder", True, f"{embedder.name}, {vectors.shape[1]} dimensions")


def _model(model: str, api_base: str | None) -> Finding:
    try:
        ensure_reachable(model, api_base)
    except MemreplayError as error:
        return Finding(f"model {model}", False, str(error), f"or ask without one: --model {EXTRACTIVE_MODEL}")
    says = "embedded reader, not a language model" if model == EXTRACTIVE_MODEL else "key found (not tried)"
    return Finding(f"model {model}", True, says)
