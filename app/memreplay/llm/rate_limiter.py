"""Rate limiting: calls under way, requests and tokens per minute, and pauses when a provider asks for them.

``anyio`` counts the calls under way. The quotas per minute are ours: the limiters for asyncio (aiolimiter,
pyrate-limiter) let a full quota through at once, refuse a prompt larger than a minute's quota, and take no
correction once the provider has counted the tokens.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from anyio import CapacityLimiter

from memreplay.llm import EXTRACTIVE_MODEL


class StoppedError(Exception):
    """The run is stopping; the call was not made."""


class ModelUnavailableError(StoppedError):
    """Calling this model, or the store that a memory needs, again would fail again.

    ``str(error)`` is one sentence: why, and how to fix it.
    """


class Gate:
    """``async with gate:`` lets ``capacity()`` tasks in at a time, first come, first served.

    ``capacity`` is read again whenever a task enters or leaves, so it may change while the gate is in use.
    """

    def __init__(self, capacity: Callable[[], int]) -> None:
        self.capacity = capacity
        self._limiter = CapacityLimiter(1)
        self._closed = False

    @property
    def waiting(self) -> int:
        """Tasks that wait to enter."""
        return self._limiter.statistics().tasks_waiting

    async def __aenter__(self) -> None:
        """Wait for a place. Raises :class:`StoppedError` once the gate is closed."""
        if not self._closed:
            self._limiter.total_tokens = self.capacity()
        await self._limiter.acquire()
        if self._closed:
            self._limiter.release()
            raise StoppedError

    async def __aexit__(self, *_: object) -> None:
        if not self._closed:
            self._limiter.total_tokens = self.capacity()
        self._limiter.release()

    def close(self) -> None:
        """Turn away every task that waits or comes later. Tasks inside are not interrupted."""
        self._closed = True
        self._limiter.total_tokens = math.inf


class MinuteQuota:
    """Spreads spending evenly, so that no minute, wherever it begins, exceeds its quota.

    The generic cell rate algorithm (ITU-T I.371) without a burst: its whole state is the time at which everything
    spent so far will have been earned.
    """

    def __init__(self, per_minute: int) -> None:
        self._seconds_each = 60.0 / per_minute
        self._earned_at = -math.inf

    def reserve(self, amount: float, now: float) -> float:
        """Spend an amount as soon as the quota allows; returns the seconds to wait. ``now`` is monotonic."""
        begins = max(self._earned_at, now)
        self._earned_at = begins + amount * self._seconds_each
        return begins - now

    def correct(self, amount: float) -> None:
        """Spend more than was reserved, or return the excess where ``amount`` is negative."""
        self._earned_at += amount * self._seconds_each


FIRST_SIZE = 20
"""Calls at once before anything is known about the provider."""

LARGEST_SIZE = 256

_FASTER = 1.05
_ROUNDS_BETWEEN_TRIALS = 10


class AdaptiveLimit:
    """Grows while more calls at once bring more replies a second, and shrinks when the provider rejects calls.

    Throughput is measured in rounds: as many replies as the limit is large, while other calls wait. After a round
    clearly faster than the best one, the limit grows: by half until the first rejection, by a tenth after it. After
    any other round it returns to the best size and tries to grow again some rounds later, so a server that only
    queues requests (a local model) is not sent more. A rejection takes a quarter off, once for all calls under way
    at the time. That quarter comes back by a tenth a round whatever the throughput: after a rejection there are too
    few replies, some of them late, to measure any.
    """

    def __init__(self, size: int = FIRST_SIZE) -> None:
        self.size = size
        self._best_size, self._best_rate = size, 0.0
        self._rounds_to_wait = 0
        self._size_before_rejection = 0
        self._was_rejected = False
        self._shrunk_at = -math.inf
        self._round_began: float | None = None
        self._replies = 0

    def succeeded(self, now: float, *, others_wait: bool) -> None:
        """Count a reply towards the round. ``others_wait``: the limit holds other calls back."""
        if not others_wait:
            self._round_began = None
        elif self._round_began is None:
            self._round_began, self._replies = now, 0
        else:
            self._replies += 1
            if self._replies >= self.size and now > self._round_began:
                self._finish_round(self._replies / (now - self._round_began))
                self._round_began, self._replies = now, 0

    def rejected(self, begun: float, now: float) -> bool:
        """Shrink, unless the call began before the last shrinking. Returns whether the limit shrank."""
        if begun < self._shrunk_at:
            return False
        self._size_before_rejection = self.size
        self.size = max(1, self.size * 3 // 4)
        self._best_size, self._best_rate, self._rounds_to_wait = self.size, 0.0, 1
        self._was_rejected, self._shrunk_at, self._round_began = True, now, None
        return True

    def _finish_round(self, rate: float) -> None:
        if self.size < self._size_before_rejection:
            self._best_size, self._best_rate = self.size, rate
            self._grow(self._size_before_rejection)
        elif self._rounds_to_wait:
            self._rounds_to_wait -= 1
            self._best_rate = rate
            if not self._rounds_to_wait:
                self._grow()
        elif rate > self._best_rate * _FASTER:
            self._best_size, self._best_rate = self.size, rate
            self._grow()
        else:
            self.size, self._rounds_to_wait = self._best_size, _ROUNDS_BETWEEN_TRIALS

    def _grow(self, largest: int = LARGEST_SIZE) -> None:
        step = self.size // 10 if self._was_rejected else self.size // 2
        self.size = min(largest, self.size + max(1, step))


class Clock:
    """Seconds of a monotonic clock. Tests pass their own."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)


