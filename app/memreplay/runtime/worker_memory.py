"""A memory that a worker holds, as the run sees it.

Calls that are expected travel together. A lost worker's work is repeated, and no model is asked twice for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

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
from memreplay.llm.rate_limiter import StoppedError
from memreplay.runtime.worker import Asks, Call, Done, packed_folder, unpack_folder
from memreplay.runtime.workers import Worker, WorkerLostError, Workers

_MOST_LOSSES = 3
"""A memory that loses its worker more often is given up: it may be what ends them."""

_CALLS_AHEAD = 32
"""Most calls of a memory that are sent together; the next are sent while no more results than that wait here."""

_WRITES = frozenset({"open", "load", "observe", "settle"})


class WorkerMemory(MemoryBackend):
    """A memory in a worker. It remembers what it was told, and when its worker is lost, tells another."""

    def __init__(self, workers: Workers, conversation_id: str, template: MemoryBackend) -> None:
        self.name = template.name
        self.trace = MemoryTrace()
        self.perceive_changes_recall = template.perceive_changes_recall
        self.limited_by_top_k = template.limited_by_top_k
        self.can_be_kept = template.can_be_kept
        self.description = template.description
        self._workers = workers
        self._conversation_id = conversation_id
        self._count_tokens: TokenCounter | None = None
        self.ms = 0.0
        self._expected: list[Call] = []
        self._ahead: list[tuple[Call, Done]] = []
        self._under_way: asyncio.Task[list[tuple[Call, Done]]] | None = None
        self._told: list[Call] = []
        self._replies: list[tuple[Asks, Any]] = []
        self._replies_to_come: list[tuple[Asks, Any]] = []
        self._held: tuple[Worker, str, str] | None = None
        self._losses = 0

    async def open(self, namespace: Namespace) -> None:
        await self._call("open", namespace)

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        recall: Recall = await self._call("perceive", message, top_k, context_tokens)
        return recall

    async def observe(self, exchange: Exchange) -> None:
        await self._call("observe", exchange)

    async def settle(self) -> None:
        await self._call("settle")

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        self._count_tokens = count_tokens

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        recall: Recall = await self._call("recall", question, top_k, context_tokens)
        return recall

    async def snapshot(self) -> Snapshot:
        snapshot: Snapshot = await self._call("snapshot")
        return snapshot

    async def save(self, path: Path) -> None:
        """Raises BackendError for one that was told more than the run has recorded, as when it is interrupted."""
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        if self._under_way is not None or any(self._writes(call) for call, _ in self._ahead):
            raise BackendError("it has ingested more than the run has recorded")
        packed: bytes = await self._call("save")
        await asyncio.to_thread(unpack_folder, packed, path)

    async def load(self, path: Path) -> None:
        await self._call("load", await asyncio.to_thread(packed_folder, path))

    async def close(self, status: ClosingStatus) -> None:
        self._expected = []
        try:
            await self._call("close", status)
        finally:
            if self._held is not None:
                worker, key, unit = self._held
                self._held = None
                self._workers.release(worker, key, unit)
                with suppress(WorkerLostError):
                    await self._workers.asked(worker, "drop", unit)

    def expect(self, calls: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        """Calls that will come, in this order, instead of those that were expected before."""
        self._expected = [Call(method, arguments, self._count_tokens) for method, arguments in calls]
        self._go_ahead()

    async def _call(self, method: str, *arguments: Any) -> Any:
        """The result; what the memory did is in the trace, once, however many workers were lost on the way."""
        self.ms = 0.0
        done = await self._done(Call(method, arguments, self._count_tokens))
        self.ms = done.ms
        self.trace.extend(done.entries)
        if done.error is not None:
            raise BackendError(done.error)
        return done.result

    async def _done(self, call: Call) -> Done:
        """How a call ended, which may have been expected and made already."""
        while True:
            for place, (made, done) in enumerate(self._ahead):
                if made == call:
                    del self._ahead[place]
                    self._go_ahead()
                    return done
            under_way = self._under_way or self._start([call])
            self._under_way = None
            try:
                self._ahead += await under_way
            except StoppedError:
                # The model that a later call needs is not called any more, which a memory can close without.
                if call.method != "close":
                    raise

    def _go_ahead(self) -> None:
        """Make calls that are expected, unless enough have been made, or others are under way."""
        if self._under_way is None and self._expected and len(self._ahead) <= _CALLS_AHEAD:
            self._start(self._expected[:_CALLS_AHEAD])

    def _start(self, calls: list[Call]) -> asyncio.Task[list[tuple[Call, Done]]]:
        self._under_way = asyncio.create_task(self._made(calls))
        return self._under_way

    async def _made(self, calls: list[Call]) -> list[tuple[Call, Done]]:
        """The first ones of these calls, at least one, and how they ended."""
        while True:
            try:
                if self._held is None:
                    await self._settle_in()
                done = await self._asked(calls)
                break
            except WorkerLostError:
                self._on_loss()
        made = calls[: len(done)]
        self._told += [call for call in made if self._writes(call)]
        if done[-1].error is not None and self._writes(made[-1]):
            self._expected = []
        for call in made:
            if call in self._expected:
                self._expected.remove(call)
        return list(zip(made, done, strict=True))

    def _writes(self, call: Call) -> bool:
        """Whether a second worker has to be told of a call."""
        return call.method in _WRITES or (call.method == "perceive" and self.perceive_changes_recall)

    async def _settle_in(self) -> None:
        """Find a worker, and tell it what the last one was told."""
        self._held = await self._workers.hold(self._conversation_id, self.name)
        worker, _, unit = self._held
        problem = await self._workers.asked(worker, "create", unit, self.name)
        if problem is not None:
            raise BackendError(f"{self.name} cannot be created on the worker at {worker.address}: {problem}")
        self._replies_to_come = list(self._replies)
        told = 0
        while told < len(self._told):
            told += len(await self._asked(self._told[told : told + _CALLS_AHEAD]))

    async def _asked(self, calls: Sequence[Call]) -> list[Done]:
        assert self._held is not None
        worker, _, unit = self._held
        step: Asks | list[Done] = await self._workers.asked(worker, "call", unit, calls)
        while isinstance(step, Asks):
            reply = await self._reply(step)
            step = await self._workers.asked(worker, "answer", unit, step.number, reply)
        return step

    async def _reply(self, asks: Asks) -> Any:
        """A model's reply. What was replied to a worker that is lost is not asked again, and not paid again."""
        for place, (asked, reply) in enumerate(self._replies_to_come):
            if (asked.port, asked.arguments) == (asks.port, asks.arguments):
                del self._replies_to_come[place]
                return reply
        reply = await self._workers.ports[asks.port](*asks.arguments)
        self._replies.append((asks, reply))
        return reply

    def _on_loss(self) -> None:
        if self._held is not None:
            self._workers.release(*self._held)
            self._held = None
        self._losses += 1
        if self._losses >= _MOST_LOSSES:
            raise BackendError(f"{self._losses} workers were lost while they held this memory")
