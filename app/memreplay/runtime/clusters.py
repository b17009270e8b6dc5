"""Where workers come from: processes of this machine, or a Dask scheduler that somebody else runs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from memory_backends.plugins import is_handed_over
from memory_backends.registry import BACKEND_NAMES, backend_class
from memreplay.conversations.models import Conversation
from memreplay.engine.remote.addresses import is_agent
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.runtime.embedders import REMOTE
from memreplay.runtime.processes import Processes
from memreplay.runtime.worker import SAFE_PATH, SAFE_PATH_OF_WORKERS, Ports
from memreplay.runtime.workers import SECONDS_TO_CONNECT, Port, Workers
from memreplay.settings import Settings

_SERVERS_OF_WORKERS = ("redis_url", "qdrant_url", "qdrant_api_key", "api_base")


_TURNS_PER_WORKER = 400
"""Turns, times memories that search, for which a process more is worth its start, which takes a second of CPU.

Measured on two cores, one process and two, in seconds: 324 such turns 10.0 and 10.3 without vectors, 4.3 and 3.9
with them; 952 turns 24.5 and 24.3, 9.7 and 7.6; 5,630 turns 75.5 and 72.9, 54 and 36.
"""

_MOST_WORKERS = 4
"""Of five conversations of LoCoMo the run's own process took 20 s of CPU, two workers 38 s together, and 68 s more
where texts were embedded first: beyond four, workers wait for the run."""


def number_of_workers(settings: Settings, conversations: Sequence[Conversation]) -> int:
    """The processes that hold the memories of a run on this machine; 1: its own.

    A given number counts. By default there are as many as there are cores, where these conversations have enough
    turns for them. There are none where workers cannot hold a memory, or where it is not ours and may count on one
    process.
    """
    if settings.workers is not None:
        return settings.workers
    memories = [name for name in settings.backend if not is_agent(name)]
    try:
        _refuse_what_workers_cannot_hold(settings)
    except UsageError:
        return 1
    if not all(name in BACKEND_NAMES and hasattr(backend_class(name), "create") for name in memories):
        return 1
    searching = sum(bool(backend_class(name).limited_by_top_k) for name in memories)
    turns = searching * sum(len(conversation.turns) for conversation in conversations)
    return max(1, min(_cores(), len(conversations), turns // _TURNS_PER_WORKER, _MOST_WORKERS))


def _cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_unusable_cluster(settings: Settings) -> None:
    """Raise UsageError for an address of another form, a memory that workers cannot have, or without Dask."""
    several = settings.workers is not None and settings.workers > 1
    if settings.cluster is not None:
        if several:
            raise UsageError("--workers starts workers here, --cluster uses those of a scheduler; use one of them")
        _number_of_local(settings.cluster)
        if find_spec("distributed") is None:
            raise UsageError("--cluster needs Dask: pip install 'memreplay[cluster]'")
    if several or settings.cluster is not None:
        _refuse_what_workers_cannot_hold(settings)


def _refuse_what_workers_cannot_hold(settings: Settings) -> None:
    for name in filter(is_handed_over, settings.backend):
        raise UsageError(
            f"{name} exists only in this process; workers need a memory that they can import: package.module:Class"
        )
    for option, name, others in (
        ("--embedder", settings.embedder, "minilm or fastembed:NAME"),
        ("--reranker", settings.reranker or "", "fastembed:NAME"),
    ):
        if name.startswith(REMOTE):
            raise UsageError(
                f"{option} {name} calls a provider, and workers call none, so that keys and rate limits stay with"
                f" the run; use {others}"
            )


def _number_of_local(cluster: str) -> int | None:
    """How many workers Dask starts here; None for those of a scheduler."""
    scheme, _, rest = cluster.partition(":")
    if scheme == "local" and rest.isdecimal() and int(rest):
        return int(rest)
    try:
        parts = urlsplit(cluster)
        if parts.scheme in ("tcp", "tls") and parts.hostname and parts.port:
            return None
    except ValueError:
        pass
    raise UsageError(f"--cluster {cluster}: expected tcp://host:8786, tls://host:8786 or local:N")


@asynccontextmanager
async def started_workers(
    settings: Settings, number: int, ports: Mapping[str, Port], names: Ports
) -> AsyncIterator[Workers]:
    """Workers of a scheduler, or a number of processes here, which end with the block.

    Raises:
        MissingServerOrKeyError: the scheduler does not answer, or has no worker.
        UsageError: a worker has other versions.
    """
    cluster = settings.cluster
    where = "here" if cluster is None else f"at {cluster}"
    async with _processes(settings, number) if cluster is None else _dask(settings, cluster) as client:
        workers = Workers(client, settings, ports, names)
        if not await workers.appear():
            raise MissingServerOrKeyError(f"no worker has started {where}")
        watching = asyncio.create_task(workers.watch())
        try:
            yield workers
        finally:
            watching.cancel()
            await asyncio.wait([watching])


@asynccontextmanager
async def _processes(settings: Settings, number: int) -> AsyncIterator[Processes]:
    processes = Processes(number, _own_servers(settings))
    try:
        try:
            await processes.ncores()
        except OSError as error:
            raise MissingServerOrKeyError(f"no process can be started for --workers: {error}") from None
        yield processes
    finally:
        await processes.close()


@asynccontextmanager
async def _dask(settings: Settings, cluster: str) -> AsyncIterator[Any]:
    """Dask's client, of a scheduler that runs somewhere or of one that is started here."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    number = _number_of_local(cluster)
    async with AsyncExitStack() as stack:
        address: Any = cluster
        if number is not None:
            # Dask starts processes with a program of its own, which must not import from the current folder.
            safe = {} if os.environ.get(SAFE_PATH) else {SAFE_PATH: SAFE_PATH_OF_WORKERS}
            stack.enter_context(_in_environment(_own_servers(settings) | safe))
            address = await stack.enter_async_context(
                LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=number,
                    threads_per_worker=1,
                    processes=True,
                    asynchronous=True,
                    dashboard_address=None,
                    # Its port for HTTP would be 8787 otherwise, which another program may have.
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    silence_logs=logging.CRITICAL,
                    preload=["memreplay.runtime.worker"],
                )
            )
        client = Client(  # type: ignore[no-untyped-call]
            address, asynchronous=True, timeout=SECONDS_TO_CONNECT, direct_to_workers=number is not None
        )
        try:
            await stack.enter_async_context(client)
        except (OSError, TimeoutError) as error:
            raise MissingServerOrKeyError(f"no Dask scheduler answers at {cluster}") from error
        yield client


def _own_servers(settings: Settings) -> dict[str, str]:
    """Addresses and keys of servers, for the environment of a process."""
    values = {f"MEMREPLAY_{name.upper()}": getattr(settings, name) for name in _SERVERS_OF_WORKERS}
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def _in_environment(added: Mapping[str, str]) -> Iterator[None]:
    """Processes that are started here inherit addresses and keys through the environment, not through Dask."""
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
