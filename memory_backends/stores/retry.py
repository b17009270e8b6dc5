"""Retries with backoff, how long a server is waited for, and awaiting without losing a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

Answer = TypeVar("Answer")

PATIENCE = 90.0
"""Seconds for which a server may stay silent: longer than a restart takes, or a snapshot to disk."""

PATIENCE_TO_REACH = 0.6
"""Seconds for which a server may stay silent when a run begins."""

_LONG_SILENCE = 5.0
"""Seconds without an answer after which progress says what it waits for."""


async def with_retry(
    call: Callable[[], Awaitable[Answer]], may_pass: Callable[[BaseException], bool], attempts: int
) -> Answer:
    """Await ``call()``; retry after 0.1, 0.2, 0.4 … 1 s while ``may_pass(error)``, then raise the last error."""
    for failed in range(1, attempts):
        try:
            return await call()
        except Exception as error:
            if not may_pass(error):
                raise
        await asyncio.sleep(_pause(failed))
    return await call()


def _pause(failed: int) -> float:
    """Return the seconds to wait after so many failures in a row."""
    return min(0.05 * float(2 ** min(failed, 5)), 1.0)


class Contact:
    """How long a server has been silent, to all that share one connection to it.

    ``patience`` None is :data:`PATIENCE`. ``longest_wait`` bounds one attempt, in seconds: what lies between two
    attempts beyond that, this process was stopped itself, and the server is not to blame.
    """

    def __init__(self, patience: float | None, longest_wait: float) -> None:
        self._patience = PATIENCE if patience is None else patience
        self._longest = longest_wait + 1
        self._silent = 0.0
        self._told_at = self._heard_at = monotonic()
        self._under_way = 0

    @property
    def silence(self) -> float:
        """Return the seconds for which calls have waited without any answer; 0 while that is not long."""
        seconds = monotonic() - self._heard_at if self._under_way else 0.0
        return seconds if seconds >= _LONG_SILENCE else 0.0

    async def retrying(
        self,
        call: Callable[[], Awaitable[Answer]],
        may_pass: Callable[[BaseException], bool],
        patience: float | None = None,
    ) -> Answer:
        """Await ``call()``, again while ``may_pass(error)`` and the server was not silent for longer than
        ``patience``, then raise the last error.
        """
        most = self._patience if patience is None else min(patience, self._patience)
        failed = 0
        if not self._under_way:
            self._told_at = self._heard_at = monotonic()
        self._under_way += 1
        try:
            while True:
                began = monotonic()
                try:
                    answer = await call()
                except Exception as error:
                    if not may_pass(error):
                        self._heard()
                        raise
                    self._failed(began)
                    if self._silent >= most:
                        raise
                else:
                    self._heard()
                    return answer
                failed += 1
                await asyncio.sleep(_pause(failed))
        finally:
            self._under_way -= 1

    def _heard(self) -> None:
        self._silent = 0.0
        self._told_at = self._heard_at = monotonic()

    def _failed(self, began: float) -> None:
        """Count the time since an attempt began, or since another one ended, as silence of the server."""
        now = monotonic()
        since = max(began, self._told_at) if not self._silent else self._told_at
        self._silent += min(now - since, self._longest)
        self._told_at = now


async def respecting_cancellation(work: Awaitable[Answer]) -> Answer:
    """Await ``work`` without losing a cancellation.

    Before Python 3.12 ``asyncio.wait_for``, which redis-py uses, loses a cancellation that arrives at the moment
    when its work ends: a cancelled task would continue.
    """
    answer, was_cancelled = await _with_cancellation(work)
    if was_cancelled:
        raise asyncio.CancelledError
    return answer


async def with_answer_kept(work: Awaitable[Answer]) -> Answer:
    """Await ``work`` that is paid for, and return its answer even if the task was cancelled meanwhile.

    So it can be stored; the cancellation takes place at the next await.
    """
    answer, was_cancelled = await _with_cancellation(work)
    task = asyncio.current_task()
    if was_cancelled and task:
        task.uncancel()
        task.cancel()
    return answer


async def _with_cancellation(work: Awaitable[Answer]) -> tuple[Answer, bool]:
    """Return the answer, and whether a cancellation was lost. If one was, an error of the work no longer
    matters.
    """
    task = asyncio.current_task()
    requests = task.cancelling() if task else 0
    try:
        answer = await work
    except Exception:
        if task and task.cancelling() > requests:
            raise asyncio.CancelledError from None
        raise
    return answer, bool(task and task.cancelling() > requests)