@dataclass(frozen=True)
class RateLimits:
    """``concurrency`` None is adaptive; ``rpm`` and ``tpm`` are requests and tokens per minute of one model."""

    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None


_SILENT_CALLS, _SILENT_TIMEOUTS = 4, 3
"""A model is given up after as many calls in a row timed out, and it replied to none for as many timeouts."""

_SLACK = 1.0
"""Seconds by which a timeout may be noticed late."""

_LONGEST_ABSENCE, _LONGEST_ABSENCE_AT_FIRST = 60.0, 10.0
"""Seconds without any connection after which a model is given up: one that has answered may be restarting."""

_LONGEST_GAP = 10.0
"""Seconds between two failed connections that count; in a longer gap this process was stopped itself."""

_LONG_SILENCE = 5.0
"""Seconds without a reply after which progress says what it waits for."""

_REMEMBERED = 0.99
"""Weight of a call against the next one: about the last hundred count."""

_TOLERATED_SHARE = 0.1

_CREDIT = 30.0
"""Successful calls credited to a limit that was just lowered."""


class RateLimiter:
    """Limits the calls of one model.

    A pause that the provider asks for holds all calls back, unless few recent calls were rejected: then it concerns
    the rejected call alone. ``adaptive`` None: the gate's capacity is fixed.
    """

    def __init__(
        self,
        name: str,
        gate: Gate,
        adaptive: AdaptiveLimit | None,
        rpm: int | None,
        tpm: int | None,
        clock: Clock,
    ) -> None:
        self._name = name
        self._gate, self._adaptive, self._clock = gate, adaptive, clock
        self._requests = MinuteQuota(rpm) if rpm else None
        self._tokens = MinuteQuota(tpm) if tpm else None
        self._paused_until = -math.inf
        self._calls = self._rejections = 0.0
        self._stopped = asyncio.Event()
        self._under_way = self._silent_calls = 0
        self._heard_at: float | None = None
        self._silence, self._silence_told_at = 0.0, -math.inf
        self._absence, self._absence_told_at = 0.0, -math.inf
        self.has_answered = False
        self.unavailable: str | None = None
        """Why the model is not called any more, in one sentence."""

    @property
    def concurrency(self) -> int:
        """Most calls under way at once, at this moment."""
        return self._gate.capacity()

    @asynccontextmanager
    async def call(self, tokens: int) -> AsyncIterator[float]:
        """Hold a place for a call of about ``tokens``; yields the time at which it begins.

        Raises:
            StoppedError: the run is stopping, or the model is unavailable; the call has not begun.
        """
        async with self._gate:
            self._check_stopped()
            await self._wait_for_quotas(tokens)
            while (seconds := self._paused_until - self._clock.now()) > 0:
                await self.sleep(seconds)
            if self._heard_at is None:
                self._heard_at = self._silence_told_at = self._clock.now()
            self._under_way += 1
            try:
                yield self._clock.now()
            finally:
                self._under_way -= 1

    @property
    def waiting_for(self) -> tuple[int, float]:
        """Return the calls under way, and the seconds since the model last replied or was first called."""
        return self._under_way, 0.0 if self._heard_at is None else self._clock.now() - self._heard_at

    def succeeded(self, tokens_beyond_estimate: int) -> None:
        """Report that a call succeeded, and how many tokens it used beyond those it reserved."""
        self.has_answered = True
        self.heard()
        if self._tokens is not None:
            self._tokens.correct(tokens_beyond_estimate)
        self._count(rejected=False)
        if self._adaptive is not None:
            self._adaptive.succeeded(self._clock.now(), others_wait=self._gate.waiting > 0)

    def failed(self) -> None:
        """Report that a call failed for a reason that calling less often would not fix."""
        self._count(rejected=False)

    def heard(self) -> None:
        """Report that the provider replied, whatever it said."""
        self._heard_at = self._silence_told_at = self._clock.now()
        self._silence, self._silent_calls = 0.0, 0
        self._absence, self._absence_told_at = 0.0, -math.inf

    def was_absent(self, reason: str) -> None:
        """Report that no connection to the model's server could be made. A server that stays away is given up."""
        now = self._clock.now()
        if self._absence_told_at > -math.inf:
            self._absence += min(now - self._absence_told_at, _LONGEST_GAP)
        self._absence_told_at = now
        if self._absence >= (_LONGEST_ABSENCE if self.has_answered else _LONGEST_ABSENCE_AT_FIRST):
            self.mark_unavailable(
                f"{self._name} is unavailable: no connection to its server for {self._absence:.0f} s; start it, or"
                f" check --api-base and the network ({reason})"
            )

    @property
    def is_absent(self) -> bool:
        """Return whether the last attempts made no connection to the model's server."""
        return self._absence > 0 and self.unavailable is None

    @property
    def was_never_found(self) -> bool:
        """Return whether there has been no connection to the model's server."""
        return not self.has_answered and self._absence > 0

    def stayed_silent(self, timeout: float) -> None:
        """Report that a call timed out after ``timeout`` seconds. A model that answers no call is given up.

        Of the time since the last report no more than a timeout counts: in the rest this process was stopped itself
        (a closed lid), and the provider is not to blame.
        """
        self._silent_calls += 1
        now = self._clock.now()
        self._silence += min(now - self._silence_told_at, timeout + _SLACK)
        self._silence_told_at = now
        if self._silent_calls >= _SILENT_CALLS and self._silence >= _SILENT_TIMEOUTS * timeout:
            self.mark_unavailable(
                f"{self._name} is unavailable: it has not answered for {self._silence:.0f} s, in which"
                f" {self._silent_calls} calls timed out; check its server, or allow more time with --timeout"
            )

    def rejected(self, begun: float, pause: float) -> None:
        """Report that the provider rejected a call as one too many, and the seconds it asks to pause for."""
        now = self._clock.now()
        self._count(rejected=True)
        if self._rejections > _TOLERATED_SHARE * self._calls:
            self._paused_until = max(self._paused_until, now + pause)
            if self._adaptive is not None and self._adaptive.rejected(begun, now):
                # The rejections of the larger limit do not count against the smaller one.
                self._calls, self._rejections = _CREDIT, 0.0

    def _count(self, *, rejected: bool) -> None:
        self._calls = self._calls * _REMEMBERED + 1.0
        self._rejections = self._rejections * _REMEMBERED + rejected

    async def sleep(self, seconds: float) -> None:
        """Sleep before the next attempt. Raises :class:`StoppedError` as soon as there will be none."""
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({sleeping, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stopped.cancel()
        self._check_stopped()

    def stop(self) -> None:
        """Begin no more calls; those under way continue."""
        self._stopped.set()
        self._gate.close()

    def mark_unavailable(self, why: str) -> None:
        """Begin no more calls of this model; a gate that it shares with others stays open."""
        self.unavailable = self.unavailable or why
        self._stopped.set()

    def mark_available(self) -> None:
        """Call the model again: the user may have fixed the problem."""
        if self.unavailable is not None:
            self.unavailable = None
            self._heard_at, self._silence, self._silent_calls = None, 0.0, 0
            self._absence, self._absence_told_at = 0.0, -math.inf
            self._stopped.clear()

    def _check_stopped(self) -> None:
        if self.unavailable is not None:
            raise ModelUnavailableError(self.unavailable)
        if self._stopped.is_set():
            raise StoppedError

    async def _wait_for_quotas(self, tokens: int) -> None:
        now = self._clock.now()
        spent = ((self._requests, 1), (self._tokens, tokens))
        waits = [quota.reserve(amount, now) for quota, amount in spent if quota]
        if (seconds := max(waits, default=0.0)) > 0:
            await self.sleep(seconds)


class RateLimiters:
    """One rate limiter per model of a run. All models share a fixed concurrency; each has its own adaptive one."""

    def __init__(self, limits: RateLimits | None = None, clock: Clock | None = None) -> None:
        self._limits, self._clock = limits or RateLimits(), clock or Clock()
        fixed = self._limits.concurrency
        self._shared_gate = Gate(lambda: fixed) if fixed else None
        self._by_model: dict[str, RateLimiter] = {}
        self._stopped = False

    def of(self, model: str) -> RateLimiter:
        """Return the rate limiter of a model, by its LiteLLM name."""
        if model not in self._by_model:
            self._by_model[model] = self._new(model)
            if self._stopped:
                self._by_model[model].stop()
        return self._by_model[model]

    def stop(self) -> None:
        """Begin no more calls of any model."""
        self._stopped = True
        for limiter in self._by_model.values():
            limiter.stop()

    @property
    def unavailable(self) -> dict[str, str]:
        """Return the models that are not called any more → why, in one sentence."""
        return {model: one.unavailable for model, one in self._by_model.items() if one.unavailable is not None}

    @property
    def never_found(self) -> list[str]:
        """Return why models are not called any more to whose servers there was no connection from the start."""
        return [one.unavailable for one in self._by_model.values() if one.unavailable and one.was_never_found]

    def silence(self) -> str:
        """Return the models that have not replied for a while although they were called; else empty."""
        absent = [f"{name} (no connection, trying again)" for name, one in self._by_model.items() if one.is_absent]
        waits = [(name, *limiter.waiting_for) for name, limiter in self._by_model.items()]
        silent = [
            f"{name} ({calls} {'call' if calls == 1 else 'calls'}, no reply for {seconds:.0f} s)"
            for name, calls, seconds in waits
            if calls and seconds >= _LONG_SILENCE and not self._by_model[name].is_absent
        ]
        return ", ".join([*absent, *silent])

    def mark_available(self) -> None:
        """Call all models again."""
        for limiter in self._by_model.values():
            limiter.mark_available()

    def _new(self, model: str) -> RateLimiter:
        rpm, tpm = (None, None) if model == EXTRACTIVE_MODEL else (self._limits.rpm, self._limits.tpm)
        if self._shared_gate is not None:
            return RateLimiter(model, self._shared_gate, None, rpm, tpm, self._clock)
        adaptive = AdaptiveLimit()
        return RateLimiter(model, Gate(lambda: adaptive.size), adaptive, rpm, tpm, self._clock)
