"""The operating memory: Redis, embedded or a real server, every command traced with what it changed.

States are JSON strings under one key each; the log of a conversation is a plain string.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar
from uuid import uuid4
from zlib import crc32

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from memory_backends.addresses import parse_address
from memory_backends.base import BackendError, StoreAddressError, StoreLostError, StoreUnavailableError
from memory_backends.records import Record
from memory_backends.stores.retry import PATIENCE_TO_REACH, Contact, respecting_cancellation
from memory_backends.stores.trace import (
    AppendChange,
    Change,
    ExpireChange,
    MemoryTrace,
    PatchChange,
    PublishChange,
    ReadChange,
    RemoveChange,
    WriteChange,
    patch_between,
)

if TYPE_CHECKING:
    from redis.asyncio import Redis

Answer = TypeVar("Answer")

PREFIXES = ("personal_state:", "shared_state:", "full_history:")
"""Prefixes of the keys in the data dictionary."""

CONNECT_SECONDS = 3.0

_SECONDS_TO_MEET = 1.0
_TLS_ALERT = b"\x15"
"""The first byte with which a server that speaks TLS answers anything else."""

_PROBE_SECONDS = 60
_LEASE = "memreplay:live:"
_PAGE = 1000
_NEARLY_FULL = 0.9

REPLY_SECONDS = 15.0


class RedisConnection:
    """A connection to Redis that several conversations share. Nothing is sent before the first use.

    ``description`` is ``embedded`` or ``host:port/db``: safe to show: no user, no password. ``patience`` is how
    long a server may stay silent before it is given up, in seconds.
    """

    def __init__(
        self,
        connect: Callable[[], Redis],
        description: str,
        patience: float | None = None,
        endpoint: tuple[str, int, bool] | None = None,
    ) -> None:
        """``endpoint`` is host, port, and whether TLS is spoken; None for an embedded one."""
        self._endpoint = endpoint
        self._connect = connect
        self.description = description
        self._contact = Contact(patience, REPLY_SECONDS)

    @cached_property
    def client(self) -> Redis:
        """Return the client, made at its first use: importing one takes a fifth of a second."""
        return self._connect()

    @classmethod
    def embedded(cls) -> RedisConnection:
        """Return an empty Redis inside this process, gone with this object."""
        return cls(_embedded_client, "embedded")

    @classmethod
    def to(cls, url: str, patience: float | None = None) -> RedisConnection:
        """Return a server at ``redis://[user:password@]host[:port][/db]``, or ``rediss://`` for TLS.

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
        endpoint = (address.host, address.port or 6379, url.startswith("rediss:"))
        return cls(lambda: client, description, patience, endpoint)

    @property
    def is_shared(self) -> bool:
        """Return whether this is a server, which others may use too."""
        return self._connect is not _embedded_client

    @property
    def waited_for(self) -> str:
        """Return that calls have waited for this server, and how long; empty while that is not long."""
        silence = self._contact.silence
        return f"Redis at {self.description} (no answer for {silence:.0f} s)" if silence else ""

    async def check(self) -> None:
        """Raise :class:`StoreUnavailableError` unless the server answers, and this user may do all that a run does.

        Every command is tried on a key of its own, under a prefix of ours: access lists also name keys.
        """
        if not self.is_shared:
            return
        try:
            await self._check_answers()
        except StoreUnavailableError:
            raise
        except BackendError as error:  # of one command, which a run needs
            raise StoreUnavailableError(str(error)) from error

    async def _check_answers(self) -> None:
        try:
            await self._guarded(self.client.ping)
        except BackendError:
            if met := await self._met():
                raise StoreUnavailableError(f"Redis at {self.description} {met}") from None
            await self._guarded(lambda: self._contact.retrying(self.client.ping, _may_pass, PATIENCE_TO_REACH))
        await self._guarded(lambda: self._contact.retrying(self._probe, _may_pass, PATIENCE_TO_REACH))

    async def _met(self) -> str | None:
        """Return what answers at the address in place of what was expected; None where that does not say."""
        assert self._endpoint is not None
        host, port, is_tls = self._endpoint
        try:
            async with asyncio.timeout(_SECONDS_TO_MEET):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    writer.write(b"GET / HTTP/1.0\r\n\r\n")
                    answer = await reader.read(16)
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return None
        if answer.startswith(b"HTTP/"):
            return "is a web server, and not Redis"
        if is_tls and answer[:1] in (b"-", b"+", b"$"):
            return "speaks no TLS: use redis:// in place of rediss://"
        if not is_tls and answer[:1] == _TLS_ALERT:
            return "speaks TLS alone: use rediss:// in place of redis://"
        return None

    async def _probe(self) -> None:
        client: Any = self.client
        name = f"probe/{uuid4().hex}"
        keys = [f"{prefix}{name}" for prefix in PREFIXES]
        try:
            for key in keys:
                await client.set(key, "memreplay", get=True)
                await client.append(key, " was here")
                if await client.getrange(key, 0, -1) != b"memreplay was here":
                    raise StoreUnavailableError(
                        f"Redis at {self.description} does not return what was written to it"
                    )
                await client.expire(key, _PROBE_SECONDS)
                async with client.pipeline() as pipeline:
                    await pipeline.watch(key)
                    await pipeline.get(key)
                    pipeline.multi()
                    # Without DEL the key cannot be removed: then it expires.
                    pipeline.set(key, "memreplay", keepttl=True)
                    await pipeline.execute()
                await client.strlen(key)
            await client.publish(f"channel:shared_state:{name}", "memreplay")
            await client.delete(*keys)
        except Exception:
            with suppress(Exception):  # what failed first is what to tell
                await client.delete(*keys)
            raise

    async def warnings(self) -> list[str]:
        """Return what may make this server lose data during a run; nothing where it does not say."""
        if not self.is_shared:
            return []
        from redis.exceptions import RedisError

        try:
            info: Mapping[str, Any] = await respecting_cancellation(self.client.info("memory"))
        except (RedisError, OSError):
            return []
        policy, most = str(info.get("maxmemory_policy", "noeviction")), int(info.get("maxmemory") or 0)
        found = []
        if most and policy != "noeviction":
            found.append(
                f"Redis at {self.description} may evict data of this run: its maxmemory-policy is {policy}"
            )
        used = int(info.get("used_memory") or 0)
        if most and used > most * _NEARLY_FULL:
            found.append(f"Redis at {self.description} uses {used:,} of {most:,} bytes (maxmemory)")
        return found

    async def hold_lease(self, run: str, seconds: int) -> None:
        """Set a key, beside those of the data dictionary, that says for so long that a run is alive."""
        await self._guarded(lambda: self.client.set(f"{_LEASE}{run}", "1", ex=seconds))

    async def release_lease(self, run: str) -> None:
        await self._guarded(lambda: self.client.delete(f"{_LEASE}{run}"))

    async def leases(self) -> set[str]:
        """Return ids of the runs that are alive."""
        client: Any = self.client
        runs: set[str] = set()
        cursor, begun = 0, False
        while cursor or not begun:
            begun = True
            cursor, names = await self.read(partial(client.scan, cursor, f"{_LEASE}*", _PAGE))
            runs |= {name.decode("utf-8", "replace").removeprefix(_LEASE) for name in names}
        return runs

    async def aclose(self) -> None:
        if "client" in self.__dict__:
            await self.client.aclose()

    async def read(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run a command that may be repeated without harm."""
        return await self._guarded(lambda: self._contact.retrying(call, _may_pass))

    async def write(self, call: Callable[[], Awaitable[Answer]], again: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run a command that must not simply be repeated.

        When the connection drops, it is unknown whether the command was carried out. Then ``again`` runs: it has
        to find out and do only what is left to do, and may itself be repeated.
        """
        return await self._guarded(lambda: self._once_then_again(call, again))

    async def _once_then_again(
        self, call: Callable[[], Awaitable[Answer]], again: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        is_first = True

        def attempt() -> Awaitable[Answer]:
            nonlocal is_first
            is_first, was_first = False, is_first
            return call() if was_first else again()

        return await self._contact.retrying(attempt, _may_pass)

    async def _guarded(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        from redis.exceptions import RedisError

        try:
            return await respecting_cancellation(call())
        except (RedisError, OSError) as error:
            kind = StoreUnavailableError if _is_of_the_server(error) else BackendError
            raise kind(f"Redis at {self.description} {_reason(error)}") from error
        except UnicodeEncodeError as error:
            raise BackendError("A text with half a surrogate pair cannot be stored as UTF-8") from error


def _embedded_client() -> Redis:
    from fakeredis import FakeAsyncRedis, FakeServer

    return FakeAsyncRedis(server=FakeServer())


def _may_pass(error: BaseException) -> bool:
    """Return whether the same command could succeed a moment later."""
    from redis.exceptions import AuthenticationError, BusyLoadingError, ConnectionError, TimeoutError

    passing = (ConnectionError, TimeoutError, BusyLoadingError, OSError)
    return isinstance(error, passing) and not isinstance(error, AuthenticationError)


_STATES = ("OOM", "READONLY", "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN")
"""First words of refusals that every such command would meet. The client removes some of them."""


def _is_of_the_server(error: Exception) -> bool:
    """Return whether what failed is the server, or what this user may do there, and not the command alone."""
    from redis.exceptions import (
        AuthenticationError,
        NoPermissionError,
        OutOfMemoryError,
        ReadOnlyError,
        ResponseError,
    )

    if isinstance(error, AuthenticationError | NoPermissionError | OutOfMemoryError | ReadOnlyError):
        return True
    return not isinstance(error, ResponseError) or str(error).startswith(_STATES)


def _reason(error: Exception) -> str:
    """Return what is wrong, without secrets: a server's message names none, and the client's names only the
    address.
    """
    from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

    if isinstance(error, NoPermissionError):
        return f"says that this user lacks a permission: its access list needs {_permission(str(error))}"
    if isinstance(error, AuthenticationError) or "NOAUTH" in str(error) or "WRONGPASS" in str(error):
        return "refuses the user or password"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "has a certificate that is not trusted; name its authority with ?ssl_ca_certs=PATH"
    if isinstance(error, ResponseError):
        # A server without AUTH quotes the arguments, which hold the password.
        return f"refuses: {str(error).partition(', with args')[0]}"
    return "does not answer"


def _permission(message: str) -> str:
    """Return what an access list needs, by the server's message."""
    if command := re.search(r"'([^']+)' (?:sub)?command", message):
        return f"+{command[1].lower()}"
    if "channel" in message:
        return "&channel:*"
    if "key" in message:
        return " ".join(f"~{prefix}*" for prefix in PREFIXES)
    return f"more ({message})"


__all__ = ["OperatingMemory", "RedisConnection"]

State = TypeVar("State", bound=Record)

REDIS = "redis"
"""The label of this store."""

KEYFRAME_EVERY = 64
"""Writes of one key between two whole values in the trace."""

MOST_TRIES = 32
"""Attempts at a compare-and-set before an update gives up."""

FIRST_WAIT, LONGEST_WAIT = 0.001, 0.1
"""Upper bounds of the wait in seconds, after the first lost attempt and after any."""


class _Written(NamedTuple):
    """The length in bytes and the checksum of a value; both are 0 for none."""

    length: int = 0
    checksum: int = 0

    @classmethod
    def of(cls, raw: bytes | None) -> _Written:
        return cls(len(raw), crc32(raw)) if raw else cls()

    def followed_by(self, added: bytes) -> _Written:
        return _Written(self.length + len(added), crc32(added, self.checksum))


class OperatingMemory:
    """The Redis store of one backend. Every method except ``peek*`` and ``check`` is recorded in the trace.

    After a dropped connection it retries, within bounds, and no write is lost or done twice; only a published
    message may arrive twice. One object writes a key at a time.

    It keeps a ledger of what it wrote, in this process alone, and compares it at every read and write. With
    ``others_write`` a value may be another writer's, but must exist.

    Every method may raise :class:`StoreUnavailableError` or :class:`StoreLostError`; the failed command is in the
    trace with its error.
    """

    def __init__(self, connection: RedisConnection, trace: MemoryTrace, *, others_write: bool = False) -> None:
        self._connection = connection
        self._client: Any = connection.client  # redis-py's own types differ from one release to the next
        self._trace = trace
        self._writes: Counter[str] = Counter()
        self._last_written: dict[str, bytes] = {}
        self._ledger: dict[str, _Written] = {}
        self._others_write = others_write
        trace.stores[REDIS] = self

    async def check(self) -> None:
        """Compare every value with what was written, in one round trip. Nothing can be lost in this process."""
        keys = [key for key, written in self._ledger.items() if written.length]
        if not keys or not self._connection.is_shared:
            return

        async def values() -> list[bytes | None]:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.get(key)
                # One key of another type must not hide what the others hold.
                return [raw if isinstance(raw, bytes) else None for raw in await pipeline.execute(False)]

        for key, raw in zip(keys, await self._connection.read(values), strict=True):
            if problem := self._problem(key, raw):
                raise StoreLostError(problem)

    async def read_text(self, key: str) -> str | None:
        """Return the text at ``key``."""
        raw, ms = await self._timed("GET", key, lambda: self._client.get(key))
        self._compare("GET", key, raw, ms)
        self._note("GET", key, _read(raw), ms)
        return None if raw is None else _text(raw)

    async def read_state(self, key: str, kind: type[State]) -> State | None:
        """Return the state at ``key``; None if there is none, or if the value is not a ``kind``."""
        raw, ms = await self._timed("GET", key, lambda: self._client.get(key))
        self._compare("GET", key, raw, ms)
        state, error = None, None
        if raw is not None:
            try:
                state = kind.model_validate_json(raw)
            except ValidationError as invalid:
                error = f"The value of {key} is not a {kind.__name__} ({invalid.error_count()} errors)"
        self._note("GET", key, _read(raw), ms, error)
        return state

    async def write_state(self, key: str, state: Record) -> None:
        """Write a state, whatever was there before."""
        text = _json(state)

        async def again() -> bytes | None:
            old: bytes | None = await self._client.set(key, text, get=True)
            return self._last_written.get(key) if old == text.encode() else old

        old, ms = await self._timed("SET", key, lambda: self._client.set(key, text, get=True), again)
        self._compare("SET", key, old, ms)
        self._note("SET", key, self._change_of_state(key, old, text), ms)

    async def compare_and_set_state(self, key: str, expected: Record | None, new: Record) -> bool:
        """Write ``new`` if ``expected`` (None: nothing) is still there. False: another writer was first."""
        from redis.exceptions import WatchError

        text = _json(new)
        wanted = None if expected is None else json.loads(_json(expected))

        async def exchange() -> tuple[bool, bytes | None]:
            try:
                async with self._client.pipeline() as pipeline:
                    await pipeline.watch(key)
                    old = await pipeline.get(key)  # immediate once a key is watched
                    if (None if old is None else _parsed(old)) != wanted:
                        return False, old
                    pipeline.multi()
                    pipeline.set(key, text)
                    await pipeline.execute()
                    return True, old
            except WatchError:
                # Somebody else wrote it, or the connection dropped: the client says the same of both.
                return await again()

        async def again() -> tuple[bool, bytes | None]:
            if await self._client.get(key) == text.encode():
                return True, None if expected is None else _json(expected).encode()
            return await exchange()

        (done, old), ms = await self._timed("SET", key, exchange, again)
        self._compare("SET", key, old, ms)
        if done:
            self._note("SET", key, self._change_of_state(key, old, text), ms)
        else:
            self._note("SET", key, None, ms, "Not written: another writer changed it first")
        return bool(done)

    async def update_state(self, key: str, kind: type[State], change: Callable[[State], State]) -> State | None:
        """Compare-and-set what ``change`` makes of the state at ``key``, again where another writer was faster.

        Returns the state as it was written; None if there is none. Raises :class:`BackendError` if every attempt
        was lost. The waits between attempts are random and grow, so that writers do not keep colliding.
        """
        for tries in range(MOST_TRIES):
            old = await self.read_state(key, kind)
            if old is None:
                return None
            new = change(old)
            if await self.compare_and_set_state(key, old, new):
                return new
            await asyncio.sleep(random.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2**tries)))
        raise BackendError(f"Other writers changed {key} {MOST_TRIES} times while it was written")

    async def append_text(self, key: str, text: str) -> int:
        """Append to the text at ``key``, which begins empty; returns the offset of ``text``, in bytes of UTF-8."""

        async def first() -> int:
            if key not in self._ledger:
                self._ledger[key] = _Written.of(await self._client.get(key))
            return int(await self._client.append(key, text))

        async def again() -> int:
            before, added = self._ledger.get(key), text.encode()
            length = int(await self._client.strlen(key))
            if before is None or length == before.length:
                return await first()
            if length == before.length + len(added) and added == await self._client.getrange(
                key, before.length, -1
            ):
                return length
            raise StoreLostError(self._lost(key, before.length, length))

        length, ms = await self._timed("APPEND", key, first, again)
        before, added = self._ledger[key], text.encode()
        if length != before.length + len(added):
            self._fail("APPEND", key, self._lost(key, before.length, length - len(added)), ms)
        self._ledger[key] = before.followed_by(added)
        self._last_written.pop(key, None)
        self._note("APPEND", key, AppendChange(offset=before.length, text=text), ms)
        return before.length

    async def publish(self, channel: str, message: Mapping[str, Any]) -> None:
        """Send ``message`` as JSON to the subscribers of a channel."""
        text = json.dumps(message, ensure_ascii=False)
        receivers, ms = await self._timed("PUBLISH", channel, lambda: self._client.publish(channel, text))
        self._note("PUBLISH", channel, PublishChange(message=dict(message), receivers=receivers), ms)

    async def expire(self, key: str, seconds: int) -> None:
        """Set a time to live. Nothing is recorded if the key does not exist."""
        set_, ms = await self._timed("EXPIRE", key, lambda: self._client.expire(key, seconds))
        if set_:
            self._note("EXPIRE", key, ExpireChange(seconds=seconds), ms)
        elif self._ledger.get(key, _Written()).length:
            self._compare("EXPIRE", key, None, ms)

    async def remove(self, *keys: str) -> int:
        """Remove keys; returns how many existed. Only these are recorded."""
        removed = 0
        for key in keys:
            count, ms = await self._timed("DEL", key, partial(self._client.delete, key))
            self._ledger[key] = _Written()
            if count:
                self._note("DEL", key, RemoveChange(count=count), ms)
                self._writes.pop(key, None)
                self._last_written.pop(key, None)
                removed += count
        return removed

    async def peek(self, key: str) -> Any | None:
        """Return the value of ``key``, untraced: parsed if it is a JSON object, else text."""
        raw = await self._peeked(key)
        if raw is None:
            return None
        parsed = _parsed(raw)
        return parsed if isinstance(parsed, dict) else _text(raw)

    async def peek_text(self, key: str) -> str | None:
        """Return the text at ``key``, untraced and never parsed: a log may look like JSON."""
        raw = await self._peeked(key)
        return None if raw is None else _text(raw)

    async def _peeked(self, key: str) -> bytes | None:
        raw: bytes | None = await self._connection.read(lambda: self._client.get(key))
        if problem := self._problem(key, raw):
            raise StoreLostError(problem)
        return raw

    def _compare(self, command: str, key: str, raw: bytes | None, ms: float) -> None:
        """Raise, and record, that the value at ``key`` is not what was written, if it is not."""
        if problem := self._problem(key, raw):
            self._fail(command, key, problem, ms)

    def _fail(self, command: str, key: str, problem: str, ms: float) -> NoReturn:
        self._note(command, key, None, ms, problem)
        raise StoreLostError(problem)

    def _problem(self, key: str, raw: bytes | None) -> str | None:
        """Return how the value at ``key`` differs from what was written, if anything is known of it."""
        written = self._ledger.get(key)
        if written is None or (self._others_write and (raw is not None or not written.length)):
            return None
        found = _Written.of(raw)
        return None if found == written else self._lost(key, written.length, found.length)

    def _lost(self, key: str, written: int, found: int) -> str:
        where = f"Redis at {self._connection.description}"
        if found < written:
            why = "evicted, flushed or written by another program"
            return f"{where} lost {written - found:,} of {written:,} bytes of {key} ({why})"
        return f"{where} holds another value of {key} than was written to it (another program writes there)"

    async def _timed(
        self,
        command: str,
        key: str,
        call: Callable[[], Awaitable[Any]],
        again: Callable[[], Awaitable[Any]] | None = None,
    ) -> tuple[Any, float]:
        """Run a command; returns its answer and the milliseconds it took. A failure is recorded and raised.

        ``again`` runs after a dropped connection instead of a plain repeat, where repeating would do harm.
        """
        started = perf_counter()
        try:
            work = self._connection.write(call, again) if again else self._connection.read(call)
            answer = await work
        except BackendError as error:
            ms = (perf_counter() - started) * 1000
            if key in self._ledger and _is_of_another_type(error):
                self._fail(command, key, self._lost(key, self._ledger[key].length, 0), ms)
            self._note(command, key, None, ms, str(error))
            if again is not None and isinstance(error, StoreUnavailableError):
                self._ledger.pop(key, None)  # nobody knows whether it was written
            raise
        return answer, (perf_counter() - started) * 1000

    def _note(self, command: str, key: str, change: Change | None, ms: float, error: str | None = None) -> None:
        self._trace.note(REDIS, command, key, change, ms, error)

    def _change_of_state(self, key: str, old: bytes | None, text: str) -> WriteChange | PatchChange:
        """Return what a SET changed, from the earlier value that Redis returned.

        If that is not what this trace last wrote, somebody else wrote in between: then the trace also gets the
        whole new value, because a fold cannot know the value that the steps start from.
        """
        self._writes[key] += 1
        foreign = old != self._last_written.get(key)
        self._last_written[key] = text.encode()
        self._ledger[key] = _Written.of(self._last_written[key])
        new = json.loads(text)
        before = None if old is None else _parsed(old)
        steps = patch_between(before, new) if isinstance(before, dict) else None
        if steps is None:
            return WriteChange(value=new)
        whole = foreign or self._writes[key] % KEYFRAME_EVERY == 0
        return PatchChange(steps=steps, keyframe=new if whole else None)


def _is_of_another_type(error: BaseException) -> bool:
    """Return whether a key holds another type of value than a text: somebody else wrote it."""
    return "WRONGTYPE" in str(error)


def _json(state: Record) -> str:
    """Return a state as it is stored: nulls written out, fields in declared order, text as UTF-8."""
    try:
        return state.model_dump_json()
    except PydanticSerializationError as error:
        raise BackendError(f"A {type(state).__name__} cannot be written as JSON: {error}") from error


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _parsed(raw: bytes) -> Any:
    """``raw`` as JSON, or as text if it is not JSON."""
    try:
        return json.loads(raw)
    except ValueError:
        return _text(raw)


def _read(raw: bytes | None) -> ReadChange:
    return ReadChange(found=raw is not None, size=len(raw or b""))
