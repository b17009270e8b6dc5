"""The service: what it takes, what it refuses, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import ClientSession, web

from memory_backends.base import BackendError, MemoryBackend
from memory_backends.controls import ClosedBookBackend
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.cli.serve_backend import MessageReader
from memreplay.conversations.registry import load
from memreplay.engine.events import ReplayEvent, ReplyReceived
from memreplay.engine.remote.addresses import AgentAddress
from memreplay.engine.remote.backend import AgentBackend, RemoteAgent
from memreplay.engine.remote.client import AgentClient, AgentError
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.llm import AGENT_MODEL, EXTRACTIVE_MODEL
from memreplay.llm.client import LiteLLMModel
from memreplay.llm.model import Reply
from memreplay.llm.ports import ModelAnswerer
from memreplay.server.app import MAX_REQUEST_BYTES, MAX_SESSIONS, BackendServer
from memreplay.server.session import Limits
from tests.stubs.memory import TickingClock, WordEmbedder, count_words

BUDGET = 1000


class Service:
    """A served memory, with all memories it has made."""

    def __init__(self, name: str) -> None:
        self.memories: list[MemoryBackend] = []
        self._name = name
        self.resources = Resources(
            RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
        )
        self.server = BackendServer(
            name, self.make, MessageReader(LiteLLMModel(), EXTRACTIVE_MODEL, None).reply, Limits(5, BUDGET)
        )
        self.base = ""

    def make(self, used: AsyncExitStack | None = None) -> MemoryBackend:
        self.memories.append(create_backend(self._name, self.resources, {}))
        return self.memories[-1]

    async def start(self, host: str = "127.0.0.1", token: str | None = None) -> web.AppRunner:
        runner = web.AppRunner(self.server.application(host, token), shutdown_timeout=60)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner


@pytest.fixture(params=["rag"])
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    service = Service(request.param)
    runner = await service.start()
    yield service
    await runner.cleanup()


@pytest.fixture
async def http() -> AsyncIterator[ClientSession]:
    async with ClientSession() as http:
        yield http


async def told(http: ClientSession, method: str, url: str, **more: Any) -> tuple[int, Any]:
    async with http.request(method, url, **more) as response:
        return response.status, await response.json() if response.content_type == "application/json" else None


def turn(history: str, message: str) -> dict[str, str]:
    return {"history": history, "message": message}


async def test_a_runner_drives_it_turn_by_turn(service: Service, http: ClientSession) -> None:
    run_turn = f"{service.base}/run_turn"
    status, first = await told(http, "POST", run_turn, json=turn("", "I am Marta and I work at Nimbus Labs."))
    assert status == 200 and first["session"] == "default"
    history = "User: I am Marta and I work at Nimbus Labs.\nAI: Hello Marta."
    _, second = await told(http, "POST", run_turn, json=turn(history, "Where do I work?"))
    assert "Nimbus Labs" in second["reply"]
    _, state = await told(http, "GET", f"{service.base}/memory_state")
    (document,) = state["points"]["qdrant"]["goodai_ltm_full_history"].values()
    assert document["content"] == history
    assert await told(http, "GET", f"{service.base}/sessions") == (
        200,
        {"sessions": [{"session": "default", "turns": 2}]},
    )


async def test_sessions_do_not_see_each_other_and_a_copy_remembers(service: Service, http: ClientSession) -> None:
    sessions, run_turn = f"{service.base}/sessions", f"{service.base}/run_turn"
    _, one = await told(http, "POST", sessions)
    _, other = await told(http, "POST", sessions, json={})
    history = "User: I work at Nimbus Labs.\nAI: Good.\n"
    await told(http, "POST", run_turn, json=turn(history, "Hello."), params={"session": one["session"]})
    status, copy = await told(http, "POST", sessions, json={"copy_of": one["session"]})
    assert status == 201 and copy["copy_of"] == one["session"]
    replies = {}
    for name, session in {"copy": copy, "other": other}.items():
        _, answer = await told(
            http, "POST", run_turn, json=turn("", "Where do I work?"), params={"session": session["session"]}
        )
        replies[name] = answer["reply"]
    assert "Nimbus" in replies["copy"] and "Nimbus" not in replies["other"]
    assert (await told(http, "DELETE", f"{sessions}/{copy['session']}"))[0] == 204
    assert (await told(http, "DELETE", f"{sessions}/{copy['session']}"))[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "more", "status", "says"),
    [
        (
            "POST",
            "/run_turn",
            {"json": {"history": ""}},
            400,
            "message: Field required; expected {history, message}",
        ),
        ("POST", "/run_turn", {"json": {"history": "", "message": 7}}, 400, "message"),
        ("POST", "/run_turn", {"json": turn("", "x") | {"role": "user"}}, 400, "role"),
        ("POST", "/run_turn", {"data": b"{", "headers": {"Content-Type": "application/json"}}, 400, "JSON"),
        ("POST", "/run_turn", {"data": b'{"history": "", "message": ""}'}, 415, "application/json"),
        ("POST", "/run_turn", {"json": turn("", "x"), "params": {"session": "nope"}}, 404, "unknown session"),
        ("POST", "/run_turn", {"json": turn("x" * MAX_REQUEST_BYTES, "x")}, 413, "at most"),
        ("POST", "/sessions", {"json": {"copy_of": "nope"}}, 404, "unknown session"),
        ("POST", "/sessions", {"json": {"colour": "red"}}, 400, "colour"),
        ("GET", "/run_turn", {}, 405, "Method Not Allowed"),
        ("GET", "/", {}, 404, "Not Found"),
    ],
)
async def test_what_it_cannot_take_is_refused_in_a_sentence(
    service: Service, http: ClientSession, method: str, path: str, more: dict[str, Any], status: int, says: str
) -> None:
    answered, body = await told(http, method, service.base + path, **more)
    assert answered == status
    assert says in body["error"]


@pytest.mark.parametrize("service", ["closed_book"], indirect=True)
@pytest.mark.parametrize("packed", ["gzip", "deflate"])
async def test_a_body_that_cannot_be_unpacked_is_refused(
    service: Service, http: ClientSession, packed: str
) -> None:
    headers = {"Content-Encoding": packed, "Content-Type": "application/json"}
    status, said = await told(http, "POST", f"{service.base}/run_turn", data=b"garbage", headers=headers)
    assert status == 400 and "cannot be read" in said["error"]


async def test_a_turn_that_takes_too_long_ends_its_session_and_others_are_answered(http: ClientSession) -> None:
    class Slow(ClosedBookBackend):
        async def observe(self, exchange: Any) -> None:
            if "slow" in exchange.messages[0].text:
                await asyncio.sleep(600)

    server = BackendServer(
        "slow",
        lambda used: Slow(),
        MessageReader(LiteLLMModel(), EXTRACTIVE_MODEL, None).reply,
        Limits(5, BUDGET),
        turn_seconds=0.5,
    )
    runner = web.AppRunner(server.application("127.0.0.1", None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    _, made = await told(http, "POST", f"{base}/sessions", json={})
    slow = asyncio.create_task(
        told(http, "POST", f"{base}/run_turn?session={made['session']}", json=turn("User: slow\nAI: ok\n", "Hi"))
    )
    assert (await told(http, "POST", f"{base}/run_turn", json=turn("User: a\nAI: b\n", "Hi")))[0] == 200
    status, said = await slow
    assert status == 504 and "its session has ended" in said["error"]
    assert (await told(http, "GET", f"{base}/memory_state?session={made['session']}"))[0] == 404
    await runner.cleanup()


async def test_a_memory_that_computes_for_minutes_keeps_nobody_else_waiting_and_is_ended(
    http: ClientSession,
) -> None:
    ended = threading.Event()

    class Computing(ClosedBookBackend):
        async def observe(self, exchange: Any) -> None:
            if "compute" in exchange.messages[0].text:
                began = time.monotonic()
                try:
                    while time.monotonic() < began + 300:
                        pass
                finally:
                    ended.set()

    server = BackendServer(
        "computing",
        lambda used: Computing(),
        MessageReader(LiteLLMModel(), EXTRACTIVE_MODEL, None).reply,
        Limits(5, BUDGET),
        turn_seconds=3,
    )
    runner = web.AppRunner(server.application("127.0.0.1", None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    _, made = await told(http, "POST", f"{base}/sessions", json={})
    busy = f"{base}/run_turn?session={made['session']}"
    computing = asyncio.create_task(told(http, "POST", busy, json=turn("User: compute\nAI: ok\n", "Hi")))
    await asyncio.sleep(0.3)
    slowest, others = 0.0, 0
    while not computing.done() and not ended.is_set():
        began = time.monotonic()
        assert (await told(http, "POST", f"{base}/run_turn", json=turn("User: a\nAI: b\n", "Hi")))[0] == 200
        slowest, others = max(slowest, time.monotonic() - began), others + 1
    assert others >= 3 and slowest < 2  # of a machine under load
    status, said = await computing
    assert status == 504 and "its session has ended" in said["error"]
    assert ended.is_set()
    await runner.cleanup()


async def test_no_more_sessions_are_open_than_it_has_room_for(service: Service, http: ClientSession) -> None:
    made = [await told(http, "POST", f"{service.base}/sessions") for _ in range(MAX_SESSIONS + 1)]
    assert [status for status, _ in made] == [201] * MAX_SESSIONS + [429]


async def test_a_failing_memory_is_reported_and_the_service_continues(
    service: Service, http: ClientSession
) -> None:
    class Failing(ClosedBookBackend):
        async def open(self, namespace: object) -> None:
            raise BackendError("the disk is full")

    made = service.server._make
    service.server._make = lambda used: Failing()
    assert await told(http, "POST", f"{service.base}/sessions") == (500, {"error": "the disk is full"})
    service.server._make = made
    assert (await told(http, "POST", f"{service.base}/sessions"))[0] == 201


async def test_with_a_token_only_those_who_have_it_are_let_in(http: ClientSession) -> None:
    service = Service("closed_book")
    runner = await service.start("0.0.0.0", "s3cret")
    health = f"{service.base}/health"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
        assert await told(http, "GET", health, headers=headers) == (401, {"error": "a bearer token is needed"})
    status, body = await told(http, "GET", health, headers={"Authorization": "Bearer s3cret", "Host": "any.where"})
    assert (status, body["status"], body["backend"]) == (200, "ok", "closed_book")
    await AgentClient(AgentAddress.read(f"{service.base}/run_turn"), "s3cret").check()
    with pytest.raises(AgentError, match="refuses the token"):
        await AgentClient(AgentAddress.read(f"{service.base}/run_turn"), None).check()
    await runner.cleanup()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
async def test_without_one_a_name_that_is_not_this_machines_is_not_answered(
    service: Service, http: ClientSession, host: str
) -> None:
    status, _ = await told(http, "GET", f"{service.base}/health", headers={"Host": host})
    assert status in (400, 403)


async def test_it_stops_after_the_turn_under_way_and_closes_its_memories(http: ClientSession) -> None:
    service, reached, go_on = Service("hybrid"), asyncio.Event(), asyncio.Event()

    async def slowly(context: str, message: str) -> Reply:
        reached.set()
        await go_on.wait()
        return Reply(text="Done.")

    service.server._reader = slowly
    runner = await service.start()
    under_way = asyncio.create_task(
        told(http, "POST", f"{service.base}/run_turn", json=turn("User: Hi\nAI: Hello\n", "I am Ann."))
    )
    await reached.wait()
    stopping = asyncio.create_task(runner.cleanup())
    go_on.set()
    assert (await under_way)[0] == 200
    await stopping
    redis = service.resources.redis.client
    (key,) = await redis.keys("shared_state:*")
    assert json.loads(await redis.get(key) or "{}")["status"] == "cancelled"


@pytest.mark.parametrize("service", ["rag", "full_context", "hybrid"], indirect=True)
async def test_served_and_asked_over_http_it_answers_as_it_does_at_home(service: Service) -> None:
    """The whole circle: our own client, our own service, and the same memory played to directly."""
    conversation = next(iter(load(["identity-01"])))
    name = service._name
    events: list[ReplayEvent] = []
    line = RemoteAgent(AgentClient(AgentAddress.read(f"{service.base}/run_turn"), None))
    backends = {"home": service.make(), "remote": AgentBackend("remote", line)}
    answerer = ModelAnswerer(LiteLLMModel(), None, BUDGET)
    plan = ReplayPlan(run_id="run", models=(EXTRACTIVE_MODEL,), top_k=5)
    session = ReplaySession(conversation, backends, answerer, plan, events.append)
    await session.open()
    await session.play()
    texts: dict[str, list[str | None]] = {"home": [], "remote": []}
    for ask in session.asks():
        await session.ask(ask.question, ask.backend, ask.model)
    for event in events:
        if isinstance(event, ReplyReceived):
            texts[event.backend].append(event.reply.text)
            assert event.reply.earlier_questions == 0
            assert event.model == (AGENT_MODEL if event.backend == "remote" else EXTRACTIVE_MODEL)
    assert texts["remote"] == texts["home"], name
    assert len(texts["home"]) == len(conversation.questions)
    await session.close("resolved")
    await line.client.aclose()
    assert not service.server._sessions
