"""An event loop in a thread of its own: a caller with a running loop, such as a notebook, can wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines. A caller that is interrupted while it waits cancels its coroutine, and lets it clean up."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = Thread(target=self._run, name="memreplay", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it and wait for its result, on any thread, also inside a running loop, which it blocks."""
        outcome = self._start(coroutine)
        try:
            return outcome.result()
        finally:
            if not outcome.done():
                self._cancel_tasks()
                wait_for([outcome])

    async def acall(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it while the caller's own loop goes on."""
        outcome = self._start(coroutine)
        future = asyncio.wrap_future(outcome)
        # Of a cancelled call nobody asks for the outcome, which asyncio would report.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(future)
        finally:
            if not outcome.done():
                self._cancel_tasks()
                await asyncio.to_thread(wait_for, [outcome])

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        outcome: Future[T] = Future()

        async def main() -> None:
            try:
                outcome.set_result(await coroutine)
            except BaseException as error:
                outcome.set_exception(error)

        def begin() -> None:
            task = self._loop.create_task(main())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begin)
        return outcome

    def _cancel_tasks(self) -> None:
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])

    def close(self) -> None:
        """Stop the loop and its thread. Nothing may be under way."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
