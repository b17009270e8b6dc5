"""What a client, or a web page in the same browser, can do wrong to a served memory."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from time import monotonic
from typing import Any

import pytest
from aiohttp import ClientSession, web

from memory_backends.base import MemoryBackend
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.models import LONGEST_TURN
from memreplay.llm.model import Reply
from memreplay.server.app import IDLE_SECONDS, MAX_SESSIONS, BackendServer
from memreplay.server.session import Limits
from tests.conftest import REPOSITORY
from tests.stubs.memory import TickingClock, WordEmbedder, count_words

MOST_SECONDS_OF_OTHERS = 2.0
"""Of a machine under load; unloaded it is less than one."""


class Service:
    """A served memory whose clock stands still, and whose reader fails on request."""

    def __init__(self, memory: str = "rag") -> None:
        self.memory = memory
        self.now = 0.0
        self.resources = Resources(
            RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
        )
        self.server = BackendServer(memory, self._make, self._reply, Limits(5, 1000), clock=lambda: self.now)
        self.base = ""
        self.port = 0
        self.gate: asyncio.Event | None = None

    def _make(self, used: AsyncExitStack) -> Any:
        return create_backend(self.memory, self.resources, {})

    async def _reply(self, context: str, message: str) -> Reply:
        if self.gate is not None:
            await self.gate.wait()
        if message == "raise":
            raise RuntimeError("out of order")
        return Reply(text="yes")


@pytest.fixture
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    service = Service(getattr(request, "param", "rag"))
    runner = web.AppRunner(service.server.application("127.0.0.1", None), access_log=None, shutdown_timeout=60)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.port = runner.addresses[0][1]
    service.base = f"http://127.0.0.1:{service.port}"
    yield service
    await runner.cleanup()


@dataclass(frozen=True)
class Request:
    name: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    path: str = "/run_turn"


_JSON = {"Content-Type": "application/json"}


def _turn(message: str) -> bytes:
    return json.dumps({"history": "", "message": message}).encode()


_TURN = _turn("Hello")
_FOREIGN = {"Origin": "https://evil.example"}
REQUESTS = (
    Request("a turn", 200, _JSON, _TURN),
    Request("a session without a body", 201, path="/sessions"),
    Request("a foreign page opens a session", 403, _FOREIGN, path="/sessions"),
    Request("a foreign page sends text", 403, {**_FOREIGN, "Content-Type": "text/plain"}, b"", "/sessions"),
    Request("a sandboxed page", 403, {"Origin": "null"}, path="/sessions"),
    Request("an origin that cannot be read", 403, {"Origin": "http://[::1"}, path="/sessions"),
    Request("text in place of JSON", 415, {"Content-Type": "text/plain"}, b"x", "/sessions"),
    Request("an empty body that is called text", 415, {"Content-Type": "text/plain"}, b"", "/sessions"),
    Request("a host that cannot be read", 403, {"Host": "[::1"}, path="/sessions"),
    Request("the name of another host", 403, {"Host": "evil.example"}, path="/sessions"),
    Request("no JSON", 400, _JSON, b"{"),
    Request("a list", 400, _JSON, b"[]"),
    Request("half a surrogate pair", 400, _JSON, b'{"history": "", "message": "\\ud83d"}'),
    Request("too long a message", 413, _JSON, _turn("x" * (LONGEST_TURN + 1))),
    Request("too large a request", 413, _JSON, b" " * (17 * 1024 * 1024)),
    Request("a memory or a model that raises", 500, _JSON, b'{"history": "", "message": "raise"}'),
    Request("a session that does not exist", 404, _JSON, _TURN, "/run_turn?session=none"),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.name)
async def test_a_wrong_request_is_refused_in_one_sentence(
    service: Service, request_: Request, caplog: pytest.LogCaptureFixture
) -> None:
    url = service.base + request_.path
    async with (
        ClientSession() as http,
        http.post(
            url, data=request_.body, headers=request_.headers, skip_auto_headers=["Content-Type"]
        ) as response,
    ):
        assert response.status == request_.status, await response.text()
        said = await response.json()
    assert request_.status < 300 or list(said) == ["error"]
    assert not [record for record in caplog.records if record.exc_info], "a stack trace was logged"


async def test_idle_sessions_make_room_and_sessions_in_use_stay(service: Service) -> None:
    async with ClientSession() as http:

        async def opened() -> tuple[int, Any]:
            async with http.post(f"{service.base}/sessions") as response:
                return response.status, await response.json()

        opening = [await opened() for _ in range(MAX_SESSIONS)]
        assert (await opened())[0] == 429
        used = opening[0][1]["session"]
        service.now = IDLE_SECONDS
        async with http.post(f"{service.base}/run_turn?session={used}", data=_TURN, headers=_JSON) as response:
            assert response.status == 200
        assert (await opened())[0] == 201
        async with http.get(f"{service.base}/sessions") as response:
            left = [entry["session"] for entry in (await response.json())["sessions"]]
    assert len(left) == 2 and used in left


def _memories() -> int:
    """How many there are in this process."""
    return sum(MemoryBackend in type(each).__mro__ for each in gc.get_objects())


async def test_many_clients_at_once_are_served_or_told_to_wait(service: Service) -> None:
    before = _memories()

    async def client(http: ClientSession) -> list[int]:
        async with http.post(f"{service.base}/sessions") as response:
            statuses, session = [response.status], (await response.json()).get("session")
        if session is not None:
            url = f"{service.base}/run_turn?session={session}"
            async with http.post(url, data=_TURN, headers=_JSON) as response:
                statuses.append(response.status)
            async with http.delete(f"{service.base}/sessions/{session}") as response:
                statuses.append(response.status)
        return statuses

    held, outcomes = [], []
    async with ClientSession() as http:
        for _ in range(2):
            outcomes += await asyncio.gather(*(client(http) for _ in range(2 * MAX_SESSIONS)))
            gc.collect()
            held.append(_memories())
        async with http.get(f"{service.base}/sessions") as response:
            assert (await response.json())["sessions"] == []
    assert held[1] <= held[0] <= before, "a session that has ended leaves no memory behind"
    assert {tuple(outcome) for outcome in outcomes} <= {(201, 200, 204), (429,)}
    assert (201, 200, 204) in map(tuple, outcomes)


def test_a_server_that_is_ended_while_it_loads_ends_cleanly(tmp_path: Path) -> None:
    """In a process of its own, which takes its time: one that has loaded cannot be ended while it loads."""
    command = (sys.executable, "-m", "memreplay", "serve-backend", "full_context", "--port", "0")
    environment = {**os.environ, "OPENAI_API_KEY": "none", "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(
        (*command, "--model", "openai/stub"), stderr=subprocess.PIPE, text=True, env=environment, cwd=REPOSITORY
    ) as served:
        assert served.stderr is not None
        assert "answers at" in served.stderr.readline()
        served.send_signal(SIGTERM)
        assert served.stderr.read() == ""
        assert served.wait() == 0


async def test_a_client_that_leaves_before_its_reply_logs_no_stack_trace(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service.gate = asyncio.Event()
    head = f"POST /run_turn HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Type: application/json\r\n"
    for body, length in ((_TURN, len(_TURN)), (_TURN[:5], len(_TURN))):
        _, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(f"{head}Content-Length: {length}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.transport.abort()
    service.gate.set()
    async with (
        ClientSession() as http,
        http.post(f"{service.base}/run_turn", data=_TURN, headers=_JSON) as response,
    ):
        assert response.status == 200
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("service", ["hybrid"], indirect=True)
async def test_others_are_answered_within_a_second_while_a_very_long_turn_is_read(service: Service) -> None:
    long = "My name is Ann Smith. " * 5_000
    body = json.dumps({"history": f"User: {long}\nAI: Hello.\n", "message": long}).encode()
    waits = []
    async with ClientSession() as http:

        async def run(session: str, turn: bytes) -> None:
            url = f"{service.base}/run_turn?session={session}"
            async with http.post(url, data=turn, headers=_JSON) as response:
                assert response.status == 200

        sessions = []
        for _ in range(2):
            async with http.post(f"{service.base}/sessions") as response:
                sessions.append((await response.json())["session"])
        one = asyncio.create_task(run(sessions[0], body))
        while not one.done():
            began = monotonic()
            await run(sessions[1], _TURN)
            waits.append(monotonic() - began)
            await asyncio.sleep(0.01)
        await one
    assert len(waits) > 2 and max(waits) < MOST_SECONDS_OF_OTHERS
