"""Concurrency, quotas per minute, rejections, pauses, and the end of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from memreplay.llm.rate_limiter import (
    FIRST_SIZE,
    AdaptiveLimit,
    Clock,
    Gate,
    MinuteQuota,
    RateLimiter,
    RateLimiters,
    RateLimits,
    StoppedError,
)


class TickingClock(Clock):
    """A clock that runs only while a task sleeps."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_gate_lets_in_as_many_as_its_capacity_first_come_first_served() -> None:
    gate, entered, leave = Gate(lambda: 2), [], asyncio.Event()

    async def visit(number: int) -> None:
        async with gate:
            entered.append(number)
            await leave.wait()

    visits = [asyncio.create_task(visit(number)) for number in range(5)]
    await settle()
    assert (entered, gate.waiting) == ([0, 1], 3)
    leave.set()
    await asyncio.gather(*visits)
    assert (entered, gate.waiting) == ([0, 1, 2, 3, 4], 0)


async def test_a_gate_whose_capacity_grew_lets_in_more_when_the_next_task_leaves() -> None:
    size, entered = 1, []
    gate, may_leave = Gate(lambda: size), [asyncio.Event() for _ in range(3)]

    async def visit(number: int) -> None:
        async with gate:
            entered.append(number)
            await may_leave[number].wait()

    visits = [asyncio.create_task(visit(number)) for number in range(3)]
    await settle()
    assert entered == [0]
    size = 2
    may_leave[0].set()
    await settle()
    assert (entered, gate.waiting) == ([0, 1, 2], 0)
    for event in may_leave:
        event.set()
    await asyncio.gather(*visits)


async def test_a_gate_whose_capacity_shrank_lets_nobody_in_until_enough_have_left() -> None:
    size, entered = 3, []
    gate, may_leave = Gate(lambda: size), [asyncio.Event() for _ in range(4)]

    async def visit(number: int) -> None:
        async with gate:
            entered.append(number)
            await may_leave[number].wait()

    visits = [asyncio.create_task(visit(number)) for number in range(4)]
    await settle()
    size = 1
    for left in (0, 1, 2):
        assert 3 not in entered
        may_leave[left].set()
        await settle()
    assert entered == [0, 1, 2, 3]
    may_leave[3].set()
    await asyncio.gather(*visits)


@pytest.mark.parametrize("cancelled_as_its_turn_comes", [False, True])
async def test_a_task_that_is_cancelled_while_waiting_takes_no_place(cancelled_as_its_turn_comes: bool) -> None:
    gate, leave, entered = Gate(lambda: 1), asyncio.Event(), []

    async def visit(number: int) -> None:
        async with gate:
            entered.append(number)
            await leave.wait()

    first, second, third = (asyncio.create_task(visit(number)) for number in range(3))
    await settle()
    if cancelled_as_its_turn_comes:
        leave.set()
        await asyncio.sleep(0)
    second.cancel()
    leave.set()
    await asyncio.gather(first, third)
    assert second.cancelled() and (entered, gate.waiting) == ([0, 2], 0)
    async with gate:
        pass


async def test_a_closed_gate_turns_away_waiting_and_new_tasks_and_leaves_the_rest_alone() -> None:
    gate, leave = Gate(lambda: 1), asyncio.Event()

    async def visit() -> str:
        async with gate:
            await leave.wait()
        return "done"

    inside, waiting = asyncio.create_task(visit()), asyncio.create_task(visit())
    await settle()
    gate.close()
    with pytest.raises(StoppedError):
        await waiting
    with pytest.raises(StoppedError):
        await visit()
    leave.set()
    assert await inside == "done"


def play(limit: AdaptiveLimit, rate_of: Callable[[int], float], rounds: int) -> None:
    """Finish rounds of calls at the rate that a provider reaches with that many calls at once."""
    now = 0.0
    for _ in range(rounds):
        size = limit.size
        for _ in range(size + 1):
            now += 1 / rate_of(size)
            limit.succeeded(now, others_wait=True)


def test_the_limit_grows_with_a_provider_that_keeps_up() -> None:
    limit = AdaptiveLimit()
    play(limit, lambda size: float(size), 8)
    assert limit.size > 5 * FIRST_SIZE


def test_the_limit_stays_near_the_capacity_of_the_provider() -> None:
    limit = AdaptiveLimit()
    play(limit, lambda size: float(min(size, 40)), 60)
    assert 30 <= limit.size <= 70


def test_a_server_that_only_queues_is_not_sent_more() -> None:
    limit = AdaptiveLimit()
    play(limit, lambda size: 5.0, 40)
    assert limit.size <= FIRST_SIZE * 1.5


def test_the_limit_stays_while_no_other_call_waits() -> None:
    limit = AdaptiveLimit()
    for number in range(500):
        limit.succeeded(float(number), others_wait=False)
    assert limit.size == FIRST_SIZE


