"""The HTTP server of a backend, for benchmark runners that drive an agent.

- ``POST /run_turn`` takes a ``BenchmarkTurnPayload`` and returns ``{"reply", "session"}``. ``?session=ID`` selects
  the conversation, otherwise the default session is used.
- ``POST /sessions`` creates an empty session, with ``{"copy_of": ID}`` a copy of another. ``GET /sessions`` lists
  them, ``DELETE /sessions/ID`` ends one.
- ``GET /memory_state`` returns the content of the stores, ``GET /health`` the server's status.

Errors are ``{"error": sentence}`` with a status code.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from hmac import compare_digest
from ipaddress import ip_address
from time import monotonic
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit
from uuid import uuid4

from aiohttp import http_exceptions, web
from aiohttp.typedefs import Handler, Middleware
from pydantic import BaseModel, ConfigDict, ValidationError

from memory_backends.base import BackendError, Namespace
from memory_backends.records import BenchmarkTurnPayload
from memreplay import __version__
from memreplay.conversations.models import LONGEST_TURN
from memreplay.server.beside import MakeMemory, MemoryBeside
from memreplay.server.session import Limits, Reader, ServedSession

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request: a history of several million tokens."""
MAX_SESSIONS: Final = 64
IDLE_SECONDS: Final = 1800.0
"""A session without a request for as long is ended when room for another is needed."""
SECONDS_TO_STOP: Final = 1.5
"""Turns in progress may take as long to end after a signal; then the process ends without them."""
TURN_SECONDS: Final = 300.0
"""A turn that takes longer ends its session."""
DEFAULT_SESSION: Final = "default"

_SENT_BY_ANY_PAGE = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
"""Content types that a web page may send to another site without asking."""

_LOGGER = logging.getLogger("memreplay.server")


class SessionRequest(BaseModel):
    """The body of ``POST /sessions``."""

    model_config = ConfigDict(extra="forbid")

    copy_of: str | None = None


class BackendServer:
    """Serves one memory architecture to any number of conversations.

    ``make`` creates a memory. Each works in a thread of its own: one that computes keeps nobody else waiting.
    """

    def __init__(
        self,
        name: str,
        make: MakeMemory,
        reader: Reader,
        limits: Limits,
        clock: Callable[[], float] = monotonic,
        turn_seconds: float = TURN_SECONDS,
    ) -> None:
        self.run_id = uuid4().hex[:12]
        self._name = name
        self._make = make
        self._reader = reader
        self._limits = limits
        self._clock = clock
        self._turn_seconds = turn_seconds
        self._sessions: dict[str, ServedSession] = {}
        self._used_at: dict[str, float] = {}
        self._open_lock = asyncio.Lock()

    def application(self, host: str, token: str | None) -> web.Application:
        """Return the web application. With a token it serves only clients that send it, else only this machine."""
        application = web.Application(
            client_max_size=MAX_REQUEST_BYTES,
            middlewares=[errors_in_json, authorize(host, token), refuse_other_sites],
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
        payload = await _parse_body(request, BenchmarkTurnPayload)
        if len(payload.message) > LONGEST_TURN:
            raise _error(
                web.HTTPRequestEntityTooLarge,
                f"a message may have at most {LONGEST_TURN:,} characters",
                max_size=LONGEST_TURN,
                actual_size=len(payload.message),
            )
        id_ = request.query.get("session", DEFAULT_SESSION)
        session = await self._session(id_)
        async with self._deadline(id_, session):
            reply = await session.run_turn(payload)
        if reply.error is not None:
            return web.json_response({"error": reply.error}, status=502)
        return web.json_response({"reply": reply.text or "", "session": id_})

    async def _memory_state(self, request: web.Request) -> web.Response:
        id_ = request.query.get("session", DEFAULT_SESSION)
        session = await self._session(id_)
        async with self._deadline(id_, session):
            snapshot = await session.snapshot()
        return web.json_response(snapshot.model_dump(mode="json"))

    async def _new_session(self, request: web.Request) -> web.Response:
        is_bare = not request.can_read_body and request.content_type not in _SENT_BY_ANY_PAGE
        body = SessionRequest() if is_bare else await _parse_body(request, SessionRequest)
        source = None if body.copy_of is None else self._existing(body.copy_of)
        id_ = uuid4().hex[:12]
        session = await self._open_session(id_)
        if source is not None:
            async with self._deadline(id_, session):
                await session.copy_from(source)
        return web.json_response({"session": id_, "copy_of": body.copy_of}, status=201)

    async def _list_sessions(self, request: web.Request) -> web.Response:
        listed = [{"session": id_, "turns": session.turns} for id_, session in self._sessions.items()]
        return web.json_response({"sessions": listed})

    async def _end_session(self, request: web.Request) -> web.Response:
        id_ = request.match_info["id"]
        session = self._existing(id_)
        self._forget(id_)
        await session.close("resolved")
        return web.Response(status=204)

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "backend": self._name, "memreplay": __version__})

    async def _session(self, id_: str) -> ServedSession:
        if id_ == DEFAULT_SESSION:
            async with self._open_lock:
                if id_ not in self._sessions:
                    return await self._open_session(id_)
        return self._existing(id_)

    @asynccontextmanager
    async def _deadline(self, id_: str, session: ServedSession) -> AsyncIterator[None]:
        """End a session in which the work takes too long."""
        try:
            async with asyncio.timeout(self._turn_seconds):
                yield
        except TimeoutError:
            # Its memory holds a part of the turn, and no client can know which.
            self._forget(id_)
            await session.close("cancelled")
            raise _error(
                web.HTTPGatewayTimeout,
                f"the turn took longer than {self._turn_seconds:g} s; its session has ended",
            ) from None

    def _existing(self, id_: str) -> ServedSession:
        if id_ not in self._sessions:
            raise _error(web.HTTPNotFound, "unknown session; POST /sessions creates one")
        self._used_at[id_] = self._clock()
        return self._sessions[id_]

    async def _open_session(self, id_: str) -> ServedSession:
        if len(self._sessions) >= MAX_SESSIONS:
            await self._end_idle()
        if len(self._sessions) >= MAX_SESSIONS:
            raise _error(web.HTTPTooManyRequests, f"{MAX_SESSIONS} sessions are open; DELETE /sessions/ID ends one")
        session = ServedSession(MemoryBeside(self._make), self._reader, self._limits)
        self._sessions[id_], self._used_at[id_] = session, self._clock()
        try:
            async with self._deadline(id_, session):
                await session.open(Namespace(run_id=self.run_id, conversation_id=id_, backend=self._name))
        except Exception:
            if self._sessions.get(id_) is session:
                self._forget(id_)
                await session.close("cancelled")
            raise
        return session

    async def _end_idle(self) -> None:
        """End the sessions that nobody has used for long."""
        oldest = self._clock() - IDLE_SECONDS
        for id_ in [id_ for id_, used in self._used_at.items() if used <= oldest]:
            session = self._sessions[id_]
            self._forget(id_)
            await session.close("cancelled")

    def _forget(self, id_: str) -> None:
        self._sessions.pop(id_, None)
        self._used_at.pop(id_, None)

    async def _close_all(self, application: web.Application) -> None:
        closed = [session.close("cancelled") for session in self._sessions.values()]
        self._sessions.clear()
        await asyncio.gather(*closed, return_exceptions=True)


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def authorize(host: str, token: str | None) -> Middleware:
    """Admit clients with the token. Without a token, admit requests to a loopback name or to ``host`` only.

    The check of the name prevents DNS rebinding: a web page in a local browser could otherwise reach the service
    under a domain that its author points to this machine.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token is not None:
            given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if not compare_digest(given, b"Bearer " + token.encode()):
                raise _error(web.HTTPUnauthorized, "a bearer token is needed")
        else:
            named = address_of(f"//{request.host}").hostname or ""
            if not is_loopback(named) and named != host:
                raise _error(web.HTTPForbidden, "without a token, only this machine is served")
        return await handler(request)

    return middleware


def address_of(url: str) -> SplitResult:
    """Return the parts of a URL; all empty where it cannot be read."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


