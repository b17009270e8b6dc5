"""``memreplay serve``: the app in a browser, for whom it is meant and nobody else."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.tui.builder import record

MOST_SECONDS = 300


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


MODULE = (sys.executable, "-m", "memreplay")
SEARCHED = {"PYTHONPATH": f"{REPOSITORY / 'app'}:{REPOSITORY}"}


@asynccontextmanager
async def serving(
    *arguments: str, token: str | None = None, program: Sequence[str] = MODULE, folder: Path | None = None
) -> AsyncIterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server in a process of its own, as soon as it listens."""
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
        aiohttp.ClientSession() as session,
    ):
        page = await (await session.get(address)).text()
        assert f'data-session-websocket-url="ws{address[4:]}/ws"' in page
        assert "http" not in page.replace(address, "").replace('rel="', "")
        await screen_of(session, address, "RECORDED")
        for headers in ({"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}):
            for path in ("/", "/ws"):
                assert (await session.get(address + path, headers=headers)).status == 403
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


async def test_elsewhere_a_token_is_exchanged_for_a_cookie() -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with serving(token="secret") as (address, _), aiohttp.ClientSession(cookie_jar=jar) as session:
        for path in ("/", "/ws", "/static/js/textual.js", "/?token=wrong"):
            assert (await session.get(address + path)).status == 401
        answer = await session.get(f"{address}/?token=secret")
        assert answer.status == 200 and "token" not in str(answer.url)
        assert "secret" not in await answer.text()
        assert (await session.get(f"{address}/static/js/textual.js")).status == 200


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--host", "0.0.0.0"), "require a token"),
        (("--", "--batch"), "--batch has no screen"),
        (("run.sqlite3",), "expected options of memreplay"),
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


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
