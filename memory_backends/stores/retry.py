"""Trying again, for the commands that may be repeated without harm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential

Answer = TypeVar("Answer")

ATTEMPTS = 10
"""With the waits between them, a server may be away for six seconds."""

ATTEMPTS_TO_REACH = 4
"""Where it is only asked whether a server is there: less than a second."""


async def with_retry(
    call: Callable[[], Awaitable[Answer]], may_pass: Callable[[BaseException], bool], attempts: int = ATTEMPTS
) -> Answer:
    """Await ``call()``, again with 0.1, 0.2, 0.4 … 1 s between, while ``may_pass`` says so of its error.

    The last error is raised as it is.
    """
    retrying = AsyncRetrying(
        stop=stop_after_attempt(attempts),
        wait=wait_exponential(multiplier=0.1, max=1),
        retry=retry_if_exception(may_pass),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            return await call()
    raise AssertionError("the last attempt returns or raises")


async def respecting_cancellation(work: Awaitable[Answer]) -> Answer:
    """Await it, and lose no cancellation that comes meanwhile.

    ``asyncio.wait_for``, which redis-py writes with, loses one before Python 3.12 where its work ends in the same
    moment: whoever was told to stop would go on.
    """
    answer, told_to_stop = await _heard(work)
    if told_to_stop:
        raise asyncio.CancelledError
    return answer


async def with_answer_kept(work: Awaitable[Answer]) -> Answer:
    """The same where the answer was paid for: it is returned, and whoever was told to stop stops at the next wait.

    Until then it can be kept.
    """
    answer, told_to_stop = await _heard(work)
    task = asyncio.current_task()
    if told_to_stop and task:
        task.uncancel()
        task.cancel()
    return answer


async def _heard(work: Awaitable[Answer]) -> tuple[Answer, bool]:
    """Its answer, and whether a cancellation was lost. Where one was, a failure is nobody's concern any more."""
    task = asyncio.current_task()
    requests = task.cancelling() if task else 0
    try:
        answer = await work
    except Exception:
        if task and task.cancelling() > requests:
            raise asyncio.CancelledError from None
        raise
    return answer, bool(task and task.cancelling() > requests)
