"""The app in a browser: every connection runs a process of its own, through textual-serve.

Who reaches the app can read files and spend money on models as the user who serves it. So every browser has to name
a token, which is exchanged for a cookie that no page of another site sends along; requests that come from such a
page, or name a foreign host, are refused, and no page may show the app in a frame.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from typing import Any, Final

from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from memreplay.errors import UsageError
from memreplay.server.app import address_of, is_loopback

MAX_SESSIONS: Final = 8
"""Apps that run at once."""
LONGEST_INPUT: Final = 64 * 1024
"""Characters of one paste. The app reads its input key by key."""
MAX_MESSAGE_BYTES: Final = 8 * 1024 * 1024
SECONDS_TO_STOP: Final = 1.0
"""An app that does not end by itself within them is killed."""
SHORTEST_TOKEN: Final = 16

_LARGEST_SIDE = 1000
"""Columns or rows of a terminal."""
_BELL = b"\a"
_HEADERS: Final = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_TEMPLATES = Path(__file__).parent / "templates"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScreenServer(Server):
    """Serves ``memreplay ARGUMENTS`` to browsers that name the token. Without a ``token``, one is made.

    Raises:
        UsageError: the token is too short.
    """

    def __init__(
        self, arguments: Sequence[str], host: str, port: int, token: str | None, say: Callable[[str], None]
    ) -> None:
        if token is not None and len(token) < SHORTEST_TOKEN:
            raise UsageError(
                f"a token needs at least {SHORTEST_TOKEN} characters; leave it out, and one is made and shown"
            )
        # -P: the current folder may hold a module of any name.
        self._program = [sys.executable, "-P", "-m", "memreplay", *arguments]
        super().__init__("memreplay", host, port, title="memreplay", templates_path=_TEMPLATES)
        self._is_made = token is None
        self._token = token or token_urlsafe(24)
        self._cookie = f"memreplay_token_{port}"
        self._say = say
        self._sessions: dict[AppProcess, web.WebSocketResponse] = {}

    def run(self) -> None:
        """Serve until interrupted.

        Raises:
            UsageError: the address cannot be listened on.
        """
        with suppress(KeyboardInterrupt):
            asyncio.run(self._run())

    async def _run(self) -> None:
        stop = asyncio.Event()
        with suppress(NotImplementedError):  # on Windows, ctrl+c cancels this instead
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        runner = web.AppRunner(
            await self._make_app(), access_log=None, handle_signals=False, shutdown_timeout=SECONDS_TO_STOP / 2
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self.host, self.port).start()
            shown = f"[{self.host}]" if ":" in self.host else self.host
            token = self._token if self._is_made else "…, with your token"
            self._say(f"memreplay is at http://{shown}:{self.port}/?token={token} ; ctrl+c stops it")
            await stop.wait()
        except OSError as error:
            raise UsageError(f"cannot listen on {self.host}:{self.port}: {error.strerror or error}") from None
        finally:
            await runner.cleanup()

    def initialize_logging(self) -> None:
        """Do nothing: the library would log to standard output."""

    async def on_startup(self, app: web.Application) -> None:
        """Do nothing: the library would print its logo."""

    async def on_shutdown(self, app: web.Application) -> None:
        """End all apps, and tell their pages."""
        open_now = list(self._sessions.items())
        ends = [session.end() for session, _ in open_now]
        closes = [asyncio.wait_for(socket.close(), SECONDS_TO_STOP) for _, socket in open_now]
        await asyncio.gather(*ends, *closes, return_exceptions=True)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._admit)
        app.on_response_prepare.append(_add_headers)
        return app

    async def handle_index(self, request: web.Request) -> Any:
        """Return the page of the terminal, which connects to the host that it came from."""
        self.public_url = f"{request.scheme}://{request.host}"
        return await super().handle_index(request)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an app until either side ends the connection."""
        if len(self._sessions) >= MAX_SESSIONS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_SESSIONS} sessions are open; close the tab of one")
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=MAX_MESSAGE_BYTES)
        session = AppProcess(
            self._program,
            self.command,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=socket.close,
            download_manager=self.download_manager,
        )
        self._sessions[session] = socket
        try:
            await socket.prepare(request)
            await session.start(_side(request.query.get("width"), 80), _side(request.query.get("height"), 24))
            async for message in socket:
                if message.type == WSMsgType.TEXT and not await _passed_on(message.data, session, socket):
                    await socket.close(code=1008, message=b"malformed message")
        except ConnectionError:
            pass  # the browser has left
        finally:
            await asyncio.shield(session.end())
            self._sessions.pop(session, None)
        return socket

    @web.middleware
    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        named = address_of(f"//{request.host}").hostname
        if named is None:
            raise web.HTTPBadRequest(text="the Host header names no host")
        origin = request.headers.get("Origin")
        if origin is not None:
            if not (netloc := address_of(origin).netloc) and origin != "null":
                raise web.HTTPBadRequest(text="the Origin header names no site")
            if netloc != request.host:
                raise web.HTTPForbidden(text="this page may not use memreplay")
        if self._is_made and is_loopback(self.host) and not is_loopback(named):
            raise web.HTTPForbidden(text="only this machine is served; a token of yours allows other names")
        if self._is_token(request.query.get("token", "")):
            answer = web.HTTPFound(request.path)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict")
            return answer
        if not self._is_token(request.cookies.get(self._cookie, "")):
            raise web.HTTPUnauthorized(text="a token is needed: open the link that memreplay serve has printed")
        return await handler(request)

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode("utf-8", "surrogateescape"), self._token.encode())


class AppProcess(AppService):
    """One app, in a process group of its own."""

    def __init__(self, program: Sequence[str], command: str, **parts: Any) -> None:
        super().__init__(command, **parts)
        self._program = program

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start the program itself: a shell in between would keep it from being ended."""
        self._process = process = await asyncio.create_subprocess_exec(
            *self._program,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width=width, height=height),
            start_new_session=True,
        )
        self._stdin = process.stdin
        return process

    async def end(self) -> None:
        """Ask the app to end; kill it, and what it started, if it does not."""
        with suppress(TimeoutError, ConnectionError, AttributeError):
            await asyncio.wait_for(self.stop(), SECONDS_TO_STOP)
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(TimeoutError):
                # The app has closed its output by then, or never will.
                await asyncio.wait_for(process.wait(), SECONDS_TO_STOP / 4)
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
            await process.wait()


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


async def _passed_on(text: str, session: AppProcess, socket: web.WebSocketResponse) -> bool:
    """Pass on a message of the page to the app. Returns whether it was one."""
    try:
        match json.loads(text):
            case ["stdin", str(data)] if len(data) > LONGEST_INPUT:
                await socket.send_bytes(_BELL)
            case ["stdin", str(data)]:
                await session.send_bytes(data.encode("utf-8", "replace"))
            case ["resize", {"width": int(width), "height": int(height)}]:
                await session.set_terminal_size(_side(width), _side(height))
            case ["ping", data]:
                await socket.send_json(["pong", data])
            case ["blur", *_]:
                await session.blur()
            case ["focus", *_]:
                await session.focus()
            case _:
                return False
    except (ValueError, RecursionError):
        return False
    return True


def _side(stated: str | int | None, usual: int = 80) -> int:
    """Return the columns or rows that a page asks for, within what a terminal may have."""
    return max(1, min(to_int(str(stated)[:10], usual), _LARGEST_SIDE))
