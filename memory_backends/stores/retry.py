"""Retries with backoff, and awaiting without losing a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Answer = TypeVar("Answer")

ATTEMPTS = 10
"""Attempts; with the waits between them, a server may be down for six seconds."""

ATTEMPTS_TO_REACH = 4
"""Attempts to find out whether a server is there: less than a second."""


async def with_retry(
    call: Callable[[], Awaitable[Answer]], may_pass: Callable[[BaseException], bool], attempts: int = ATTEMPTS
) -> Answer:
    """Await ``call()``; retry after 0.1, 0.2, 0.4 … 1 s while ``may_pass(error)``, then raise the last error."""
    for failed in range(1, attempts):
        try:
            return await call()
        except Exception as error:
            if not may_pass(error):
                raise
        await asyncio.sleep(min(0.05 * 2**failed, 1))
    return await call()


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
    """Return the same for an answer that was paid for: return it so that it can be stored; cancel at the next
    await.
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
