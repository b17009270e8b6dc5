"""Trying again, for the commands that may be repeated without harm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential

Answer = TypeVar("Answer")

ATTEMPTS = 4


async def patiently(call: Callable[[], Awaitable[Answer]], may_pass: Callable[[BaseException], bool]) -> Answer:
    """Await ``call()``, up to four times with 0.1, 0.2 and 0.4 s between, while ``may_pass`` says so of its error.

    The last error is raised as it is.
    """
    attempts = AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.1, max=1),
        retry=retry_if_exception(may_pass),
        reraise=True,
    )
    async for attempt in attempts:
        with attempt:
            return await call()
    raise AssertionError("the last attempt returns or raises")
