"""``memreplay serve``: the app in a browser, for whom it is meant and nobody else."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from memreplay.server.screen import MAX_SESSIONS
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.tui.builder import record

MOST_SECONDS = 300


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


MODULE = (sys.executable, "-m", "memreplay")
TOKEN = "a-token-for-the-tests"
SEARCHED = {"PYTHONPATH": f"{REPOSITORY / 'app'}:{REPOSITORY}"}


@asynccontextmanager
async def serving(
    *arguments: str, token: str | None = None, program: Sequence[str] = MODULE, folder: Path | None = None
) -> AsyncIterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server in a process of its own, as soon as it listens. ``token`` None: :data:`TOKEN`."""
    token = TOKEN if token is None else token
    port = free_port()
    environment = os.environ | (SEARCHED if program is MODULE else {})
    environment |= {"MEMREPLAY_SERVE_TOKEN": token} if token else {}
    command = [*program, "serve", "--port", str(port), *arguments]
    with subprocess.Popen(  # noqa: ASYNC220
        command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = await asyncio.to_thread(process.stderr.readline)
        assert said.startswith(f"memreplay is at http://127.0.0.1:{port}"), said
        try:
            for _ in range(MOST_SECONDS * 10):
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    writer.close()
                    break
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.kill()


@asynccontextmanager
async def admitted(address: str, token: str = TOKEN) -> AsyncIterator[aiohttp.ClientSession]:
    """A browser that has opened the link."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        assert (await session.get(f"{address}/?token={token}")).status == 200
        yield session


async def screen_of(session: aiohttp.ClientSession, address: str, text: str) -> None:
    """Connect as the page does, and wait until the screen has shown a text."""
    async with asyncio.timeout(MOST_SECONDS), session.ws_connect(f"{address}/ws?width=100&height=30") as socket_:
        seen = ""
        async for message in socket_:
            seen += message.data.decode() if isinstance(message.data, bytes) else str(message.data)
            if text in seen:
                return
    raise AssertionError(f"{text!r} was not on the screen")


async def test_the_app_is_served_to_this_machine_and_ends_with_its_server(tmp_path: Path) -> None:
    recording = record(tmp_path / "r.sqlite3", "tiny-01")
    async with (
        serving("--", "--recording", str(recording)) as (address, server),
        admitted(address) as session,
    ):
        page = await (await session.get(address)).text()
        assert f'data-session-websocket-url="ws{address[4:]}/ws"' in page
        assert "http" not in page.replace(address, "").replace('rel="', "")
        await screen_of(session, address, "RECORDED")
        for path in ("/", "/ws"):
            foreign = {"Origin": "http://elsewhere.example"}
            assert (await session.get(address + path, headers=foreign)).status == 403
        async with asyncio.timeout(MOST_SECONDS):
            while children_of(server.pid):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        async with session.ws_connect(f"{address}/ws?width=100&height=30") as open_socket:
            await open_socket.receive_bytes()
            (app,) = children_of(server.pid)
            server.kill()
            async with asyncio.timeout(MOST_SECONDS):
                while is_alive(app):  # noqa: ASYNC110
                    await asyncio.sleep(0.2)


async def test_a_token_is_exchanged_for_a_cookie_and_no_page_may_frame_the_app() -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with serving() as (address, _), aiohttp.ClientSession(cookie_jar=jar) as session:
        for path in ("/", "/ws", "/static/js/textual.js", "/?token=wrong"):
            refused = await session.get(address + path)
            assert refused.status == 401
            assert refused.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        answer = await session.get(f"{address}/?token={TOKEN}")
        assert answer.status == 200 and "token" not in str(answer.url)
        (cookie,) = answer.history[0].headers.getall("Set-Cookie")
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert TOKEN not in await answer.text()
        assert (await session.get(f"{address}/static/js/textual.js")).status == 200


async def test_without_a_token_one_is_made_and_stands_in_the_link() -> None:
    with subprocess.Popen(  # noqa: ASYNC220
        [*MODULE, "serve", "--port", str(free_port())],
        env=os.environ | SEARCHED,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = await asyncio.to_thread(process.stderr.readline)
        link = said.split()[3]
        try:
            assert len(link.partition("?token=")[2]) >= 32
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                assert (await session.get(link)).status == 200
                assert (await session.get(link, headers={"Host": "elsewhere.example"})).status == 403
        finally:
            process.kill()


async def test_odd_hosts_origins_and_messages_are_refused_without_a_traceback(tmp_path: Path) -> None:
    recording = record(tmp_path / "r.sqlite3", "tiny-01")
    async with (
        serving("--", "--recording", str(recording)) as (address, server),
        admitted(address) as session,
    ):
        for headers in ({"Host": "["}, {"Host": "[::1"}, {"Origin": "http://["}, {"Origin": "?"}):
            assert (await session.get(address, headers=headers)).status == 400
        for origin in ("null", "http://127.0.0.1:1", "https://elsewhere.example"):
            assert (await session.get(address, headers={"Origin": origin})).status == 403
        for text in ("", "{}", "5", '["stdin"]', '["resize", {"width": "x"}]', "[" * 5000, '["what", 1]'):
            async with session.ws_connect(f"{address}/ws?width=1e9&height=-3") as socket_:
                await socket_.send_str(text)
                async with asyncio.timeout(MOST_SECONDS):
                    async for _ in socket_:
                        pass
                assert socket_.close_code == 1008, text
        server.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(server.wait, MOST_SECONDS) == 0
        assert server.stderr is not None and "Traceback" not in server.stderr.read()


async def test_sessions_are_capped_and_end_with_the_server_within_two_seconds(tmp_path: Path) -> None:
    recording = record(tmp_path / "r.sqlite3", "tiny-01")
    async with (
        serving("--", "--recording", str(recording)) as (address, server),
        admitted(address) as session,
        AsyncExitStack() as tabs,
    ):
        for _ in range(MAX_SESSIONS):
            tab = await tabs.enter_async_context(session.ws_connect(f"{address}/ws?width=80&height=24"))
        await tab.receive_bytes()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await session.ws_connect(f"{address}/ws")
        apps = children_of(server.pid)
        assert len(apps) == MAX_SESSIONS
        await tab.send_json(["stdin", "x" * 3_000_000])
        async with asyncio.timeout(MOST_SECONDS):
            while b"\a" not in await tab.receive_bytes():
                pass
        assert max(map(memory_of, apps)) < 300_000
        began = time.monotonic()
        server.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(server.wait, MOST_SECONDS) == 0
        assert time.monotonic() - began < 2 + 4  # on a busy machine
        assert not any(map(is_alive, apps))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--host", "0.0.0.0", "--token", "a"), "at least 16 characters"),
        (("--", "--batch"), "--batch has no screen"),
        (("run.sqlite3",), "expected options of memreplay"),
        (("--", "--no-such-option"), "No such option: --no-such-option"),
    ],
)
def test_what_cannot_be_served_is_one_sentence_and_exit_code_2(
    run_cli: RunCli, arguments: tuple[str, ...], says: str
) -> None:
    ran = run_cli("serve", *arguments)
    assert (ran.code, ran.out) == (2, "") and says in ran.err and "Traceback" not in ran.err


def test_a_port_in_use_is_one_sentence_and_exit_code_2(run_cli: RunCli) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        ran = run_cli("serve", "--port", port)
    assert ran.code == 2 and f"cannot listen on 127.0.0.1:{port}" in ran.err


def children_of(pid: int) -> list[int]:
    """The processes below a process that have no children: the shell in between is left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += children_of(int(entry.name)) or [int(entry.name)]
    return found


def memory_of(pid: int) -> int:
    """KiB of a process in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
