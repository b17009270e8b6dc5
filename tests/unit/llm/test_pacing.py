"""The pace of asking: places, growth, refusals, quotas, pauses, and the end of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from memreplay.llm.rate_limiter import (
    FIRST_SIZE,
    AdaptiveLimit,
    Gate,
    MinuteQuota,
    RateLimiter,
    RateLimiters,
    RateLimits,
    StoppedError,
)


class TickingClock:
    """A clock that runs only while somebody sleeps."""

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


async def test_a_gate_lets_in_as_many_as_it_may_in_the_order_of_their_coming() -> None:
    gate, entered, leave = Gate(lambda: 2), [], asyncio.Event()

    async def visit(number: int) -> None:
        async with gate:
            entered.append(number)
            await leave.wait()

    visits = [asyncio.create_task(visit(number)) for number in range(5)]
    await settle()
    assert (entered, gate.inside, gate.waiting) == ([0, 1], 2, 3)
    leave.set()
    await asyncio.gather(*visits)
    assert (entered, gate.inside, gate.waiting) == ([0, 1, 2, 3, 4], 0, 0)


async def test_a_gate_that_grew_lets_in_more_at_the_next_leaving() -> None:
    size = 1
    gate, gates = Gate(lambda: size), [asyncio.Event() for _ in range(3)]

    async def visit(number: int) -> None:
        async with gate:
            await gates[number].wait()

    visits = [asyncio.create_task(visit(number)) for number in range(3)]
    await settle()
    size = 2
    gates[0].set()
    await settle()
    assert (gate.inside, gate.waiting) == (2, 0)
    for opened in gates:
        opened.set()
    await asyncio.gather(*visits)


async def test_who_gives_up_waiting_takes_nobody_elses_place() -> None:
    gate, leave = Gate(lambda: 1), asyncio.Event()

    async def visit() -> None:
        async with gate:
            await leave.wait()

    first, second, third = (asyncio.create_task(visit()) for _ in range(3))
    await settle()
    second.cancel()
    leave.set()
    await asyncio.gather(first, third)
    assert second.cancelled() and (gate.inside, gate.waiting) == (0, 0)


async def test_a_halted_gate_sends_away_who_waits_and_who_comes_and_leaves_the_rest_alone() -> None:
    gate, leave = Gate(lambda: 1), asyncio.Event()

    async def visit() -> str:
        async with gate:
            await leave.wait()
        return "done"

    inside, waiting = asyncio.create_task(visit()), asyncio.create_task(visit())
    await settle()
    gate.halt()
    with pytest.raises(StoppedError):
        await waiting
    with pytest.raises(StoppedError):
        await visit()
    leave.set()
    assert await inside == "done"


def play(limit: AdaptiveLimit, rate_of: Callable[[int], float], rounds: int) -> None:
    """Finish rounds of calls at the rate that a provider has for so many calls at once."""
    now = 0.0
    for _ in range(rounds):
        size = limit.size
        for _ in range(size + 1):
            now += 1 / rate_of(size)
            limit.finished(now, others_wait=True)


def test_the_limit_grows_with_a_provider_that_keeps_up() -> None:
    limit = AdaptiveLimit()
    play(limit, lambda size: float(size), 8)
    assert limit.size > 5 * FIRST_SIZE


def test_the_limit_stays_near_what_a_provider_can_do() -> None:
    limit = AdaptiveLimit()
    play(limit, lambda size: float(min(size, 40)), 60)
    assert 30 <= limit.size <= 70


def test_a_server_that_only_queues_is_not_sent_more() -> None:
    limit = AdaptiveLimit()
    play(limit, lambda size: 5.0, 40)
    assert limit.size <= FIRST_SIZE * 1.5


def test_without_others_waiting_nothing_is_learned() -> None:
    limit = AdaptiveLimit()
    for number in range(500):
        limit.finished(float(number), others_wait=False)
    assert limit.size == FIRST_SIZE


def test_refusals_of_one_moment_shrink_the_limit_once_and_later_ones_again() -> None:
    limit = AdaptiveLimit(20)
    for _ in range(20):
        limit.refused(begun=1.0, now=2.0)
    assert limit.size == 15
    limit.refused(begun=2.5, now=3.0)
    assert limit.size == 11
    for number in range(100):
        limit.refused(begun=10.0 + number, now=10.5 + number)
    assert limit.size == 1


def test_after_a_refusal_the_limit_grows_again_in_small_steps() -> None:
    limit = AdaptiveLimit(40)
    limit.refused(begun=-1.0, now=-0.5)
    play(limit, lambda size: float(size), 3)
    assert 30 < limit.size < 40


def test_what_a_refusal_took_comes_back_and_no_more_where_more_brings_nothing() -> None:
    limit = AdaptiveLimit(40)
    limit.refused(begun=-1.0, now=-0.5)
    play(limit, lambda size: 10.0, 4)
    assert limit.size == 40
    play(limit, lambda size: 10.0, 40)
    assert limit.size <= 44


def test_no_minute_has_more_than_its_quota() -> None:
    quota, now, begun = MinuteQuota(per_minute=30), 0.0, []
    for _ in range(100):
        now += quota.reserve(1, now)
        begun.append(now)
    assert max(sum(start <= other < start + 60 for other in begun) for start in begun) == 30


def test_an_estimate_that_was_too_low_is_waited_for_later() -> None:
    quota = MinuteQuota(per_minute=600)
    assert quota.reserve(100, 0.0) == 0.0
    quota.correct(+100)
    assert quota.reserve(1, 0.0) == pytest.approx(20.0)


async def calls(pace: RateLimiter, number: int, tokens: int = 0) -> None:
    for _ in range(number):
        async with pace.call(tokens):
            pace.kept_up(0)


async def test_requests_and_tokens_a_minute_are_kept() -> None:
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


async def test_a_pause_that_one_call_was_told_holds_back_the_others() -> None:
    clock = TickingClock()
    pace = RateLimiters(clock=clock).of("m")
    async with pace.call(0) as begun:
        pace.turned_away(begun, 7.0)
    async with pace.call(0) as begun:
        assert begun >= 107.0


async def test_a_stray_refusal_holds_nobody_else_back() -> None:
    clock = TickingClock()
    pace = RateLimiters(clock=clock).of("m")
    await calls(pace, 50)
    async with pace.call(0) as begun:
        pace.turned_away(begun, 7.0)
    await calls(pace, 1)
    assert (clock.time, pace.calls_at_once) == (100.0, FIRST_SIZE)


async def refused_once(pace: RateLimiter, clock: TickingClock) -> None:
    clock.time += 1.0
    async with pace.call(0) as begun:
        pace.turned_away(begun, 0.0)


async def test_among_many_failures_of_another_kind_a_refusal_is_a_stray_one() -> None:
    clock = TickingClock()
    pace = RateLimiters(clock=clock).of("m")
    for _ in range(20):
        pace.failed()
    await refused_once(pace, clock)
    assert pace.calls_at_once == FIRST_SIZE


async def test_a_limit_that_was_just_lowered_is_not_lowered_again_for_a_stray_refusal() -> None:
    clock = TickingClock()
    pace = RateLimiters(clock=clock).of("m")
    await refused_once(pace, clock)
    lowered = pace.calls_at_once
    await refused_once(pace, clock)
    assert pace.calls_at_once == lowered < FIRST_SIZE
    for _ in range(5):
        await refused_once(pace, clock)
    assert pace.calls_at_once < lowered


async def test_a_fixed_number_is_shared_by_all_models_and_never_changes() -> None:
    paces = RateLimiters(RateLimits(concurrency=3))
    under_way = most = 0

    async def call(model: str) -> None:
        nonlocal under_way, most
        async with paces.of(model).call(0) as begun:
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            paces.of(model).turned_away(begun, 0.0)
            under_way -= 1

    await asyncio.gather(*(call(model) for model in ("a", "b") * 20))
    assert (most, paces.of("a").calls_at_once) == (3, 3)


async def test_when_the_run_ends_nobody_sleeps_on() -> None:
    paces = RateLimiters()
    resting = asyncio.create_task(paces.of("m").rest(3600.0))
    await settle()
    paces.halt()
    with pytest.raises(StoppedError):
        await resting
    with pytest.raises(StoppedError):
        async with paces.of("another").call(0):
            raise AssertionError("it must not begin")
