"""``--workers`` and ``--cluster``: memories live in other processes, and the run drives them.

The run calls the models and is the only writer of the recording, so that resuming, caching, rate limits and exit
codes are those of a run on one machine, and no key leaves it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic
from typing import Any

from memory_backends.base import (
    Exchange,
)
from memreplay.engine.remote.addresses import is_agent
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm.rate_limiter import StoppedError
from memreplay.llm.secrets import without_secrets
from memreplay.runtime.worker import MemoryActor, Ports, versions
from memreplay.settings import Settings

SECONDS_TO_CONNECT = 30
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_WITHOUT_WORKERS = 120
"""How long a run waits for a worker when all are lost."""

Port = Callable[..., Awaitable[Any]]


class WorkerLostError(Exception):
    """The worker that held a memory is gone."""


@dataclass
class Worker:
    """A worker with its host of memories. ``gone`` is set once it is lost."""

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
        self._workers: dict[str, Worker] = {}
        self._places: dict[str, Worker] = {}
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

    async def texts_to_embed(
        self, conversation_id: str, exchanges: Sequence[Exchange], backends: Sequence[str]
    ) -> list[str]:
        """What memories will embed of a conversation; nothing where they are spread: each embeds as it comes."""
        return await self._asked_of_holder(conversation_id, "texts", exchanges, backends) or []

    async def embed_ahead(self, conversation_id: str, texts: Sequence[str]) -> None:
        """Embed texts on the worker that will hold the memories of a conversation."""
        await self._asked_of_holder(conversation_id, "embed", texts)

    async def _asked_of_holder(self, conversation_id: str, method: str, *arguments: Any) -> Any:
        if self._spread:
            return None
        with suppress(WorkerLostError):
            worker = await self._place(conversation_id)
            if not self._held.get(conversation_id):
                embedding = worker.address, f"{conversation_id} embedding", monotonic()
                self._at_work.setdefault(conversation_id, embedding)
            return await self.asked(worker, method, *arguments)

    @property
    def _spread(self) -> bool:
        return self.conversations < len(self._workers)

    async def hold(self, conversation_id: str, backend: str) -> tuple[Worker, str, str]:
        """A worker for a memory, the key of its place, and a new id for the memory there."""
        key = f"{conversation_id}/{backend}" if self._spread else conversation_id
        worker = await self._place(key)
        self._at_work.pop(conversation_id, None)
        worker.memories += 1
        self._held[key] += 1
        unit = f"{conversation_id}/{backend}/{next(self._numbers)}"
        self._at_work[unit] = worker.address, f"{conversation_id} {backend}", monotonic()
        return worker, key, unit

    def release(self, worker: Worker, key: str, unit: str) -> None:
        """A memory is closed or lost."""
        worker.memories -= 1
        self._held[key] -= 1
        self._at_work.pop(unit, None)
        if not self._held[key]:
            del self._held[key]
            self._places.pop(key, None)

    async def asked(self, worker: Worker, method: str, *arguments: Any) -> Any:
        """What a method of a worker's host returns.

        Raises:
            WorkerLostError: the worker is gone.
        """
        work = asyncio.create_task(_asked(worker.host, method, arguments))
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

    def _lose(self, worker: Worker) -> None:
        worker.gone.set()
        if self._workers.get(worker.address) is worker:
            del self._workers[worker.address]

    async def _place(self, key: str) -> Worker:
        placed = self._places.get(key)
        if placed is None or placed.gone.is_set():
            await self._wait_for_workers()
            # Where a conversation is only being embedded, no memory is held yet.
            taken = Counter(worker.address for worker in self._places.values())
            placed = min(
                self._workers.values(), key=lambda each: (taken[each.address], each.memories, each.address)
            )
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
        deadline = monotonic() + SECONDS_TO_CONNECT
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
        backends = [name for name in self._settings.backend if not is_agent(name)]
        mine = versions(backends)
        try:
            theirs = (await self._client.run(versions, backends, workers=[address]))[address]
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
        host = await self._client.submit(
            MemoryActor, _without_secrets(self._settings), self._names, actor=True, workers=[address], pure=False
        )
        problem = await host.ask("check")
        if problem is not None:
            raise MissingServerOrKeyError(f"the worker at {address}: {problem}")
        self._workers[address] = Worker(address, host)


async def _asked(host: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    # Of a lost actor, even looking up a method fails.
    return await host.ask(method, *arguments)


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
