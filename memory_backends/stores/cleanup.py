"""Remains of runs on servers: keys under our three prefixes, and points of our namespaces.

A namespace is ``run/conversation/backend``, and a run's id is twelve hexadecimal digits: anything named otherwise
is not ours and is not touched.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memory_backends.records import KNOWLEDGE_COLLECTION, RAG_COLLECTION, VERBATIM_COLLECTION
from memory_backends.stores.qdrant import TENANT, QdrantConnection, points_of
from memory_backends.stores.redis import RedisConnection

COLLECTIONS = (RAG_COLLECTION, VERBATIM_COLLECTION, KNOWLEDGE_COLLECTION)

_NAMESPACE = r"(?P<run>[0-9a-f]{12})/.+/.+"
_KEY = re.compile(rf"(?:personal_state:[a-z_]+_agent/|shared_state:|full_history:){_NAMESPACE}", re.DOTALL)
_TENANT = re.compile(_NAMESPACE, re.DOTALL)
_PREFIXES = ("personal_state:", "shared_state:", "full_history:")
_PAGE = 1000


@dataclass
class RunData:
    """Number of keys in Redis and of points in Qdrant, by run id."""

    keys: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)

    @property
    def runs(self) -> list[str]:
        """Return ids of the runs that left something."""
        return sorted({*self.keys, *self.points})


async def find_run_data(redis: RedisConnection, qdrant: QdrantConnection) -> RunData:
    """Count what is there; change nothing.

    Raises:
        StoreUnavailableError: a server does not answer.
    """
    found = RunData()
    async for key in _keys(redis):
        found.keys[_run(_KEY, key)] += 1
    async for _, points in _points(qdrant):
        found.points.update(points.values())
    return found


async def remove_run_data(redis: RedisConnection, qdrant: QdrantConnection, kept: Collection[str] = ()) -> RunData:
    """Remove what :func:`find_run_data` counts, but that of the runs that are ``kept``; return what was removed.

    Raises:
        StoreUnavailableError: a server does not answer.
    """
    removed = RunData()
    client: Any = redis.client
    async for key in _keys(redis):
        if _run(_KEY, key) in kept:
            continue
        removed.keys[_run(_KEY, key)] += await redis.read(partial(client.delete, key))
    async for collection, found in _points(qdrant):
        points = {id_: run for id_, run in found.items() if run not in kept}
        if not points:
            continue
        await qdrant.run(
            partial(asyncio.to_thread, qdrant.client().delete, collection, points_selector=list(points))
        )
        removed.points.update(points.values())
    return removed


async def remove_namespace(redis: RedisConnection, qdrant: QdrantConnection, path: str) -> None:
    """Remove what one namespace left: the memories of questions asked by hand are of no further use.

    Raises:
        StoreUnavailableError: a server does not answer.
    """
    client: Any = redis.client
    keys = [f"full_history:{path}", f"shared_state:{path}"]
    keys += [f"personal_state:{role}_agent/{path}" for role in ("planner", "consolidation")]
    await redis.read(partial(client.delete, *keys))
    if not qdrant.is_shared:
        return
    connected = await asyncio.to_thread(qdrant.client)
    for collection in COLLECTIONS:
        if await qdrant.run(partial(asyncio.to_thread, connected.collection_exists, collection)):
            delete = partial(connected.delete, collection, points_selector=points_of(path))
            await qdrant.run(partial(asyncio.to_thread, delete))


async def _keys(redis: RedisConnection) -> AsyncIterator[str]:
    """Our keys, each once. A key whose name is not UTF-8 is not ours."""
    client: Any = redis.client
    seen: set[str] = set()
    for prefix in _PREFIXES:
        cursor, begun = 0, False
        while cursor or not begun:
            begun = True
            cursor, names = await redis.read(partial(client.scan, cursor, f"{prefix}*", _PAGE))
            for name in names:
                key = name.decode("utf-8", "replace")
                if _KEY.fullmatch(key) and key not in seen:
                    seen.add(key)
                    yield key


async def _points(qdrant: QdrantConnection) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """Yield a collection, and some of our points in it: id to run."""
    if not qdrant.is_shared:
        return
    client = await asyncio.to_thread(qdrant.client)
    for collection in COLLECTIONS:
        if not await qdrant.run(partial(asyncio.to_thread, client.collection_exists, collection)):
            continue
        offset, begun = None, False
        while offset is not None or not begun:
            begun = True
            page, offset = await qdrant.run(partial(asyncio.to_thread, _tenants, client, collection, offset))
            ours = {id_: found["run"] for id_, tenant in page if (found := _TENANT.fullmatch(tenant))}
            if ours:
                yield collection, ours


def _tenants(client: Any, collection: str, offset: Any) -> tuple[list[tuple[str, str]], Any]:
    """Return a page of points, each with the tenant it names."""
    page, following = client.scroll(
        collection, limit=_PAGE, offset=offset, with_payload=[TENANT], with_vectors=False
    )
    return [(str(point.id), str((point.payload or {}).get(TENANT, ""))) for point in page], following


def _run(pattern: re.Pattern[str], name: str) -> str:
    found = pattern.fullmatch(name)
    assert found is not None
    return found["run"]
