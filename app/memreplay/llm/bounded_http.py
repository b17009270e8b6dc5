"""HTTP clients for model calls, which read a reply to a limit and follow no redirect to another server.

LiteLLM takes them in place of its own: ``litellm.client_session`` and ``aclient_session`` for the providers that it
calls through OpenAI's client, an argument ``client`` for the others.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import httpx

from memreplay.llm.errors import RefusedReplyError

MAX_REPLY_BYTES = 4 * 1024 * 1024
"""The largest reply, as sent and as unpacked."""

MAX_REDIRECTS = 5

_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=256)
_PACKED = "gzip, deflate"
"""Encodings that can be unpacked piece by piece, to a limit."""


class BoundedClient(httpx.Client):
    """A client for threads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(limits=_LIMITS, **options)

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, and return its whole reply.

        Raises:
            RefusedReplyError: the reply is too large, cannot be unpacked, or redirects to another server.
            httpx.HTTPError: no reply came.
        """
        options |= {"stream": True, "follow_redirects": False}
        for _ in range(MAX_REDIRECTS):
            request.headers["Accept-Encoding"] = _PACKED
            response = super().send(request, **options)
            try:
                body = _Body(response)
                for chunk in response.iter_raw():
                    body.add(chunk)
            finally:
                response.close()
            whole = body.whole()
            if (following := _following(response)) is None:
                return whole
            request = following
        raise RefusedReplyError(f"{request.url.host} redirects more than {MAX_REDIRECTS} times")


class BoundedAsyncClient(httpx.AsyncClient):
    """A client for all event loops of the process: LiteLLM keeps one, and a connection belongs to its loop."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._options = options
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, and return its whole reply; errors are those of :meth:`BoundedClient.send`."""
        client = self._here()
        options |= {"stream": True, "follow_redirects": False}
        for _ in range(MAX_REDIRECTS):
            request.headers["Accept-Encoding"] = _PACKED
            response = await client.send(request, **options)
            try:
                body = _Body(response)
                async for chunk in response.aiter_raw():
                    body.add(chunk)
            finally:
                await response.aclose()
            whole = body.whole()
            if (following := _following(response)) is None:
                return whole
            request = following
        raise RefusedReplyError(f"{request.url.host} redirects more than {MAX_REDIRECTS} times")

    def _here(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = httpx.AsyncClient(limits=_LIMITS, **self._options)
        return self._by_loop[loop]


class _Body:
    """The body of a reply, unpacked as it comes."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks: list[bytes] = []
        self._received = self._size = 0
        packed = response.headers.get("Content-Encoding", "identity").strip().lower()
        if packed not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise RefusedReplyError(f"{self._host} packed its reply in a way that was not asked for")
        # 32: finds out by itself whether it is gzip or zlib.
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed not in ("", "identity") else None

    @property
    def _host(self) -> str:
        return self._response.request.url.host

    def add(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self._received > MAX_REPLY_BYTES:
            raise self._too_large()
        for piece in self._unpacked(chunk):
            self._size += len(piece)
            if self._size > MAX_REPLY_BYTES:
                raise self._too_large()
            self._chunks.append(piece)

    def whole(self) -> httpx.Response:
        """Return the reply with its body, as if it had been sent unpacked."""
        packed = ("content-encoding", "content-length", "transfer-encoding")
        headers = [
            (name, value) for name, value in self._response.headers.multi_items() if name.lower() not in packed
        ]
        return httpx.Response(
            self._response.status_code,
            headers=headers,
            content=b"".join(self._chunks),
            request=self._response.request,
            extensions={
                name: value for name, value in self._response.extensions.items() if name != "network_stream"
            },
        )

    def _unpacked(self, chunk: bytes) -> Iterator[bytes]:
        if self._unpacker is None:
            yield chunk
            return
        room = MAX_REPLY_BYTES - self._size + 1
        try:
            yield self._unpacker.decompress(chunk, room)
        except zlib.error:
            raise RefusedReplyError(f"the reply of {self._host} cannot be unpacked") from None

    def _too_large(self) -> RefusedReplyError:
        return RefusedReplyError(f"{self._host} sent more than {MAX_REPLY_BYTES:,} bytes")


def _following(response: httpx.Response) -> httpx.Request | None:
    """Return the request that a redirect asks for; None where the reply is none.

    Raises:
        RefusedReplyError: it names another server, or leaves HTTPS.
    """
    following = response.next_request
    if following is None:
        return None
    old, new = response.request.url, following.url
    if new.host != old.host or (old.scheme, new.scheme) == ("https", "http") or _moves_port(old, new):
        place = f"{new.scheme}://{new.netloc.decode('ascii', 'replace')}"
        raise RefusedReplyError(f"{old.host} redirects to {place}, which is not asked: nobody named that server")
    return following


def _moves_port(old: httpx.URL, new: httpx.URL) -> bool:
    return new.port != old.port and (old.scheme, new.scheme) != ("http", "https")
