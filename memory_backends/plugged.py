"""A memory of somebody else's make, held to the protocol: what it lacks is filled in, what it changes is noted."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, TypeVar

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
from memory_backends.operations import MemoryTrace
from memory_backends.snapshot_diff import COMMAND, SnapshotDiffer

Given = TypeVar("Given")

REQUIRED = ("open", "observe", "recall", "snapshot")
"""What a memory must have; the rest of the protocol has defaults."""

_NOWHERE = "(all)"


class PluggedBackend(MemoryBackend):
    """Wraps an object that has the :data:`REQUIRED` methods, all of them coroutines.

    Its own trace, where it has one, is handed on. What it keeps elsewhere is told by the differences of its
    snapshots, taken after every method that may write. An answer of a wrong type is a :class:`BackendError`.
    """

    def __init__(self, name: str, inner: Any) -> None:
        self.name = name
        self.trace = MemoryTrace()
        self.perceive_changes_recall = bool(getattr(inner, "perceive_changes_recall", False))
        self._inner = inner
        self._actor = type(inner).__name__
        self._differ = SnapshotDiffer(self.trace)

    async def open(self, namespace: Namespace) -> None:
        """As the inner one does; what it holds then is noted as its first state."""
        with self.trace.caused_by("open", self._actor):
            await self._writing("open", namespace)

    async def perceive(self, message: Message, limit: int, budget: int) -> Recall:
        """As the inner one does; nothing where it does not perceive."""
        if not self._has("perceive"):
            return Recall()
        with self.trace.caused_by("perceive", self._actor, (message.turn_id,)):
            return _checked(Recall, "perceive", await self._writing("perceive", message, limit, budget))

    async def observe(self, exchange: Exchange) -> None:
        """As the inner one does."""
        with self.trace.caused_by("observe", self._actor, exchange.turn_ids):
            await self._writing("observe", exchange)

    async def settle(self) -> None:
        """As the inner one does, where it has work in the background."""
        if self._has("settle"):
            with self.trace.caused_by("consolidate", self._actor):
                await self._writing("settle")

    def read_by(self, count_tokens: TokenCounter) -> None:
        """Told to the inner one, where it cares."""
        if self._has("read_by"):
            self._inner.read_by(count_tokens)

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        """As the inner one does."""
        with self.trace.caused_by("recall", self._actor):
            recall = _checked(Recall, "recall", await self._call("recall", question, limit, budget))
            self._hand_on()
            return recall

    async def snapshot(self) -> Snapshot:
        """As the inner one says."""
        return _checked(Snapshot, "snapshot", await self._call("snapshot"))

    async def close(self, status: ClosingStatus) -> None:
        """As the inner one does, where it cares."""
        if self._has("close"):
            with self.trace.caused_by("close", self._actor):
                await self._writing("close", status)

    async def _writing(self, method: str, *arguments: Any) -> Any:
        """Call it, then note what it did, even where it failed half-way."""
        try:
            return await self._call(method, *arguments)
        finally:
            self._hand_on()
            await self._note_snapshot()

    async def _call(self, method: str, *arguments: Any) -> Any:
        under_way = getattr(self._inner, method)(*arguments)
        if not isinstance(under_way, Awaitable):
            raise BackendError(f"{method}() of {self._actor} is not a coroutine: write it with `async def`")
        return await under_way

    def _hand_on(self) -> None:
        own = getattr(self._inner, "trace", None)
        if isinstance(own, MemoryTrace):
            entries = own.drain()
            self._differ.leave_out(entries)
            self.trace.extend(entries)

    async def _note_snapshot(self) -> None:
        """A snapshot that fails costs the panel, not the memory."""
        started = perf_counter()
        try:
            self._differ.note(await self.snapshot(), (perf_counter() - started) * 1000)
        except Exception as error:
            ms = (perf_counter() - started) * 1000
            self.trace.note("redis", COMMAND, _NOWHERE, None, ms, f"{type(error).__name__}: {error}")

    def _has(self, method: str) -> bool:
        """Whether it wrote this one itself."""
        written: Callable[..., Any] | None = getattr(type(self._inner), method, None)
        return written is not None and written is not getattr(MemoryBackend, method)


def missing_methods(candidate: type) -> list[str]:
    """Required methods that a class lacks, or that are no coroutines: each with what is wrong."""
    faults = []
    for name in REQUIRED:
        method = getattr(candidate, name, None)
        if method is None or method is getattr(MemoryBackend, name):
            faults.append(f"it has no {name}()")
        elif not inspect.iscoroutinefunction(inspect.unwrap(method)):
            faults.append(f"its {name}() is not `async def`")
    return faults


def _checked(wanted: type[Given], method: str, given: Any) -> Given:
    if not isinstance(given, wanted):
        raise BackendError(f"{method}() gave a {type(given).__name__}, not a {wanted.__name__}")
    return given
