"""A memory in a thread of its own, so that whatever it computes keeps no other request waiting."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from threading import Thread
from typing import TypeVar

from memory_backends.base import (
    BackendError,
    ClosingStatus,
    Exchange,
    MemoryBackend,
    Message,
    Namespace,
    Recall,
    Snapshot,
)
from memory_backends.stores.trace import MemoryTrace

T = TypeVar("T")

MakeMemory = Callable[[AsyncExitStack], MemoryBackend]
"""Makes a memory, in its thread. What the memory alone uses is closed by the stack, after the memory."""

_SECONDS_TO_RESPOND = 3.0
"""A thread that begins nothing new for as long is busy."""


class _GivenUpError(BaseException):
    """Raised in a thread whose memory computes for too long. A memory that catches every error lets it pass."""


class MemoryBeside(MemoryBackend):
    """Passes every call to a memory that lives in a thread and an event loop of its own.

    A call that is cancelled ends there at its next await; a memory that awaits nothing ends when it is closed.
    """

    name = "beside"

    def __init__(self, make: MakeMemory) -> None:
        self.trace = MemoryTrace()
        self._make = make
        self._memory: MemoryBackend | None = None
        self._used = AsyncExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="memory", daemon=True)
        self._thread.start()

    async def open(self, namespace: Namespace) -> None:
        async def made() -> None:
            self._memory = self._make(self._used)
            await self._memory.open(namespace)

        await self._there(made)

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        return await self._there(lambda: self._opened.perceive(message, top_k, context_tokens))

    async def observe(self, exchange: Exchange) -> None:
        await self._there(lambda: self._opened.observe(exchange))

    async def settle(self) -> None:
        await self._there(lambda: self._opened.settle())

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        return await self._there(lambda: self._opened.recall(question, top_k, context_tokens))

    async def snapshot(self) -> Snapshot:
        return await self._there(lambda: self._opened.snapshot())

    async def close(self, status: ClosingStatus) -> None:
        """Close the memory and end its thread, in the middle of what it computes if need be.

        A thread that does not let itself be ended is left to itself.
        """

        async def closed() -> None:
            try:
                if self._memory is not None:
                    await self._memory.close(status)
            finally:
                self._memory = None
                await self._used.aclose()

        if self._thread.is_alive() and not await self._responds():
            self._give_up()
            if not await self._responds():
                return
        try:
            await self._there(closed)
        finally:
            if self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._loop.stop)
                await asyncio.to_thread(self._thread.join, _SECONDS_TO_RESPOND)

    @property
    def _opened(self) -> MemoryBackend:
        if self._memory is None:
            raise BackendError("the memory is not open")
        return self._memory

    async def _there(self, work: Callable[[], Awaitable[T]]) -> T:
        async def working() -> T:
            return await work()

        if not self._thread.is_alive():
            raise BackendError("the memory has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(working(), self._loop))

    async def _responds(self) -> bool:
        """Return whether the thread would begin something new."""

        async def nothing() -> None:
            return

        try:
            async with asyncio.timeout(_SECONDS_TO_RESPOND):
                await self._there(nothing)
        except (TimeoutError, BackendError):
            return False
        return True

    def _give_up(self) -> None:
        """Raise an error in the thread, between two instructions of Python code."""
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(_GivenUpError)
            )

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # Where the error of _give_up comes a moment late, it ends the loop instead of the memory's task.
        try:
            self._loop.run_forever()
        except _GivenUpError:
            return
        finally:
            self._loop.close()
