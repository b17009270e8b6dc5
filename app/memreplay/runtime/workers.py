"""``--workers`` and ``--cluster``: memories live in Dask workers, and the run drives them.

The run calls the models and is the only writer of the recording, so that resuming, caching, rate limits and exit
codes are those of a run on one machine, and no key leaves it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from memory_backends.base import (
    BackendError,
    ClosingStatus,
    Exchange,
    MemoryBackend,
    Message,
    Namespace,
    Recall,
    Snapshot,
    TokenCounter,
)
from memory_backends.stores.trace import MemoryTrace
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm.rate_limiter import StoppedError
from memreplay.runtime.worker import Asks, Done, MemoryHost, Ports, versions
from memreplay.settings import Settings, without_secrets

_SECONDS_TO_CONNECT = 30
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_WITHOUT_WORKERS = 120
"""How long a run waits for a worker when all are lost."""

_MOST_LOSSES = 3
"""A memory that loses its worker more often is given up: it may be what ends them."""

_SERVERS_OF_WORKERS = ("redis_url", "qdrant_url", "qdrant_api_key", "api_base")

Port = Callable[..., Awaitable[Any]]


class WorkerLostError(Exception):
    """The worker that held a memory is gone."""


@dataclass
class _Worker:
    address: str
    host: Any
    memories: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class WorkerStatus:
    """A worker, and what it is doing: each memory at work with the seconds since it was placed there."""

    address: str
    memories: tuple[tuple[str, float], ...]


class Workers:
    """The workers of a run. All memories of a conversation are on one worker, so that each text is embedded once;
    where there are fewer conversations than workers, each memory is placed by itself.

    ``ports`` are the models that memories may call, by the name of the port.
    """

    def __init__(self, client: Any, settings: Settings, ports: Mapping[str, Port], names: Ports) -> None:
        self._client, self._settings = client, settings
        self.ports, self._names = ports, names
        self._workers: dict[str, _Worker] = {}
        self._places: dict[str, _Worker] = {}
        self._held: defaultdict[str, int] = defaultdict(int)
        self._at_work: dict[str, tuple[str, str, float]] = {}
        self._numbers = count()
        self._refused: set[str] = set()
        self.conversations = 1
        """Number of conversations that the run plays."""

    def __len__(self) -> int:
        return max(len(self._workers), 1)

    def status(self) -> list[WorkerStatus]:
        """What every worker is doing now; memories that take longest first."""
        now = monotonic()
        return [
            WorkerStatus(
                address,
                tuple(
                    sorted(
                        ((name, now - since) for at, name, since in self._at_work.values() if at == address),
                        key=lambda each: -each[1],
                    )
                ),
            )
            for address in sorted(self._workers)
        ]

    def memory(self, conversation_id: str, template: MemoryBackend) -> WorkerMemory:
        """A memory in a worker that behaves like the one given, which is never opened."""
        return WorkerMemory(self, conversation_id, template)

    async def embed_ahead(self, conversation_id: str, texts: Sequence[str]) -> None:
        """Embed texts on the worker that will hold the memories of a conversation."""
        if self._spread:
            return
        with suppress(WorkerLostError):
            worker = await self._place(conversation_id)
            await self.asked(worker, "embed", list(texts))

    @property
    def _spread(self) -> bool:
        return self.conversations < len(self._workers)

    async def hold(self, conversation_id: str, backend: str) -> tuple[_Worker, str, str]:
        """A worker for a memory, the key of its place, and a new id for the memory there."""
        key = f"{conversation_id}/{backend}" if self._spread else conversation_id
        worker = await self._place(key)
        worker.memories += 1
        self._held[key] += 1
        unit = f"{conversation_id}/{backend}/{next(self._numbers)}"
        self._at_work[unit] = worker.address, f"{conversation_id} {backend}", monotonic()
        return worker, key, unit

    def release(self, worker: _Worker, key: str, unit: str) -> None:
        """A memory is closed or lost."""
        worker.memories -= 1
        self._held[key] -= 1
        self._at_work.pop(unit, None)
        if not self._held[key]:
            del self._held[key]
            self._places.pop(key, None)

    async def asked(self, worker: _Worker, method: str, *arguments: Any) -> Any:
        """What a method of a worker's host returns.

        Raises:
            WorkerLostError: the worker is gone.
        """
        work = asyncio.create_task(_called(worker.host, method, arguments))
        gone = asyncio.create_task(worker.gone.wait())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise WorkerLostError
            return work.result()
        except (OSError, RuntimeError, LookupError) as error:
            self._lose(worker)
            raise WorkerLostError from error
        finally:
            gone.cancel()
            work.cancel()

    def _lose(self, worker: _Worker) -> None:
        worker.gone.set()
        if self._workers.get(worker.address) is worker:
            del self._workers[worker.address]

    async def _place(self, key: str) -> _Worker:
        placed = self._places.get(key)
        if placed is None or placed.gone.is_set():
            await self._wait_for_workers()
            placed = min(self._workers.values(), key=lambda worker: (worker.memories, worker.address))
            self._places[key] = placed
        return placed

    async def _wait_for_workers(self) -> None:
        deadline = monotonic() + _SECONDS_WITHOUT_WORKERS
        while not self._workers:
            if monotonic() > deadline:
                raise StoppedError("no worker is left")
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS / 4)

    async def appear(self) -> bool:
        """Whether there are workers, or come while they may still be starting."""
        deadline = monotonic() + _SECONDS_TO_CONNECT
        await self.look()
        while not self._workers and monotonic() < deadline:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            await self.look()
        return bool(self._workers)

    async def watch(self) -> None:
        """Follow the workers that come and go, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    async def look(self) -> None:
        """Take in new workers, and give up those that are gone. The scheduler may be out of reach for a moment."""
        try:
            addresses = set(await self._client.ncores())
        except (OSError, RuntimeError):
            return
        for worker in list(self._workers.values()):
            if worker.address not in addresses:
                self._lose(worker)
        for address in sorted(addresses - self._workers.keys() - self._refused):
            try:
                await self._take_in(address)
            except (OSError, RuntimeError):
                continue
            except (UsageError, MissingServerOrKeyError):
                if not self._workers:
                    raise
                self._refused.add(address)

    async def _take_in(self, address: str) -> None:
        mine = versions()
        try:
            theirs = (await self._client.run(versions, workers=[address]))[address]
        except ImportError:
            raise UsageError(f"the worker at {address} has no memreplay, or another version of it") from None
        except KeyError:
            return
        other = [f"{name} {theirs.get(name)}, here {mine[name]}" for name in mine if theirs.get(name) != mine[name]]
        if other:
            raise UsageError(
                f"the worker at {address} has other versions: {'; '.join(other)}. The rows of a run must not depend"
                " on where they were computed: install the same versions"
            )
        future = self._client.submit(
            MemoryHost, _without_secrets(self._settings), self._names, actor=True, workers=[address], pure=False
        )
        host = await future
        problem = await host.check()
        if problem is not None:
            raise MissingServerOrKeyError(f"the worker at {address}: {problem}")
        self._workers[address] = _Worker(address, host)


