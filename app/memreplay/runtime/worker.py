"""What runs in a worker: memories, their stores and embedder. It calls no model and writes no recording."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter
from typing import Any

import memory_backends
import memreplay
from memory_backends.base import BackendError, Exchange, MemoryBackend, TokenCounter
from memory_backends.metering import ChatMessage, ExtractedFact, MeteredChat
from memory_backends.registry import BACKEND_NAMES, create_backend, texts_to_embed
from memory_backends.stores.trace import Extraction, ModelCall, TraceEntry
from memreplay.engine.backend_driver import ms_since
from memreplay.errors import MemreplayError
from memreplay.llm.secrets import without_secrets
from memreplay.runtime.kept_memories import identity
from memreplay.runtime.memories import resources_of
from memreplay.settings import Settings, read_settings

_SECONDS_TO_WAIT = 0.1
"""How long calls that were sent together may take until what is done goes back."""

_PACKAGES = ("pydantic", "numpy", "onnxruntime", "tokenizers", "bm25s", "PyStemmer", "qdrant-client", "fakeredis")
"""Packages whose version can change what a memory holds or returns."""


@dataclass(frozen=True)
class Asks:
    """A memory calls a model through a port of its resources. The run makes the call and sends the reply."""

    number: int
    port: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Call:
    """A method of a memory, which then counts tokens like this."""

    method: str
    arguments: tuple[Any, ...] = ()
    count_tokens: TokenCounter | None = None


@dataclass(frozen=True)
class Done:
    """A method of a memory returned after ``ms``, or failed with ``error``; ``entries`` are its trace."""

    result: Any
    entries: tuple[TraceEntry, ...]
    error: str | None
    ms: float = 0.0


@dataclass(frozen=True)
class Ports:
    """The names of the models that memories may call through the run; None where it has none."""

    extractor: str | None = None
    chat: str | None = None


def versions(backends: Sequence[str] = ()) -> dict[str, str]:
    """What must be equal on every machine: code, libraries and the memories that are no part of ours, by name."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), "memreplay": _code_digest()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found | {name: _version_of(name) for name in backends if name not in BACKEND_NAMES}


def _version_of(backend: str) -> str:
    """The code of a memory of the user's own, or why it cannot be loaded."""
    try:
        return sha256(repr(identity(backend)).encode()).hexdigest()[:12]
    except BackendError as error:
        return f"cannot be used ({error})"


def _code_digest() -> str:
    digest = sha256()
    for package in (memreplay, memory_backends):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


SAFE_PATH = "PYTHONSAFEPATH"
"""With a value that is not empty, Python does not search the current folder."""

SAFE_PATH_OF_WORKERS = "worker"
"""The value that a run gives to its workers."""


