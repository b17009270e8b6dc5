"""A proxy before an MCP server that is reached by streamable HTTP: everything passes through, tool calls are noted.

A client is pointed to the proxy instead of the server. Each message of the server is noted before it is passed on,
so that what a client was told is in the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    hdrs,
    web,
)
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from memory_backends.addresses import parse_address
from memreplay.capture.journal import Journal
from memreplay.capture.mcp_proxy import ToolCalls
from memreplay.server.app import authorize, errors_in_json, refuse_other_sites
from memreplay.server.otlp import listening

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_SESSION: Final = "Mcp-Session-Id"
_MOST_SESSIONS: Final = 1_000
"""Sessions whose calls are paired with their answers; those of the oldest count as never answered."""
_SECONDS_TO_CONNECT: Final = 30.0
_OF_ONE_CONNECTION: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
        "content-encoding",
        "accept-encoding",
    }
)


def url_of_server(text: str) -> URL:
    """Return the URL of an MCP server.

    Raises:
        ValueError: the text is none.
    """
    address = parse_address(text, ("http", "https"))
    if address.user or address.password:
        raise ValueError("a client sends its user and password itself, as a header")
    return URL(address.url, encoded=True)


class McpHttpProxy:
    """Passes requests on to a server, and its answers back."""

    def __init__(self, url: URL, journal: Journal) -> None:
        self._url = url
        self._journal = journal
        self._name = url.host_port_subcomponent or str(url)
        self._sessions: dict[str, ToolCalls] = {}
        self._client: ClientSession | None = None

    @property
    def server(self) -> str:
        """Return the URL of the server, without what follows its path."""
        return f"{self._url.origin()}{self._url.raw_path}"

    def address(self, host: str, port: int) -> str:
        """Return the URL that a client is to be given in place of the server's."""
        at = f"[{host}]" if ":" in host else host
        return f"http://{at}:{port}{self._url.raw_path}"

    def application(self, host: str) -> web.Application:
        """Return the web application, which serves only this machine."""
        checks = [errors_in_json, authorize(host, None), refuse_other_sites]
        application = web.Application(client_max_size=MAX_REQUEST_BYTES, middlewares=checks)
        application.router.add_route("*", "/{path:.*}", self._pass)
        application.on_cleanup.append(self._close)
        return application

    async def _close(self, _: web.Application) -> None:
        for calls in self._sessions.values():
            calls.ended()
        if self._client is not None:
            await self._client.close()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        if self._client is None:
            # What the server sets belongs to the client, and an answer may take as long as it takes.
            timeout = ClientTimeout(total=None, sock_connect=_SECONDS_TO_CONNECT)
            self._client = ClientSession(timeout=timeout, cookie_jar=DummyCookieJar())
        body = await request.read()
        session = request.headers.get(_SESSION)
        calls = self._calls_of(session)
        if body and request.content_type == _JSON:
            calls.sent(body)
        headers = _passed(request.headers)
        headers["Accept-Encoding"] = "identity"
        try:
            async with self._client.request(
                request.method, self._target(request), headers=headers, data=body or None, allow_redirects=False
            ) as response:
                if response.status >= 400:
                    calls.unanswered(body, f"HTTP {response.status} {response.reason or ''}".rstrip())
                return await self._answer(request, response, calls)
        except (ClientError, TimeoutError, OSError) as error:
            why = f"{self._url.origin()} cannot be reached: {error or type(error).__name__}"
            calls.unanswered(body, why)
            return web.json_response({"error": why}, status=502)
        finally:
            self._name = calls.memory
            if session is None and calls not in self._sessions.values():
                calls.ended()
            elif session is not None and request.method == hdrs.METH_DELETE:
                self._sessions.pop(session, calls).ended()

    def _target(self, request: web.Request) -> URL:
        own_query = self._url.raw_query_string if request.path == self._url.path else ""
        query = "&".join(filter(None, (own_query, request.rel_url.raw_query_string)))
        path = request.rel_url.raw_path
        return URL(f"{self._url.origin()}{path}{'?' if query else ''}{query}", encoded=True)

    def _calls_of(self, session: str | None) -> ToolCalls:
        """Return the calls of a session. Those of a request without one are its own: numbers are no session's."""
        if session is None:
            return ToolCalls(self._journal, self._name)
        if session not in self._sessions:
            self._begin(session, ToolCalls(self._journal, self._name))
        return self._sessions[session]

    def _begin(self, session: str, calls: ToolCalls) -> None:
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions))).ended()
        self._sessions[session] = calls

    async def _answer(self, request: web.Request, response: ClientResponse, calls: ToolCalls) -> web.StreamResponse:
        """Pass an answer on: one message as a whole, a stream of events as it comes."""
        begun = response.headers.get(_SESSION)
        if begun and begun not in self._sessions:
            self._begin(begun, calls)
        headers = _passed(response.headers)
        is_ok = response.status < 400
        if response.content_type == _JSON and (response.content_length or 0) <= MAX_REQUEST_BYTES:
            body = await response.read()
            if is_ok and body:
                calls.received(body)
            return web.Response(body=body, status=response.status, headers=headers)
        events = EventData(calls.received, calls.unread)
        passed = web.StreamResponse(status=response.status, headers=headers)
        await passed.prepare(request)
        try:
            async for chunk in response.content.iter_any():
                if is_ok and response.content_type == _EVENTS:
                    events.add(chunk)
                await passed.write(chunk)
            events.end()
        except (ClientError, OSError):
            # One of the two is gone. What it was told cannot be taken back, and the other sees the end.
            events.end()
        return passed


class EventData:
    """Cuts a stream of server-sent events into their data. Neither function it calls may raise."""

    def __init__(self, message: Callable[[bytes], None], unread: Callable[[], None]) -> None:
        self._message = message
        self._unread = unread
        self._rest = b""
        self._data: list[bytes] = []
        self._length = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line.removesuffix(b"\r"))
        if len(self._rest) > MAX_REQUEST_BYTES:
            self._length, self._rest = MAX_REQUEST_BYTES + 1, b""

    def _take(self, line: bytes) -> None:
        if not line:
            self.end()
        elif line.startswith(b"data:"):
            self._length += len(line)
            if self._length <= MAX_REQUEST_BYTES:
                self._data.append(line.removeprefix(b"data:").removeprefix(b" "))

    def end(self) -> None:
        """End an event."""
        data, self._data = b"\n".join(self._data), []
        is_too_long, self._length = self._length > MAX_REQUEST_BYTES, 0
        if is_too_long:
            self._unread()
        elif data.strip():
            self._message(data)


def _passed(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Return the headers that are not of one connection alone."""
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    return CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if name.lower() not in _OF_ONE_CONNECTION and name.lower() not in named
    )


async def serve_mcp(proxy: McpHttpProxy, host: str, port: int) -> None:
    """Pass on until interrupted.

    Raises:
        OSError: the address is in use.
    """
    async with listening(proxy.application(host), host, port) as stop:
        await stop.wait()
