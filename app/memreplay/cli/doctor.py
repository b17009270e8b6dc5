"""``memreplay doctor``: check servers, models and keys; ``--clean`` removes data that runs left on servers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer

from memory_backends.base import BackendError, StoreUnavailableError
from memory_backends.stores.cleanup import RunData, find_run_data, remove_run_data
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.cli.options import ReachFlags, flags_in_groups, settings_given
from memreplay.engine.remote.backend import RemoteAgent
from memreplay.engine.remote.client import AgentError
from memreplay.errors import (
    EXIT_DONE,
    EXIT_MISSING_SERVER_OR_KEY,
    MemreplayError,
    MissingServerOrKeyError,
    UsageError,
)
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.paths import cache_folder, config_file, datasets_folder, recordings_folder
from memreplay.runtime.embedders import EMBEDDED, ensure_embedder_answers, plain_embedder
from memreplay.runtime.memories import agents_of, connections
from memreplay.settings import Settings, read_settings, without_secrets

command = typer.Typer(
    rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@command.command()
@flags_in_groups
def doctor(
    *,
    reach: ReachFlags,
    clean: Annotated[
        bool, typer.Option("--clean", help="Say what runs have left on the servers, and how to remove it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --clean: remove it.")] = False,
) -> None:
    """Say which Redis, Qdrant, embedder and model this configuration reaches, and what mends what is missing."""
    if yes and not clean:
        raise UsageError("--yes goes with --clean")
    settings = read_settings(**settings_given(reach))
    if clean:
        chosen = remove_data if yes else show_run_data
        raise typer.Exit(chosen(settings))
    raise typer.Exit(examine(settings))


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


_ASK = (
    "Nothing was removed yet. A run that is still under way would lose its memory.\n"
    "Remove all of it: the same command with --yes"
)


def show_run_data(settings: Settings) -> int:
    """Print what there is, run by run, and how to remove it.

    Raises:
        MissingServerOrKeyError: a server does not answer.
    """
    found = asyncio.run(_on_servers(settings, remove=False))
    if found.runs:
        print(_ASK)
    return EXIT_DONE


def remove_data(settings: Settings) -> int:
    """Print what there is, run by run, then remove it.

    Raises:
        MissingServerOrKeyError: a server does not answer.
    """
    removed = asyncio.run(_on_servers(settings, remove=True))
    if removed.runs:
        print(f"Removed {removed.keys.total():,} keys and {removed.points.total():,} points.")
    return EXIT_DONE


async def _on_servers(settings: Settings, *, remove: bool) -> RunData:
    redis, qdrant = connections(settings)
    try:
        await redis.check()
        await qdrant.check()
        found = await find_run_data(redis, qdrant)
        _print(found, f"Redis {redis.description}, Qdrant {qdrant.description}")
        return await remove_run_data(redis, qdrant) if remove and found.runs else found
    except StoreUnavailableError as error:
        raise MissingServerOrKeyError(str(error)) from None
    finally:
        await redis.aclose()
        await qdrant.aclose()


def _print(found: RunData, where: str) -> None:
    if not found.runs:
        print(f"{where}: no run has left anything")
        return
    print(f"{where}: left by {len(found.runs)} runs:")
    for run in found.runs:
        print(f"  {run}  {found.keys[run]:,} keys, {found.points[run]:,} points")