def dask_setup(worker: Any) -> None:
    """Called by Dask when a local worker starts: Ctrl-C in the terminal is for the run, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.environ.get(SAFE_PATH) == SAFE_PATH_OF_WORKERS:
        # A memory may start programs of the user's own, which may search their folder.
        del os.environ[SAFE_PATH]


class MemoryActor:
    """A host as a Dask actor, on an event loop of its own, so that slow work does not hold up Dask."""

    def __init__(self, settings: Settings, ports: Ports) -> None:
        self._host = MemoryHost(settings, ports)
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True, name="memories").start()

    async def ask(self, method: str, *arguments: Any) -> Any:
        """What a method of the host returns."""
        work = getattr(self._host, method)(*arguments)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


class MemoryHost:
    """The memories in one worker."""

    def __init__(self, settings: Settings, ports: Ports) -> None:
        self._ports = ports
        self._resources, self._files = resources_of(_with_own_servers(settings))
        self._units: dict[str, _Unit] = {}

    async def check(self) -> str | None:
        """Why the stores cannot be used from this worker, if they cannot."""
        try:
            await self._resources.redis.check()
            await self._resources.qdrant.check()
        except BackendError as error:
            return str(error)
        return None

    async def texts(self, exchanges: Sequence[Exchange], backends: Sequence[str]) -> list[str]:
        """What memories will embed of a conversation: found here, where the rules that find it are used again."""
        return await asyncio.to_thread(lambda: list(texts_to_embed(backends, exchanges)))

    async def embed(self, texts: Sequence[str]) -> None:
        """Embed texts in one batch, so that memories find the vectors cached."""
        with suppress(BackendError):
            await asyncio.to_thread(self._resources.embedder.embed, texts)

    async def create(self, unit: str, name: str) -> str | None:
        """A new memory under the id ``unit``; why it cannot be created, if it cannot."""
        try:
            self._units[unit] = self._created(name)
        except (BackendError, MemreplayError) as error:
            return str(error)
        return None

    async def call(self, unit: str, calls: Sequence[Call]) -> Asks | list[Done]:
        """Call methods of a memory, one after another: the first call of a model, or how the methods ended.

        It stops after one that failed, and once they have taken long enough for the run to wait.
        """
        return await self._units[unit].call(calls)

    async def answer(self, unit: str, number: int, reply: Any) -> Asks | list[Done]:
        """The reply of a model; then as :meth:`call`."""
        return await self._units[unit].answer(number, reply)

    async def drop(self, unit: str) -> None:
        """Forget a memory, and end what it is doing."""
        held = self._units.pop(unit, None)
        if held is not None:
            await held.end()

    def _created(self, name: str) -> _Unit:
        made = _Unit()
        extractor, chat = self._ports.extractor, self._ports.chat
        resources = replace(
            self._resources,
            extractor=_AskedExtractor(extractor, made) if extractor else None,
            chat=MeteredChat(_AskedChat(chat, made)) if chat else None,
        )
        made.memory = create_backend(name, resources, {})
        return made


@dataclass
class _Unit:
    """One memory, which does one thing at a time."""

    memory: MemoryBackend = field(init=False)
    asks: asyncio.Queue[Asks] = field(default_factory=asyncio.Queue)
    replies: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    work: asyncio.Task[list[Done]] | None = None
    numbers: count[int] = field(default_factory=count)

    async def call(self, calls: Sequence[Call]) -> Asks | list[Done]:
        self.work = asyncio.create_task(self._all_done(calls))
        return await self._next()

    async def answer(self, number: int, reply: Any) -> Asks | list[Done]:
        self.replies.pop(number).set_result(reply)
        return await self._next()

    async def ask(self, port: str, *arguments: Any) -> Any:
        """Called by a memory: have the run call a model."""
        number = next(self.numbers)
        self.replies[number] = asyncio.get_running_loop().create_future()
        reply = self.replies[number]
        self.asks.put_nowait(Asks(number, port, arguments))
        return await reply

    async def end(self) -> None:
        if self.work is not None and not self.work.done():
            self.work.cancel()
            with suppress(asyncio.CancelledError):
                await self.work

    async def _next(self) -> Asks | list[Done]:
        assert self.work is not None
        asking = asyncio.create_task(self.asks.get())
        await asyncio.wait({self.work, asking}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return asking.result()
        asking.cancel()
        return await self.work

    async def _all_done(self, calls: Sequence[Call]) -> list[Done]:
        done: list[Done] = []
        until = perf_counter() + _SECONDS_TO_WAIT
        for call in calls:
            done.append(await self._done(call))
            if done[-1].error is not None or perf_counter() > until:
                break
            await asyncio.sleep(0)  # embedded stores give way to no other memory
        return done

    async def _done(self, call: Call) -> Done:
        if call.count_tokens is not None:
            self.memory.set_token_counter(call.count_tokens)
        result, error, started = None, None, perf_counter()
        try:
            result = await self._result(call.method, call.arguments)
        except BackendError as failure:
            error = str(failure)
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        return Done(result, self.memory.trace.drain(), error, ms_since(started))

    async def _result(self, method: str, arguments: Sequence[Any]) -> Any:
        """What a method returns. A memory is saved to bytes, and loaded from them: the run has another disk."""
        if method not in ("save", "load"):
            return await getattr(self.memory, method)(*arguments)
        with TemporaryDirectory(prefix="memreplay-") as folder:
            if method == "save":
                await self.memory.save(Path(folder))
                return await asyncio.to_thread(packed_folder, Path(folder))
            await asyncio.to_thread(unpack_folder, arguments[0], Path(folder))
            return await self.memory.load(Path(folder))


def packed_folder(folder: Path) -> bytes:
    """All files of a folder, in one archive."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name)
    return packed.getvalue()


def unpack_folder(packed: bytes, folder: Path) -> None:
    """The files of :func:`packed_folder`. Raises an error for a name outside the folder."""
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


@dataclass
class _AskedExtractor:
    name: str
    unit: _Unit

    async def extract(self, exchange: Exchange) -> tuple[tuple[ExtractedFact, ...], Extraction]:
        found: tuple[tuple[ExtractedFact, ...], Extraction] = await self.unit.ask("extractor", exchange)
        return found


@dataclass
class _AskedChat:
    name: str
    unit: _Unit

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]
    ) -> tuple[ChatMessage | None, ModelCall]:
        reply: tuple[ChatMessage | None, ModelCall] = await self.unit.ask("chat", messages, parameters)
        return reply


def _with_own_servers(settings: Settings) -> Settings:
    """The run sends addresses without passwords and keys: where this machine is configured for the same server, its
    own are used."""
    own = read_settings()
    for name in ("redis_url", "qdrant_url", "api_base"):
        address = getattr(own, name)
        if address is not None and without_secrets(address) == getattr(settings, name):
            settings = replace(settings, **{name: address})
    return replace(settings, qdrant_api_key=own.qdrant_api_key)
