"""The connection to Redis: embedded in this process, or a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from memory_backends.addresses import parse_address
from memory_backends.base import BackendError, StoreAddressError, StoreUnavailableError
from memory_backends.stores.retry import ATTEMPTS, ATTEMPTS_TO_REACH, respecting_cancellation, with_retry

if TYPE_CHECKING:
    from redis.asyncio import Redis

Answer = TypeVar("Answer")

CONNECT_SECONDS = 3.0
REPLY_SECONDS = 15.0


class RedisConnection:
    """A connection to Redis that several conversations share. Nothing is sent before the first use.

    ``description`` is ``embedded`` or ``host:port/db``: safe to show: no user, no password. ``attempts``
    bounds how often a command is tried while the server does not answer.
    """

    def __init__(self, connect: Callable[[], Redis], description: str, attempts: int = ATTEMPTS) -> None:
        self._connect = connect
        self.description = description
        self._attempts = attempts

    @cached_property
    def client(self) -> Redis:
        """The client, made at its first use: importing one takes a fifth of a second."""
        return self._connect()

    @classmethod
    def embedded(cls) -> RedisConnection:
        """An empty Redis inside this process, gone with this object."""
        return cls(_embedded_client, "embedded")

    @classmethod
    def to(cls, url: str, attempts: int = ATTEMPTS) -> RedisConnection:
        """A server at ``redis://[user:password@]host[:port][/db]``, or ``rediss://`` for TLS.

        ``?ssl_ca_certs=PATH`` names a private certificate authority.
        """
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        expected = "expected redis://[user:password@]host[:port][/db] or rediss://…"
        try:
            address = parse_address(url, ("redis", "rediss"))
            database = address.rest.partition("?")[0].strip("/") or "0"
            description = f"{address.host}:{address.port or 6379}/{int(database)}"
            client = Redis.from_url(
                address.url,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=REPLY_SECONDS,
                # If the client repeated an APPEND whose reply was lost, the text would be in the log twice: only
                # this class repeats commands, those that may be.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise StoreAddressError(f"The Redis address cannot be read: {error}; {expected}") from error
        return cls(lambda: client, description, attempts)

    async def check(self) -> None:
        """Raise :class:`StoreUnavailableError` unless the server answers and accepts our credentials."""
        if self._connect is _embedded_client:
            return
        attempts = min(self._attempts, ATTEMPTS_TO_REACH)
        await self._guarded(lambda: with_retry(self.client.ping, _may_pass, attempts))

    async def aclose(self) -> None:
        if "client" in self.__dict__:
            await self.client.aclose()

    async def read(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run a command that may be repeated without harm."""
        return await self._guarded(lambda: with_retry(call, _may_pass, self._attempts))

    async def write(self, call: Callable[[], Awaitable[Answer]], again: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run a command that must not simply be repeated.

        When the connection drops, it is unknown whether the command was carried out. Then ``again`` runs: it has
        to find out and do only what is left to do, and may itself be repeated.
        """
        return await self._guarded(lambda: self._once_then_again(call, again))

    async def _once_then_again(
        self, call: Callable[[], Awaitable[Answer]], again: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        try:
            return await call()
        except Exception as error:
            if not _may_pass(error):
                raise
        return await with_retry(again, _may_pass, self._attempts)

    async def _guarded(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        from redis.exceptions import RedisError

        try:
            return await respecting_cancellation(call())
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(f"Redis at {self.description} {_reason(error)}") from error
        except UnicodeEncodeError as error:
            raise BackendError("A text with half a surrogate pair cannot be stored as UTF-8") from error


def _embedded_client() -> Redis:
    from fakeredis import FakeAsyncRedis, FakeServer

    return FakeAsyncRedis(server=FakeServer())


def _may_pass(error: BaseException) -> bool:
    """Whether the same command could succeed a moment later."""
    from redis.exceptions import AuthenticationError, BusyLoadingError, ConnectionError, TimeoutError

    passing = (ConnectionError, TimeoutError, BusyLoadingError, OSError)
    return isinstance(error, passing) and not isinstance(error, AuthenticationError)


def _reason(error: Exception) -> str:
    """What is wrong, without secrets: a server's message names none, and the client's names only the address."""
    from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

    if isinstance(error, NoPermissionError):
        return "says that this user lacks a permission: its access list needs " + str(error).partition("'")[
            2
        ].strip("'")
    if isinstance(error, AuthenticationError) or "NOAUTH" in str(error) or "WRONGPASS" in str(error):
        return "refuses the user or password"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "has a certificate that is not trusted; name its authority with ?ssl_ca_certs=PATH"
    if isinstance(error, ResponseError):
        # A server without AUTH quotes the arguments, which hold the password.
        return f"refuses: {str(error).partition(', with args')[0]}"
    return "does not answer"
