"""A cancellation is never lost while a client library is awaited."""

from __future__ import annotations

import asyncio

import pytest

from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.retry import respecting_cancellation, with_answer_kept


async def test_a_cancellation_that_coincides_with_the_answer_is_not_lost() -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(respecting_cancellation(asyncio.wait_for(answer, 60)))
    await asyncio.sleep(0)
    answer.set_result(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_coincides_with_a_failure_is_not_lost() -> None:
    for heeding in (respecting_cancellation, with_answer_kept):
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(heeding(asyncio.wait_for(answer, 60)))
        await asyncio.sleep(0)
        answer.set_exception(OSError("gone"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_cancelled_task_keeps_the_answer_that_was_paid_for_and_then_stops() -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    kept: list[int] = []

    async def ask_and_go_on() -> None:
        kept.append(await with_answer_kept(asyncio.wait_for(answer, 60)))
        await asyncio.Event().wait()

    task = asyncio.create_task(ask_and_go_on())
    await asyncio.sleep(0)
    answer.set_result(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (kept, task.cancelling()) == ([1], 1)


async def test_a_cancelled_task_can_still_clean_up() -> None:
    redis, cleaned = RedisConnection.embedded(), False

    async def work() -> None:
        nonlocal cleaned
        try:
            await asyncio.Event().wait()
        finally:
            await redis.read(lambda: redis.client.get("key"))
            cleaned = True

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned


async def test_whenever_a_reading_is_stopped_it_stops() -> None:
    redis = RedisConnection.embedded()
    await redis.client.set("key", "value")

    async def read_for_ever() -> None:
        while True:
            await redis.read(lambda: redis.client.get("key"))

    for moment in range(30):
        task = asyncio.create_task(read_for_ever())
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=60)
        assert done and task.cancelled()