@web.middleware
async def refuse_other_sites(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a web page of another site: a browser names it in every request that could change something."""
    origin = request.headers.get("Origin")
    if request.method not in ("GET", "HEAD") and origin is not None and address_of(origin).netloc != request.host:
        raise _error(web.HTTPForbidden, "requests from web pages of other sites are refused")
    return await handler(request)


@web.middleware
async def errors_in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error into a JSON object with one sentence."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        if error.content_type == "application/json":
            raise
        return web.json_response({"error": f"a request may have at most {MAX_REQUEST_BYTES:,} bytes"}, status=413)
    except web.HTTPException as error:
        if error.content_type == "application/json":
            raise
        return web.json_response({"error": error.reason}, status=error.status)
    except BackendError as error:
        return web.json_response({"error": str(error)}, status=500)
    except ConnectionError:
        return web.Response(status=400)  # the client has left
    except Exception as error:
        # A plug-in may raise anything; its client learns what, and the server's log stays readable.
        _LOGGER.error("%s %s failed: %s: %s", request.method, request.path, type(error).__name__, error)
        return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=500)


async def _parse_body(request: web.Request, kind: type[Any]) -> Any:
    """Parse the body of a request as ``kind``. Only JSON is accepted, which no HTML form of a web page can send."""
    if request.content_type != "application/json":
        raise _error(web.HTTPUnsupportedMediaType, "expected application/json")
    try:
        raw = await request.read()
    except (http_exceptions.BadHttpMessage, web.RequestPayloadError):
        raise _error(web.HTTPBadRequest, "the body cannot be read: it is not packed as its headers say") from None
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = "/".join(map(str, first["loc"])) or "body"
        raise _error(
            web.HTTPBadRequest, f"{place}: {first['msg']}; expected {_fields(kind.model_fields)}"
        ) from None


def _fields(fields: Mapping[str, Any]) -> str:
    return "{" + ", ".join(fields) + "}"


def _error(kind: type[web.HTTPException], sentence: str, **more: Any) -> web.HTTPException:
    return kind(text=web.json_response({"error": sentence}).text, content_type="application/json", **more)
