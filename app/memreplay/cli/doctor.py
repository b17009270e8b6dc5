"""``memreplay doctor``: check servers, models and keys; ``--clean`` removes data that runs left on servers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

import typer

from memory_backends.base import BackendError
from memory_backends.stores.cleanup import COLLECTIONS, RunData, find_run_data, remove_run_data
from memory_backends.stores.leases import live_runs
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.cli.options import COMMAND_OPTIONS, GivenSettings, takes_settings
from memreplay.engine.remote.backend import RemoteAgent
from memreplay.engine.remote.client import AgentError
from memreplay.errors import (
    EXIT_MISSING_SERVER_OR_KEY,
    MemreplayError,
    MissingServerOrKeyError,
    UsageError,
)
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.llm.secrets import without_secrets
from memreplay.numbers import counted
from memreplay.paths import cache_folder, datasets_folder, recordings_folder
from memreplay.project_file import project_file
from memreplay.runtime.embedders import (
    EMBEDDED,
    ensure_embedder_answers,
    ensure_reranker_answers,
    plain_embedder,
    plain_reranker,
)
from memreplay.runtime.memories import agents_of, connections
from memreplay.settings import Settings, config_path, read_settings

_NOT_REMOVED_YET = "Nothing was removed. To remove it, run the same command with --yes"

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
@takes_settings("redis_url", "qdrant_url", "embedder", "reranker", "model", "api_base", "backend")
def doctor(
    *,
    given: GivenSettings,
    clean: Annotated[
        bool, typer.Option("--clean", help="List the data that runs left on the servers, and how to remove it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --clean: remove it.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --clean: also the data of runs that are in progress.")
    ] = False,
) -> None:
    """Check which Redis, Qdrant, embedder and model this configuration reaches, and how to fix what is missing."""
    for option, was_given in (("--yes", yes), ("--force", force)):
        if was_given and not clean:
            raise UsageError(f"{option} needs --clean")
    settings = read_settings(**given)
    if clean:
        asyncio.run(_clean(settings, remove=yes, force=force))
    else:
        _examine(settings)


@dataclass(frozen=True)
class Finding:
    """The result of one check; ``fix`` says what to do if it failed."""

    subject: str
    ok: bool
    details: str
    fix: str = ""


def _examine(settings: Settings) -> None:
    """Print one line per check; exit with the code of a missing server or key if one failed."""
    findings = asyncio.run(_findings(settings))
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        print(f"{'ok     ' if finding.ok else 'MISSING'}  {finding.subject:<{width}}  {finding.details}")
        if finding.fix:
            print(f"{'':<{width + 11}}fix: {finding.fix}")
    for subject, place in (
        ("project file", project_file() or "none"),
        ("config file", config_path()),
        ("datasets", datasets_folder()),
        ("recordings", recordings_folder()),
        ("caches", cache_folder()),
    ):
        print(f"         {subject:<{width}}  {place}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(EXIT_MISSING_SERVER_OR_KEY)


async def _findings(settings: Settings) -> list[Finding]:
    redis, qdrant = connections(settings)
    findings = [
        await _server("Redis", redis, "redis-url", settings.redis_url),
        await _server("Qdrant", qdrant, "qdrant-url", settings.qdrant_url),
        await asyncio.to_thread(_embedder, settings),
    ]
    if settings.reranker is not None:
        findings.append(await asyncio.to_thread(_reranker, settings.reranker, settings.api_base))
    findings += [await _agent(name, agent) for name, agent in agents_of(settings).items()]
    for model in settings.model:
        findings.append(await asyncio.to_thread(_model, model, settings.api_base))
    return findings


async def _server(
    subject: str, connection: RedisConnection | QdrantConnection, option: str, url: str | None
) -> Finding:
    fix = f"start it, or leave out --{option} {without_secrets(url)} to use the embedded one"
    try:
        await connection.check()
        if isinstance(connection, QdrantConnection):
            await connection.check_collections(COLLECTIONS)
    except BackendError as error:
        return Finding(subject, False, str(error), fix)
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
    fix = (
        "pip install --force-reinstall memreplay"
        if settings.embedder == EMBEDDED
        else f"or use the bundled one: --embedder {EMBEDDED}"
    )
    try:
        embedder = plain_embedder(settings.embedder, settings.api_base)
        ensure_embedder_answers(settings.embedder, embedder, settings.api_base)
        vectors = embedder.embed(["a fact"])
    except (MemreplayError, BackendError, ModelUnavailableError, ImportError, OSError) as error:
        return Finding("embedder", False, str(error), fix)
    return Finding("embedder", True, f"{embedder.name}, {vectors.shape[1]} dimensions")


def _reranker(spec: str, api_base: str | None) -> Finding:
    try:
        reranker = plain_reranker(spec, api_base)
        ensure_reranker_answers(spec, reranker, api_base)
    except (MemreplayError, BackendError, ModelUnavailableError, ImportError, OSError) as error:
        return Finding("reranker", False, str(error), f"or leave out --reranker {spec}")
    return Finding("reranker", True, f"{reranker.name} scores texts")


def _model(model: str, api_base: str | None) -> Finding:
    try:
        ensure_reachable(model, api_base)
    except MemreplayError as error:
        return Finding(f"model {model}", False, str(error), f"or use the reader: --model {EXTRACTIVE_MODEL}")
    details = "embedded reader, not a language model" if model == EXTRACTIVE_MODEL else "key found (not tested)"
    return Finding(f"model {model}", True, details)


async def _clean(settings: Settings, *, remove: bool, force: bool) -> None:
    """List the data of each run, and remove it if asked to; that of a run in progress only by force."""
    redis, qdrant = connections(settings)
    try:
        await redis.check()
        await qdrant.check()
        found = await find_run_data(redis, qdrant)
        live = await live_runs(redis, qdrant) & set(found.runs)
        _print_run_data(found, live, f"Redis {redis.description}, Qdrant {qdrant.description}")
        if not found.runs:
            return
        if remove:
            removed = await remove_run_data(redis, qdrant, () if force else live)
            print(f"Removed {removed.keys.total():,} keys and {removed.points.total():,} points.")
        elif set(found.runs) - live or force:
            print(_NOT_REMOVED_YET)
        if live:
            print(_broken(live) if force else _left(live))
    except BackendError as error:
        raise MissingServerOrKeyError(str(error)) from None
    finally:
        await redis.aclose()
        await qdrant.aclose()


def _left(live: Collection[str]) -> str:
    what = "a run in progress is" if len(live) == 1 else f"{len(live)} runs in progress are"
    return f"The data of {what} left alone; --force removes it too, and breaks what is asked there"


def _broken(live: Collection[str]) -> str:
    return f"With --force this breaks what is in progress: {', '.join(sorted(live))} would lose its memory"


def _print_run_data(found: RunData, live: Collection[str], servers: str) -> None:
    if not found.runs:
        print(f"{servers}: no data of any run")
        return
    print(f"{servers}: data of {counted(len(found.runs), 'run')}:")
    for run in found.runs:
        held = f"{counted(found.keys[run], 'key')}, {counted(found.points[run], 'point')}"
        print(f"  {run}  {held}{', in progress' * (run in live)}")
