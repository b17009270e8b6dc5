"""The connection to Qdrant: embedded in this process, or a server."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from memory_backends.addresses import parse_address
from memory_backends.base import StoreAddressError, StoreUnavailableError
from memory_backends.stores.retry import ATTEMPTS, ATTEMPTS_TO_REACH, with_retry

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

Answer = TypeVar("Answer")

REPLY_SECONDS = 15

_UNREADABLE = (ValueError, AssertionError, TypeError, AttributeError, KeyError)
"""How the client fails on a reply that is not Qdrant's: no JSON, or JSON of another shape."""

_NO_QDRANT = "does not answer like Qdrant; another server may be listening there"


class QdrantConnection:
    """A connection to Qdrant that several conversations share. Nothing is sent before the first use.

    ``description`` is ``embedded`` or ``host:port``: safe to show: no key. ``attempts`` bounds how
    often a command is tried while the server does not answer.
    """

    def __init__(self, url: str | None, api_key: str | None, description: str, attempts: int = ATTEMPTS) -> None:
        self._url = url
        self._api_key = api_key
        self._shared: QdrantClient | None = None
        self.description = description
        self._attempts = attempts

    @classmethod
    def embedded(cls) -> QdrantConnection:
        """Qdrant inside this process: each namespace has one of its own, in memory."""
        return cls(None, None, "embedded")

    @classmethod
    def to(cls, url: str, api_key: str | None = None, attempts: int = ATTEMPTS) -> QdrantConnection:
        """A server at ``http://host[:port]``, or ``https://`` for TLS."""
        expected = "expected http://host[:port] or https://…"
        try:
            address = parse_address(url, ("http", "https"))
        except ValueError as error:
            raise StoreAddressError(f"The Qdrant address cannot be read: {error}; {expected}") from error
        return cls(address.url, api_key, f"{address.host}:{address.port or 6333}", attempts)

    @property
    def is_shared(self) -> bool:
        """Whether all namespaces share the same collections."""
        return self._url is not None

    def client(self) -> QdrantClient:
        """A client for one namespace: the server's, or a new and empty embedded one. Slow at first."""
        from qdrant_client import QdrantClient

        if self._url is None:
            return QdrantClient(":memory:")
        if self._shared is None:
            with warnings.catch_warnings():
                # The user decides by the address whether a key may be sent unencrypted (loopback, private network).
                warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
                self._shared = QdrantClient(
                    url=self._url, api_key=self._api_key, timeout=REPLY_SECONDS, check_compatibility=False
                )
        return self._shared

    async def check(self) -> None:
        """Raise :class:`StoreUnavailableError` unless the server answers and accepts the key."""
        if self.is_shared:
            client = await asyncio.to_thread(self.client)
            attempts = min(self._attempts, ATTEMPTS_TO_REACH)
            await self._run(lambda: asyncio.to_thread(client.get_collections), attempts)

    async def aclose(self) -> None:
        if self._shared is not None:
            await asyncio.to_thread(self._shared.close)
            self._shared = None

    async def run(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Await a call of the client, with retries: every command that we use may be repeated."""
        return await self._run(call, self._attempts)

    async def _run(self, call: Callable[[], Awaitable[Answer]], attempts: int) -> Answer:
        try:
            return await with_retry(call, _may_pass, attempts)
        except Exception as error:
            reason = _reason(error)
            if reason is None or (reason == _NO_QDRANT and not self.is_shared):
                raise
            raise StoreUnavailableError(f"Qdrant at {self.description} {reason}") from error


def is_conflict(error: Exception) -> bool:
    """Whether what was to be created exists."""
    from qdrant_client.http.exceptions import UnexpectedResponse

    return isinstance(error, UnexpectedResponse) and error.status_code == 409


def _may_pass(error: BaseException) -> bool:
    """Whether the same command could succeed a moment later."""
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, UnexpectedResponse):
        return error.status_code == 429 or (error.status_code or 0) >= 500
    return isinstance(error, ResponseHandlingException | OSError)


def _reason(error: Exception) -> str | None:
    """What is wrong with the server, without what was sent; None for an error of our own."""
    from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

    cause = error.source if isinstance(error, ResponseHandlingException) else error
    if isinstance(cause, _UNREADABLE):
        return _NO_QDRANT
    if not isinstance(error, ApiException | OSError):
        return None
    if not isinstance(error, UnexpectedResponse):
        return "does not answer"
    if error.status_code in (401, 403):
        return "refuses the key"
    return f"refuses: {error.status_code} {error.reason_phrase}"
