"""The app in a browser: every connection runs a process of its own, through textual-serve.

Who reaches the app can read files and spend money on models as the user who serves it. So a page of another site
must not reach it through the browser of that user: requests that name a foreign host or come from a foreign page
are refused. Off this machine a token is needed; it is exchanged for a cookie, so that it does not stay in the
address.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from secrets import compare_digest
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

from memreplay.errors import UsageError
from memreplay.server.app import is_loopback

_COOKIE = "memreplay_token"
_TEMPLATES = Path(__file__).parent / "templates"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScreenServer(Server):
    """Serves ``memreplay ARGUMENTS`` to browsers. Without a ``token``, only to those of this machine."""

    def __init__(
        self, arguments: Sequence[str], host: str, port: int, token: str | None, say: Callable[[str], None]
    ) -> None:
        # -P: the current folder may hold a module of any name.
        command = shlex.join([sys.executable, "-P", "-m", "memreplay", *arguments])
        super().__init__(command, host, port, title="memreplay", templates_path=_TEMPLATES)
        self._token = token
        self._say = say

    def run(self) -> None:
        """Serve until interrupted.

        Raises:
            UsageError: the address cannot be listened on.
        """
        try:
            self.serve()
        except OSError as error:
            raise UsageError(f"cannot listen on {self.host}:{self.port}: {error.strerror or error}") from None

    def initialize_logging(self) -> None:
        """Do nothing: the library would log to standard output."""

    async def on_startup(self, app: web.Application) -> None:
        """Say where the app is."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        token = "/?token=…, with your token" if self._token else ""
        self._say(f"memreplay is at http://{shown}:{self.port}{token}; ctrl+c stops it")

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._admit)
        return app

    async def handle_index(self, request: web.Request) -> Any:
        """Return the page of the terminal, which connects to the host that it came from."""
        self.public_url = f"{request.scheme}://{request.host}"
        return await super().handle_index(request)

    @web.middleware
    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text="this page may not use memreplay")
        if self._token is None:
            named = urlsplit(f"//{request.host}").hostname or ""
            if not is_loopback(named):
                raise web.HTTPForbidden(text="without a token, only this machine is served")
            return await handler(request)
        if self._is_token(request.query.get("token", "")):
            answer = web.HTTPFound(request.path)
            answer.set_cookie(_COOKIE, self._token, httponly=True, samesite="Strict")
            return answer
        if not self._is_token(request.cookies.get(_COOKIE, "")):
            raise web.HTTPUnauthorized(text="a token is needed: open /?token=…")
        return await handler(request)

    def _is_token(self, given: str) -> bool:
        expected = (self._token or "").encode()
        return compare_digest(given.encode("utf-8", "surrogateescape"), expected)
