"""A memory of ours as an HTTP service, for benchmark runners that drive an agent.

``POST /run_turn`` takes a ``BenchmarkTurnPayload`` and gives ``{"reply", "session"}``; ``?session=ID`` says which
conversation, else there is one for all. ``POST /sessions`` makes a fresh one, with ``{"copy_of": ID}`` one that
remembers what that does; ``GET /sessions`` lists them, ``DELETE /sessions/ID`` ends one. ``GET /memory_state``
shows the stores, ``GET /health`` that there is somebody. An error is ``{"error": sentence}`` with its status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from hmac import compare_digest
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from pydantic import BaseModel, ConfigDict, ValidationError

from memory_backends.base import BackendError, MemoryBackend, Namespace
from memory_backends.records import BenchmarkTurnPayload
from memreplay import __version__
from memreplay.server.session import Limits, Reader, ServedSession

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of a request: a history of several million tokens."""
MOST_SESSIONS: Final = 64
SECONDS_TO_STOP: Final = 10.0
DEFAULT_SESSION: Final = "default"


class SessionWanted(BaseModel):
    """What ``POST /sessions`` may say."""

    model_config = ConfigDict(extra="forbid")

    copy_of: str | None = None


class BackendServer:
    """Serves one memory architecture to any number of conversations. ``make`` gives a new memory."""

    def __init__(self, name: str, make: Callable[[], MemoryBackend], reader: Reader, limits: Limits) -> None:
        self.run_id = uuid4().hex[:12]
        self._name = name
        self._make = make
        self._reader = reader
        self._limits = limits
        self._sessions: dict[str, ServedSession] = {}
        self._opening = asyncio.Lock()

    def application(self, host: str, token: str | None) -> web.Application:
        """The service as ``host`` may serve it: with a token only to those who have it."""
        application = web.Application(
            client_max_size=MOST_BYTES, middlewares=[_told_in_json, _allowed(host, token)]
        )
        application.add_routes(
            [
                web.post("/run_turn", self._run_turn),
                web.get("/memory_state", self._memory_state),
                web.post("/sessions", self._new_session),
                web.get("/sessions", self._list_sessions),
                web.delete("/sessions/{id}", self._end_session),
                web.get("/health", self._health),
            ]
        )
        application.on_cleanup.append(self._close_all)
        return application

    async def _run_turn(self, request: web.Request) -> web.Response:
        payload = await _read(request, BenchmarkTurnPayload)
        id_ = request.query.get("session", DEFAULT_SESSION)
        session = await self._session(id_)
        reply = await session.run_turn(payload)
        if reply.error is not None:
            return web.json_response({"error": reply.error}, status=502)
        return web.json_response({"reply": reply.text or "", "session": id_})

    async def _memory_state(self, request: web.Request) -> web.Response:
        session = await self._session(request.query.get("session", DEFAULT_SESSION))
        return web.json_response((await session.snapshot()).model_dump(mode="json"))

    async def _new_session(self, request: web.Request) -> web.Response:
        wanted = await _read(request, SessionWanted) if request.can_read_body else SessionWanted()
        source = None if wanted.copy_of is None else self._known(wanted.copy_of)
        id_ = uuid4().hex[:12]
        session = await self._opened(id_)
        if source is not None:
            await session.take_over(source)
        return web.json_response({"session": id_, "copy_of": wanted.copy_of}, status=201)

    async def _list_sessions(self, request: web.Request) -> web.Response:
        listed = [{"session": id_, "turns": session.turns} for id_, session in self._sessions.items()]
        return web.json_response({"sessions": listed})

    async def _end_session(self, request: web.Request) -> web.Response:
        id_ = request.match_info["id"]
        session = self._known(id_)
        del self._sessions[id_]
        await session.close("resolved")
        return web.Response(status=204)

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "backend": self._name, "memreplay": __version__})

    async def _session(self, id_: str) -> ServedSession:
        async with self._opening:
            if id_ == DEFAULT_SESSION and id_ not in self._sessions:
                return await self._opened(id_)
        return self._known(id_)

    def _known(self, id_: str) -> ServedSession:
        if id_ not in self._sessions:
            raise _error(web.HTTPNotFound, "there is no such session; POST /sessions makes one")
        return self._sessions[id_]

    async def _opened(self, id_: str) -> ServedSession:
        if len(self._sessions) >= MOST_SESSIONS:
            raise _error(
                web.HTTPTooManyRequests, f"{MOST_SESSIONS} sessions are open; DELETE /sessions/ID ends one"
            )
        session = ServedSession(self._make(), self._reader, self._limits)
        self._sessions[id_] = session
        try:
            await session.open(Namespace(run_id=self.run_id, conversation_id=id_, backend=self._name))
        except BaseException:
            del self._sessions[id_]
            raise
        return session

    async def _close_all(self, application: web.Application) -> None:
        for session in self._sessions.values():
            await session.close("cancelled")
        self._sessions.clear()


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _allowed(host: str, token: str | None) -> Middleware:
    """Lets in who has the token. Without one, only who calls this machine by a name of its own.

    A web page that a browser on this machine shows could else talk to the service under a name that its author
    points here.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token is not None:
            given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if not compare_digest(given, b"Bearer " + token.encode()):
                raise _error(web.HTTPUnauthorized, "a bearer token is needed")
        else:
            named = urlsplit(f"//{request.host}").hostname or ""
            if not is_loopback(named) and named != host:
                raise _error(web.HTTPForbidden, "without a token, only this machine is served")
        return await handler(request)

    return middleware


@web.middleware
async def _told_in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error is a sentence in JSON."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return web.json_response({"error": f"a request has at most {MOST_BYTES:,} bytes"}, status=413)
    except web.HTTPException as error:
        if error.content_type == "application/json":
            raise
        return web.json_response({"error": error.reason}, status=error.status)
    except BackendError as error:
        return web.json_response({"error": str(error)}, status=500)


async def _read(request: web.Request, kind: type[Any]) -> Any:
    """The request's body as one of these; JSON only, which no form of a foreign web page can send."""
    if request.content_type != "application/json":
        raise _error(web.HTTPUnsupportedMediaType, "expected application/json")
    try:
        return kind.model_validate_json(await request.read())
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = "/".join(map(str, first["loc"])) or "body"
        raise _error(
            web.HTTPBadRequest, f"{place}: {first['msg']}; expected {_fields(kind.model_fields)}"
        ) from None


def _fields(fields: Mapping[str, Any]) -> str:
    return "{" + ", ".join(fields) + "}"


def _error(kind: type[web.HTTPException], sentence: str) -> web.HTTPException:
    return kind(text=web.json_response({"error": sentence}).text, content_type="application/json")