def test_simultaneous_rejections_shrink_the_limit_once_and_later_ones_again() -> None:
    limit = AdaptiveLimit(20)
    for _ in range(20):
        limit.rejected(begun=1.0, now=2.0)
    assert limit.size == 15
    limit.rejected(begun=2.5, now=3.0)
    assert limit.size == 11
    for number in range(100):
        limit.rejected(begun=10.0 + number, now=10.5 + number)
    assert limit.size == 1


def test_after_a_rejection_the_limit_grows_in_small_steps() -> None:
    limit = AdaptiveLimit(40)
    limit.rejected(begun=-1.0, now=-0.5)
    play(limit, lambda size: float(size), 3)
    assert 30 < limit.size < 40


def test_the_limit_returns_to_its_size_before_a_rejection_and_no_further_without_more_throughput() -> None:
    limit = AdaptiveLimit(40)
    limit.rejected(begun=-1.0, now=-0.5)
    play(limit, lambda size: 10.0, 4)
    assert limit.size == 40
    play(limit, lambda size: 10.0, 40)
    assert limit.size <= 44


def test_no_minute_exceeds_its_quota() -> None:
    quota, now, begun = MinuteQuota(per_minute=30), 0.0, []
    for _ in range(100):
        now += quota.reserve(1, now)
        begun.append(now)
    assert max(sum(start <= other < start + 60 for other in begun) for start in begun) == 30


def test_the_next_call_waits_for_tokens_that_were_underestimated() -> None:
    quota = MinuteQuota(per_minute=600)
    assert quota.reserve(100, 0.0) == 0.0
    quota.correct(+100)
    assert quota.reserve(1, 0.0) == pytest.approx(20.0)


async def calls(limiter: RateLimiter, number: int, tokens: int = 0) -> None:
    for _ in range(number):
        async with limiter.call(tokens):
            limiter.succeeded(0)


async def test_requests_and_tokens_per_minute_are_never_exceeded() -> None:
    clock = TickingClock()
    await calls(RateLimiters(RateLimits(rpm=60), clock).of("m"), 31)
    assert clock.time == pytest.approx(130.0)
    clock = TickingClock()
    await calls(RateLimiters(RateLimits(tpm=6000), clock).of("m"), 31, tokens=100)
    assert clock.time == pytest.approx(130.0)


async def test_the_embedded_reader_has_no_quota() -> None:
    clock = TickingClock()
    await calls(RateLimiters(RateLimits(rpm=1), clock).of("memreplay/extractive"), 10)
    assert clock.time == 100.0


async def test_a_pause_holds_all_calls_back() -> None:
    clock = TickingClock()
    limiter = RateLimiters(clock=clock).of("m")
    async with limiter.call(0) as begun:
        limiter.rejected(begun, 7.0)
    async with limiter.call(0) as begun:
        assert begun >= 107.0


async def test_an_isolated_rejection_holds_no_other_call_back() -> None:
    clock = TickingClock()
    limiter = RateLimiters(clock=clock).of("m")
    await calls(limiter, 50)
    async with limiter.call(0) as begun:
        limiter.rejected(begun, 7.0)
    await calls(limiter, 1)
    assert (clock.time, limiter.concurrency) == (100.0, FIRST_SIZE)


async def rejected_once(limiter: RateLimiter, clock: TickingClock) -> None:
    clock.time += 1.0
    async with limiter.call(0) as begun:
        limiter.rejected(begun, 0.0)


async def test_a_rejection_among_many_other_failures_is_isolated() -> None:
    clock = TickingClock()
    limiter = RateLimiters(clock=clock).of("m")
    for _ in range(20):
        limiter.failed()
    await rejected_once(limiter, clock)
    assert limiter.concurrency == FIRST_SIZE


async def test_a_limit_that_was_just_lowered_is_not_lowered_again_for_an_isolated_rejection() -> None:
    clock = TickingClock()
    limiter = RateLimiters(clock=clock).of("m")
    await rejected_once(limiter, clock)
    lowered = limiter.concurrency
    await rejected_once(limiter, clock)
    assert limiter.concurrency == lowered < FIRST_SIZE
    for _ in range(5):
        await rejected_once(limiter, clock)
    assert limiter.concurrency < lowered


async def test_a_fixed_concurrency_is_shared_by_all_models_and_never_changes() -> None:
    rate_limiters = RateLimiters(RateLimits(concurrency=3))
    under_way = most = 0

    async def call(model: str) -> None:
        nonlocal under_way, most
        async with rate_limiters.of(model).call(0) as begun:
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            rate_limiters.of(model).rejected(begun, 0.0)
            under_way -= 1

    await asyncio.gather(*(call(model) for model in ("a", "b") * 20))
    assert (most, rate_limiters.of("a").concurrency) == (3, 3)


async def test_stopping_wakes_sleeping_calls() -> None:
    rate_limiters = RateLimiters()
    resting = asyncio.create_task(rate_limiters.of("m").sleep(3600.0))
    await settle()
    rate_limiters.stop()
    with pytest.raises(StoppedError):
        await resting
    with pytest.raises(StoppedError):
        async with rate_limiters.of("another").call(0):
            raise AssertionError("it must not begin")
