"""Where workers come from: processes of this machine, or a Dask scheduler that somebody else runs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

from memory_backends.plugins import is_handed_over
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.runtime.embedders import REMOTE
from memreplay.runtime.worker import Ports
from memreplay.runtime.workers import SECONDS_TO_CONNECT, Port, Workers
from memreplay.settings import Settings

_SERVERS_OF_WORKERS = ("redis_url", "qdrant_url", "qdrant_api_key", "api_base")


def workers_wanted(settings: Settings) -> bool:
    """Whether a run uses workers."""
    return settings.cluster is not None or settings.workers > 1


def refuse_unusable_cluster(settings: Settings) -> None:
    """Raise UsageError for an address of another form, a memory that workers cannot have, or without Dask."""
    if not workers_wanted(settings):
        return
    if settings.cluster is not None and settings.workers > 1:
        raise UsageError("--workers starts workers here, --cluster uses those of a scheduler; use one of them")
    _number_of_local(settings)
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
    try:
        import distributed  # noqa: F401  # only whether it is there
    except ImportError:
        raise UsageError("--workers and --cluster need Dask: pip install 'memreplay[cluster]'") from None


def _number_of_local(settings: Settings) -> int | None:
    """How many workers to start here; None for those of a scheduler."""
    if settings.cluster is None:
        return settings.workers
    scheme, _, rest = settings.cluster.partition(":")
    if scheme == "local" and rest.isdecimal() and int(rest):
        return int(rest)
    try:
        parts = urlsplit(settings.cluster)
        if parts.scheme in ("tcp", "tls") and parts.hostname and parts.port:
            return None
    except ValueError:
        pass
    raise UsageError(f"--cluster {settings.cluster}: expected tcp://host:8786, tls://host:8786 or local:N")


@asynccontextmanager
async def started_workers(settings: Settings, ports: Mapping[str, Port], names: Ports) -> AsyncIterator[Workers]:
    """Workers of a scheduler, or processes here that end with the block.

    Raises:
        MissingServerOrKeyError: the scheduler does not answer, or has no worker.
        UsageError: a worker has other versions.
    """
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    number = _number_of_local(settings)
    with nullcontext() if number is None else _own_servers_in_environment(settings):
        cluster: Any = None
        if number is not None:
            cluster = await LocalCluster(  # type: ignore[no-untyped-call]
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
        client: Any = None
        try:
            address = cluster or settings.cluster
            try:
                client = await Client(  # type: ignore[no-untyped-call]
                    address, asynchronous=True, timeout=SECONDS_TO_CONNECT, direct_to_workers=number is not None
                )
            except (OSError, TimeoutError) as error:
                raise MissingServerOrKeyError(f"no Dask scheduler answers at {settings.cluster}") from error
            workers = Workers(client, settings, ports, names)
            if not await workers.appear():
                raise MissingServerOrKeyError(f"the Dask scheduler at {settings.cluster} has no workers")
            watching = asyncio.create_task(workers.watch())
            try:
                yield workers
            finally:
                watching.cancel()
        finally:
            if client is not None:
                await client.close()
            if cluster is not None:
                await cluster.close()


@contextmanager
def _own_servers_in_environment(settings: Settings) -> Iterator[None]:
    """Processes that are started here inherit addresses and keys through the environment, not through Dask."""
    values = {f"MEMREPLAY_{name.upper()}": getattr(settings, name) for name in _SERVERS_OF_WORKERS}
    added = {name: value for name, value in values.items() if value is not None}
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