async def _called(host: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    # Of a lost actor, even looking up a method fails.
    return await getattr(host, method)(*arguments)


class WorkerMemory(MemoryBackend):
    """A memory in a worker. It remembers what it was told, and when its worker is lost, tells another."""

    def __init__(self, workers: Workers, conversation_id: str, template: MemoryBackend) -> None:
        self.name = template.name
        self.trace = MemoryTrace()
        self.perceive_changes_recall = template.perceive_changes_recall
        self.limited_by_top_k = template.limited_by_top_k
        self.description = template.description
        self._workers = workers
        self._conversation_id = conversation_id
        self._count_tokens: TokenCounter | None = None
        self._told: list[tuple[str, tuple[Any, ...]]] = []
        self._held: tuple[_Worker, str, str] | None = None
        self._losses = 0

    async def open(self, namespace: Namespace) -> None:
        await self._tell("open", namespace)

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        call = self._tell if self.perceive_changes_recall else self._call
        recall: Recall = await call("perceive", message, top_k, context_tokens)
        return recall

    async def observe(self, exchange: Exchange) -> None:
        await self._tell("observe", exchange)

    async def settle(self) -> None:
        await self._tell("settle")

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        self._count_tokens = count_tokens

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        recall: Recall = await self._call("recall", question, top_k, context_tokens)
        return recall

    async def snapshot(self) -> Snapshot:
        snapshot: Snapshot = await self._call("snapshot")
        return snapshot

    async def close(self, status: ClosingStatus) -> None:
        await self._call("close", status)
        if self._held is not None:
            worker, key, unit = self._held
            self._held = None
            self._workers.release(worker, key, unit)
            with suppress(WorkerLostError):
                await self._workers.asked(worker, "drop", unit)

    async def _tell(self, method: str, *arguments: Any) -> Any:
        """A call that writes: a second worker needs it too."""
        try:
            return await self._call(method, *arguments)
        finally:
            self._told.append((method, arguments))

    async def _call(self, method: str, *arguments: Any) -> Any:
        """The result; what the memory did is in the trace, once, however many workers were lost on the way."""
        while True:
            try:
                if self._held is None:
                    await self._settle_in()
                done = await self._done(method, arguments)
                break
            except WorkerLostError:
                self._on_loss()
        self.trace.extend(done.entries)
        if done.error is not None:
            raise BackendError(done.error)
        return done.result

    async def _settle_in(self) -> None:
        """Find a worker, and tell it what the last one was told."""
        self._held = await self._workers.hold(self._conversation_id, self.name)
        worker, _, unit = self._held
        problem = await self._workers.asked(worker, "create", unit, self.name)
        if problem is not None:
            raise BackendError(f"{self.name} cannot be created on the worker at {worker.address}: {problem}")
        for method, arguments in self._told:
            await self._done(method, arguments)

    async def _done(self, method: str, arguments: tuple[Any, ...]) -> Done:
        assert self._held is not None
        worker, _, unit = self._held
        step: Asks | Done = await self._workers.asked(worker, "call", unit, method, arguments, self._count_tokens)
        while isinstance(step, Asks):
            reply = await self._workers.ports[step.port](*step.arguments)
            step = await self._workers.asked(worker, "answer", unit, step.number, reply)
        return step

    def _on_loss(self) -> None:
        if self._held is not None:
            self._workers.release(*self._held)
            self._held = None
        self._losses += 1
        if self._losses >= _MOST_LOSSES:
            raise BackendError(f"{self._losses} workers were lost while they held this memory")


def _without_secrets(settings: Settings) -> Settings:
    """The settings as they may stand in a task graph, which Dask logs."""
    return replace(
        settings,
        redis_url=without_secrets(settings.redis_url),
        qdrant_url=without_secrets(settings.qdrant_url),
        api_base=without_secrets(settings.api_base),
        qdrant_api_key=None,
        agent_token=None,
        keys={},
    )


def workers_wanted(settings: Settings) -> bool:
    """Whether a run uses workers."""
    return settings.cluster is not None or settings.workers > 1


def refuse_unusable_cluster(settings: Settings) -> None:
    """Raise UsageError for an address of another form, or without Dask."""
    if not workers_wanted(settings):
        return
    if settings.cluster is not None and settings.workers > 1:
        raise UsageError("--workers starts workers here, --cluster uses those of a scheduler; use one of them")
    _number_of_local(settings)
    try:
        import distributed  # noqa: F401  # only whether it is there
    except ImportError:
        raise UsageError("--workers and --cluster need Dask: pip install 'memreplay[cluster]'") from None


def _number_of_local(settings: Settings) -> int | None:
    """How many workers to start here; None for those of a scheduler."""
    if settings.cluster is None:
        return settings.workers
    scheme, _, rest = settings.cluster.partition(":")
    if scheme == "local" and rest.isdecimal() and int(rest):
        return int(rest)
    try:
        parts = urlsplit(settings.cluster)
        if parts.scheme in ("tcp", "tls") and parts.hostname and parts.port:
            return None
    except ValueError:
        pass
    raise UsageError(f"--cluster {settings.cluster}: expected tcp://host:8786, tls://host:8786 or local:N")


@asynccontextmanager
async def started_workers(settings: Settings, ports: Mapping[str, Port], names: Ports) -> AsyncIterator[Workers]:
    """Workers of a scheduler, or processes here that end with the block.

    Raises:
        MissingServerOrKeyError: the scheduler does not answer, or has no worker.
        UsageError: a worker has other versions.
    """
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    number = _number_of_local(settings)
    with nullcontext() if number is None else _own_servers_in_environment(settings):
        cluster: Any = None
        if number is not None:
            cluster = await LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=number,
                threads_per_worker=1,
                processes=True,
                asynchronous=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                preload=["memreplay.runtime.worker"],
            )
        client: Any = None
        try:
            address = cluster or settings.cluster
            try:
                client = await Client(  # type: ignore[no-untyped-call]
                    address, asynchronous=True, timeout=_SECONDS_TO_CONNECT, direct_to_workers=number is not None
                )
            except (OSError, TimeoutError) as error:
                raise MissingServerOrKeyError(f"no Dask scheduler answers at {settings.cluster}") from error
            workers = Workers(client, settings, ports, names)
            if not await workers.appear():
                raise MissingServerOrKeyError(f"the Dask scheduler at {settings.cluster} has no workers")
            watching = asyncio.create_task(workers.watch())
            try:
                yield workers
            finally:
                watching.cancel()
        finally:
            if client is not None:
                await client.close()
            if cluster is not None:
                await cluster.close()


@contextmanager
def _own_servers_in_environment(settings: Settings) -> Iterator[None]:
    """Processes that are started here inherit addresses and keys through the environment, not through Dask."""
    values = {f"MEMREPLAY_{name.upper()}": getattr(settings, name) for name in _SERVERS_OF_WORKERS}
    added = {name: value for name, value in values.items() if value is not None}
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
