"""The way to Redis: embedded in this process, or a server. Only the operating memory uses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from memory_backends.base import BackendError, StoreAddressError, StoreUnavailableError
from memory_backends.patience import patiently

if TYPE_CHECKING:
    from redis.asyncio import Redis

Answer = TypeVar("Answer")

CONNECT_SECONDS = 3.0
REPLY_SECONDS = 15.0
IDLE_SECONDS = 5.0
"""A connection unused for so long is tried with a PING before something is written through it."""


class RedisConnection:
    """A way to Redis that several conversations share. Nothing is sent before the first use.

    ``description`` is ``embedded`` or ``host:port/db``: fit to be shown, without user or password.
    """

    def __init__(self, client: Redis, description: str) -> None:
        self.client = client
        self.description = description
        self._last_used = perf_counter()

    @classmethod
    def embedded(cls) -> RedisConnection:
        """A Redis of its own inside this process, empty, gone with this object."""
        from fakeredis import FakeAsyncRedis, FakeServer

        return cls(FakeAsyncRedis(server=FakeServer()), "embedded")

    @classmethod
    def to(cls, url: str) -> RedisConnection:
        """A server at ``redis://[user:password@]host[:port][/db]``, or ``rediss://`` for TLS."""
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        expected = "expected redis://[user:password@]host[:port][/db] or rediss://…"
        try:
            parts = urlsplit(url)
            if parts.scheme not in ("redis", "rediss") or not parts.hostname:
                raise StoreAddressError(f"The Redis address is not a Redis URL; {expected}")
            database = parts.path.strip("/") or "0"
            description = f"{parts.hostname}:{parts.port or 6379}/{int(database)}"
            client = Redis.from_url(
                url,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=REPLY_SECONDS,
                # An APPEND that is repeated because its reply was lost would stand twice in the log: what may be
                # repeated is repeated here, not by the client.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise StoreAddressError(f"The Redis address cannot be read; {expected}") from error
        return cls(client, description)

    async def check(self) -> None:
        """Raise :class:`StoreUnavailableError` unless the server answers and lets us in."""
        await self.read(self.client.ping)

    async def aclose(self) -> None:
        """Hang up."""
        await self.client.aclose()

    async def read(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run a command that may be repeated, with a few retries."""
        return await self._guarded(lambda: patiently(call, _may_pass))

    async def write(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run a command that must not be repeated, over a connection that was alive a moment ago."""
        if perf_counter() - self._last_used > IDLE_SECONDS:
            await self.check()
        return await self._guarded(call)

    async def _guarded(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        from redis.exceptions import RedisError

        try:
            answer = await call()
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(f"Redis at {self.description} {_reason(error)}") from error
        except UnicodeEncodeError as error:
            raise BackendError("A text with half a surrogate pair cannot be stored as UTF-8") from error
        self._last_used = perf_counter()
        return answer


def _may_pass(error: BaseException) -> bool:
    """Whether the same command could succeed a moment later."""
    from redis.exceptions import AuthenticationError, BusyLoadingError, ConnectionError, TimeoutError

    passing = (ConnectionError, TimeoutError, BusyLoadingError, OSError)
    return isinstance(error, passing) and not isinstance(error, AuthenticationError)


def _reason(error: Exception) -> str:
    """What is wrong, in words. A server's own sentence names no secret, the client's names only the address."""
    from redis.exceptions import AuthenticationError, ResponseError

    if isinstance(error, AuthenticationError) or "NOAUTH" in str(error) or "WRONGPASS" in str(error):
        return "refuses the user or password"
    if isinstance(error, ResponseError):
        return f"refuses: {error}"
    return "does not answer"
