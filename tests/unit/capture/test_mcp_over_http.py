"""The proxy before an MCP server behind a URL, with the official client, and servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, web
from aiohttp.test_utils import TestClient, TestServer

from memreplay.capture.journal import Journal, JournalReader
from memreplay.capture.operations import NoteReader, Operation
from memreplay.server.mcp import EventData, McpHttpProxy, url_of_server
from tests.conftest import REPOSITORY

STUBS = REPOSITORY / "tests" / "stubs"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sqlite3"


def operations(path: Path) -> list[Operation]:
    reader = JournalReader(path)
    try:
        return list(NoteReader(path).operations(reader.after()))
    finally:
        reader.close()


def message(id_: object, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def add(id_: object, text: str) -> dict[str, Any]:
    return message(id_, name="add_memory", arguments={"text": text})


def result(id_: object, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": {"content": [{"type": "text", "text": text}]}}


@asynccontextmanager
async def proxied(handler: Handler, path: Path) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    """A client of a proxy before a server that answers with ``handler``."""
    server = web.Application()
    server.router.add_route("*", "/{path:.*}", handler)
    behind = TestServer(server)
    await behind.start_server()
    async with behind, standing_for(str(behind.make_url("/mcp?key=of-the-server")), path) as client:
        yield client


@asynccontextmanager
async def standing_for(url: str, path: Path) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    journal = Journal(path)
    try:
        application = McpHttpProxy(url_of_server(url), journal).application("127.0.0.1")
        async with TestClient(TestServer(application)) as client:
            yield client
    finally:
        journal.close()


async def test_an_answer_passes_through_unchanged_and_is_noted(path: Path):
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        asked = await request.json()
        return web.json_response(result(asked["id"], "kept"), headers={"X-Of-Server": "1"})

    async with proxied(answer, path) as client:
        response = await client.post(
            "/mcp?own=1", json=add(1, "I like tea."), headers={"Authorization": "Bearer x"}
        )
        assert (response.status, response.headers["X-Of-Server"]) == (200, "1")
        assert await response.json() == result(1, "kept")
        (operation,) = operations(path)  # noted before the client was told
    (request,) = seen
    assert (request.path, request.query_string) == ("/mcp", "key=of-the-server&own=1")
    assert request.headers["Authorization"] == "Bearer x"
    assert (operation.kind, operation.call, operation.error) == ("write", "add_memory", None)
    assert operation.items[0].text == "I like tea."


async def test_events_pass_while_they_come_and_each_is_noted(path: Path):
    seen = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for number in (1, 2):
            data = json.dumps(result(number, "kept"))
            for piece in (": hello\r\nevent: message\r\nda", f"ta: {data}\r\n\r\n"):
                await stream.write(piece.encode())
            if number == 1:
                await seen.wait()
        return stream

    both = [add(1, "I like tea."), add(2, "I ski.")]
    async with proxied(answer, path) as client, client.post("/mcp", json=both) as response:
        first = b""
        while b"}\r\n\r\n" not in first:
            first += await response.content.readany()
        assert [each.items[0].text for each in operations(path)] == ["I like tea."]
        seen.set()
        await response.read()
    assert [each.items[0].text for each in operations(path)] == ["I like tea.", "I ski."]


async def test_sessions_may_use_the_same_numbers(path: Path):
    waiting = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if asked["method"] == "initialize":
            info = {"serverInfo": {"name": "notes", "version": "1"}}
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": info}
            return web.json_response(reply, headers={"Mcp-Session-Id": asked["params"]["who"]})
        if request.headers["Mcp-Session-Id"] == "a":
            await waiting.wait()
        return web.json_response(result(asked["id"], "kept"))

    async with proxied(answer, path) as client:
        for who in ("a", "b"):
            assert (await client.post("/mcp", json=message(0, "initialize", who=who))).headers[
                "Mcp-Session-Id"
            ] == who
        slow = asyncio.create_task(client.post("/mcp", json=add(1, "of a"), headers={"Mcp-Session-Id": "a"}))
        await client.post("/mcp", json=add(1, "of b"), headers={"Mcp-Session-Id": "b"})
        waiting.set()
        await slow
    found = operations(path)
    assert [(each.memory, each.error) for each in found] == [("notes", None)] * 2
    assert sorted(each.items[0].text for each in found) == ["of a", "of b"]


async def test_what_fails_is_noted_with_its_error(path: Path):
    async def answer(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        match asked["id"]:
            case 1:
                return web.Response(status=401, text="who are you?")
            case 2:
                return web.Response(body=b"{no json", content_type="application/json")
            case 3:
                stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                await stream.prepare(request)
                await stream.write(b"data: {")
                assert request.transport is not None
                request.transport.close()
                return stream
        error = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no room"}}
        return web.json_response(error)

    async with proxied(answer, path) as client:
        assert (await client.post("/mcp", json=add(1, "a"))).status == 401
        assert await (await client.post("/mcp", json=add(2, "b"))).read() == b"{no json"
        with suppress(ClientError):
            await (await client.post("/mcp", json=add(3, "c"))).read()
        assert (await client.post("/mcp", data=b"\xff", headers={"Content-Type": "application/json"})).status == 500
        await client.post("/mcp", json=add(4, "d"))
    errors = [each.error for each in operations(path)]
    ended = "the server ended before it answered"
    assert errors == ["HTTP 401 Unauthorized", ended, ended, "no room"]


async def test_a_server_that_is_not_there_is_said_and_noted(path: Path):
    async with standing_for("http://127.0.0.1:1/mcp", path) as client:
        response = await client.post("/mcp", json=add(1, "a"))
        assert response.status == 502 and "http://127.0.0.1:1 cannot be reached" in (await response.json())["error"]
    (operation,) = operations(path)
    assert operation.error is not None and "cannot be reached" in operation.error


async def test_only_this_machine_is_served(path: Path):
    async def answer(request: web.Request) -> web.StreamResponse:
        raise AssertionError("nothing may come through")

    async with proxied(answer, path) as client:
        assert (await client.post("/mcp", json=add(1, "a"), headers={"Host": "evil.example"})).status == 403
        assert (
            await client.post("/mcp", json=add(1, "a"), headers={"Origin": "https://evil.example"})
        ).status == 403
    assert operations(path) == []


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_are_cut_wherever_a_chunk_ends(size: int):
    stream = b"data: one\n\n: comment\nid: 7\ndata: two\ndata:lines\n\ndata:\n\ndata: last"
    found: list[bytes] = []
    events = EventData(found.append, lambda: pytest.fail("nothing is too long"))
    for first in range(0, len(stream), size):
        events.add(stream[first : first + size])
    events.add(b"\n")
    events.end()
    assert found == [b"one", b"two\nlines", b"last"]


def test_an_event_that_is_too_long_is_counted():
    found: list[bytes] = []
    unread: list[int] = []
    events = EventData(found.append, lambda: unread.append(1))
    for _ in range(17):
        events.add(b"data: " + b"x" * 2**20 + b"\n")
    events.add(b"\ndata: short\n\n")
    assert (found, unread) == ([b"short"], [1])


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[str]:
    """The URL of a server of the official package."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(STUBS / "mcp_server.py"), str(tmp_path / "notes.json"), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed")
async def test_the_official_client_and_server_talk_through_it(path: Path, notes: str):
    from mcp import ClientSession
    from mcp.client import streamable_http

    connect: Any = getattr(streamable_http, "streamable_http_client", None)
    connect = connect or streamable_http.streamablehttp_client
    async with standing_for(notes, path) as client:
        url = str(client.make_url("/mcp"))
        async with connect(url) as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            await session.call_tool("add_memory", {"text": "Marta works at Nimbus Labs"})
            await session.call_tool("search_memories", {"query": "Marta", "limit": 3})
    found = operations(path)
    assert [(each.memory, each.kind, each.error) for each in found] == [
        ("notes", "write", None),
        ("notes", "read", None),
    ]
    assert [item.text for item in found[1].items] == ["Marta works at Nimbus Labs"]
