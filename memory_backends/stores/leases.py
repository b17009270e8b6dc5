"""Signs on shared servers that a run is alive, so that nobody removes its data by mistake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from memory_backends.base import BackendError
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection

LEASE_SECONDS = 300
"""Seconds after which a run that gave no sign counts as dead."""

_BEAT_SECONDS = 60.0
_SECONDS_TO_RELEASE = 3.0


class Lease:
    """The leases of the runs of this process, on those of its two stores that are servers."""

    def __init__(self, redis: RedisConnection, qdrant: QdrantConnection, warn: Callable[[str], None]) -> None:
        self._servers = [store for store in (redis, qdrant) if store.is_shared]
        self._warn = warn
        self._runs: set[str] = set()
        self._beating: asyncio.Task[None] | None = None

    def hold(self, run: str) -> None:
        """Keep the lease of a run alive from now on; without a running event loop this does nothing."""
        if run in self._runs or not self._servers:
            return
        with suppress(RuntimeError):
            loop = asyncio.get_running_loop()
            self._runs.add(run)
            if self._beating is not None:
                self._beating.cancel()
            self._beating = loop.create_task(self._beat())

    async def release(self) -> None:
        """Give up the leases of all runs; what cannot be removed expires."""
        if self._beating is None:
            return
        self._beating.cancel()
        await asyncio.wait([self._beating])
        for server in self._servers:
            with suppress(BackendError, OSError, TimeoutError):
                async with asyncio.timeout(_SECONDS_TO_RELEASE):
                    for run in self._runs:
                        await server.release_lease(run)
        self._runs.clear()

    async def _beat(self) -> None:
        warned = False
        while True:
            try:
                for run in sorted(self._runs):
                    for server in self._servers:
                        await server.hold_lease(run, LEASE_SECONDS)
            except BackendError as error:
                if not warned:
                    warned = True
                    self._warn(f"{error}: this run holds no lease there, and doctor --clean may remove its data")
            await asyncio.sleep(_BEAT_SECONDS)


async def live_runs(redis: RedisConnection, qdrant: QdrantConnection) -> set[str]:
    """Return ids of the runs that hold a lease.

    Raises:
        BackendError: a server does not answer, or refuses.
    """
    return {run for store in (redis, qdrant) if store.is_shared for run in await store.leases()}
