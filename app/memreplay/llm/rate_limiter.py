"""Rate limiting: concurrent calls, requests and tokens per minute, and back-off when a provider asks for it."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Protocol

from memreplay.llm import EXTRACTIVE_MODEL


class StoppedError(Exception):
    """The run ends: whoever waited for its turn is sent away. Nothing was asked."""


class ModelUnavailableError(StoppedError):
    """Asking this model again would not mend what is wrong. ``str(error)`` is a sentence: why, and what would."""


class Gate:
    """Used as ``async with gate:``. At most ``capacity()`` are inside; the others wait in the order of their
    coming.

    ``capacity`` is asked again whenever somebody comes or leaves, so it may change while the gate is in use.
    """

    def __init__(self, capacity: Callable[[], int]) -> None:
        self.inside = 0
        self._capacity = capacity
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._halted = False

    @property
    def waiting(self) -> int:
        """How many stand before the gate."""
        return len(self._waiting)

    async def __aenter__(self) -> None:
        """Wait for a place inside.

        Raises:
            StoppedError: the gate was closed for good.
        """
        if self._halted:
            raise StoppedError
        if not self._waiting and self.inside < self._capacity():
            self.inside += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make room for the next."""
        self._leave()

    def halt(self) -> None:
        """Send away everybody who waits, and whoever comes later. Those inside go on."""
        self._halted = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(StoppedError())

    def _leave(self) -> None:
        self.inside -= 1
        while self._waiting and self.inside < self._capacity():
            turn = self._waiting.popleft()
            if not turn.done():
                self.inside += 1
                turn.set_result(None)


class MinuteQuota:
    """Spreads what is spent evenly over time, so that no minute, wherever it begins, has more than its quota.

    The generic cell rate algorithm (ITU-T I.371) without a burst: one number says when everything spent so far will
    have been earned.
    """

    def __init__(self, per_minute: int) -> None:
        self._seconds_each = 60.0 / per_minute
        self._earned_at = float("-inf")

    def reserve(self, amount: float, now: float) -> float:
        """Spend an amount as soon as possible: the seconds to wait before that. ``now`` is of a monotonic clock."""
        begins = max(self._earned_at, now)
        self._earned_at = begins + amount * self._seconds_each
        return begins - now

    def correct(self, amount: float) -> None:
        """Spend more, or give back what is negative: an estimate has turned out."""
        self._earned_at += amount * self._seconds_each


FIRST_SIZE = 20
"""Calls at once before anything is known of the provider."""

LARGEST_SIZE = 256

_FASTER = 1.05
_ROUNDS_BETWEEN_TRIALS = 10


class CallLimit(Protocol):
    """A limit that is told how calls went. Times are seconds on one monotonic clock."""

    @property
    def size(self) -> int:
        """Most calls under way at once."""
        ...

    def finished(self, now: float, *, others_wait: bool) -> None:
        """A call came back in order; ``others_wait`` says whether the limit held any other back."""
        ...

    def refused(self, begun: float, now: float) -> bool:
        """A call begun at ``begun`` was turned away, since the provider has too much to do.

        Whether the limit is another now.
        """
        ...


class FixedLimit:
    """The number that the user wants."""

    def __init__(self, size: int) -> None:
        self.size = size

    def finished(self, now: float, *, others_wait: bool) -> None:
        """Nothing changes."""

    def refused(self, begun: float, now: float) -> bool:
        """Nothing changes."""
        return False


class AdaptiveLimit:
    """Grows for as long as more calls at once bring more replies a second, and shrinks when calls are turned away.

    The replies a second are measured over rounds: as many replies as the limit is large, while others wait. A round
    that was clearly faster than the best one lets the limit grow, by half until the first refusal and by a tenth
    after it; one that was not takes it back, and some rounds later growing is tried again. A server that only
    queues what it is sent (a local model) is thereby not sent more. A refusal takes a quarter off, once for all
    calls that were under way by then, which comes back by a tenth a round, however fast the round was: of a few
    replies, some of them late, no rate can be told.
    """

    def __init__(self, size: int = FIRST_SIZE) -> None:
        self.size = size
        self._best_size, self._best_rate = size, 0.0
        self._rounds_to_wait = 0
        self._size_before_refusal = 0
        self._was_refused = False
        self._shrunk_at = -math.inf
        self._round_began: float | None = None
        self._replies = 0

    def finished(self, now: float, *, others_wait: bool) -> None:
        """Count the reply towards the round; judge the round where it is over."""
        if not others_wait:
            self._round_began = None
        elif self._round_began is None:
            self._round_began, self._replies = now, 0
        else:
            self._replies += 1
            if self._replies >= self.size and now > self._round_began:
                self._judge(self._replies / (now - self._round_began))
                self._round_began, self._replies = now, 0

    def refused(self, begun: float, now: float) -> bool:
        """Shrink, unless the refusal is of the same moment as the last one."""
        if begun < self._shrunk_at:
            return False
        self._size_before_refusal = self.size
        self.size = max(1, self.size * 3 // 4)
        self._best_size, self._best_rate, self._rounds_to_wait = self.size, 0.0, 1
        self._was_refused, self._shrunk_at, self._round_began = True, now, None
        return True

    def _judge(self, rate: float) -> None:
        if self.size < self._size_before_refusal:
            self._best_size, self._best_rate = self.size, rate
            self._grow(self._size_before_refusal)
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
        step = self.size // 10 if self._was_refused else self.size // 2
        self.size = min(largest, self.size + max(1, step))


class Clock(Protocol):
    """Time, in seconds that never run backwards."""

    def now(self) -> float:
        """The present."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class RealClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Seconds since some moment."""
        return monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait, letting others work."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class RateLimits:
    """``concurrency`` is adaptive where it is None; ``rpm`` and ``tpm`` are one model's a minute."""

    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None


_REMEMBERED = 0.99
"""Weight of a call against the next one: the last hundred or so count."""

_TOLERATED_SHARE = 0.1

_CREDIT = 30.0
"""Calls that are taken to have gone well under a limit that was just lowered."""


class RateLimiter:
    """The pace of one model.

    A pause that the provider asks for holds all calls back, not only the one that was told, unless hardly any
    call was refused lately: a stray refusal is that call's affair.
    """

    def __init__(self, limit: CallLimit, gate: Gate, rpm: int | None, tpm: int | None, clock: Clock) -> None:
        self._limit, self._gate, self._clock = limit, gate, clock
        self._requests = MinuteQuota(rpm) if rpm else None
        self._tokens = MinuteQuota(tpm) if tpm else None
        self._paused_until = float("-inf")
        self._calls = self._refusals = 0.0
        self._halted = asyncio.Event()
        self.has_answered = False
        self.given_up: str | None = None
        """Why the model is asked no more, in one sentence."""

    @property
    def calls_at_once(self) -> int:
        """Most calls under way at once, at this moment."""
        return self._limit.size

    @asynccontextmanager
    async def call(self, tokens: int) -> AsyncIterator[float]:
        """A place for a call of about so many tokens; gives the moment at which it may begin.

        Raises:
            StoppedError: the run ends, or the model is given up, and the call has not begun.
        """
        async with self._gate:
            self._refuse_if_halted()
            await self._rest_for_quotas(tokens)
            while (seconds := self._paused_until - self._clock.now()) > 0:
                await self.rest(seconds)
            yield self._clock.now()

    def kept_up(self, tokens_beyond_estimate: int) -> None:
        """The call under way came back in order, having used so many tokens more than it was let in with."""
        self.has_answered = True
        if self._tokens is not None:
            self._tokens.correct(tokens_beyond_estimate)
        self._remember(refused=0.0)
        self._limit.finished(self._clock.now(), others_wait=self._gate.waiting > 0)

    def failed(self) -> None:
        """The call under way failed for a reason that asking less would not mend."""
        self._remember(refused=0.0)

    def turned_away(self, begun: float, pause: float) -> None:
        """The call begun then was refused for want of capacity; it waits for ``pause`` seconds."""
        now = self._clock.now()
        self._remember(refused=1.0)
        if self._refusals > _TOLERATED_SHARE * self._calls:
            self._paused_until = max(self._paused_until, now + pause)
            if self._limit.refused(begun, now):
                # What the larger limit brought upon itself is not held against the smaller one.
                self._calls, self._refusals = _CREDIT, 0.0

    def _remember(self, *, refused: float) -> None:
        self._calls = self._calls * _REMEMBERED + 1.0
        self._refusals = self._refusals * _REMEMBERED + refused

    async def rest(self, seconds: float) -> None:
        """Sleep before another attempt.

        Raises:
            StoppedError: the run ends meanwhile, or the model is given up.
        """
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        halted = asyncio.ensure_future(self._halted.wait())
        try:
            await asyncio.wait({sleeping, halted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            halted.cancel()
        self._refuse_if_halted()

    def halt(self) -> None:
        """Begin no call any more; those under way go on."""
        self._halted.set()
        self._gate.halt()

    def give_up(self, why: str) -> None:
        """Begin no call of this model any more; ``why`` is a sentence. A gate that others share stays open."""
        self.given_up = self.given_up or why
        self._halted.set()

    def try_again(self) -> None:
        """Ask a model that was given up again: what was wrong may have been mended since."""
        if self.given_up is not None:
            self.given_up = None
            self._halted.clear()

    def _refuse_if_halted(self) -> None:
        if self.given_up is not None:
            raise ModelUnavailableError(self.given_up)
        if self._halted.is_set():
            raise StoppedError

    async def _rest_for_quotas(self, tokens: int) -> None:
        now = self._clock.now()
        spent = ((self._requests, 1), (self._tokens, tokens))
        waits = [quota.reserve(amount, now) for quota, amount in spent if quota]
        if (seconds := max(waits, default=0.0)) > 0:
            await self.rest(seconds)


class RateLimiters:
    """A pace for each model of a run; a fixed number of calls at once is shared by all of them."""

    def __init__(self, limits: RateLimits | None = None, clock: Clock | None = None) -> None:
        self._limits, self._clock = limits or RateLimits(), clock or RealClock()
        fixed = self._limits.concurrency
        self._shared = FixedLimit(fixed) if fixed else None
        self._shared_gate = Gate(lambda: fixed or 0)
        self._by_model: dict[str, RateLimiter] = {}
        self._halted = False

    def of(self, model: str) -> RateLimiter:
        """The pace of a model, by its LiteLLM name."""
        if model not in self._by_model:
            self._by_model[model] = self._new(quotas=model != EXTRACTIVE_MODEL)
            if self._halted:
                self._by_model[model].halt()
        return self._by_model[model]

    def halt(self) -> None:
        """Begin no call any more, of any model."""
        self._halted = True
        for pace in self._by_model.values():
            pace.halt()

    @property
    def given_up(self) -> dict[str, str]:
        """The models that are asked no more, each with the sentence of why."""
        return {model: pace.given_up for model, pace in self._by_model.items() if pace.given_up is not None}

    def try_again(self) -> None:
        """Ask models that were given up again."""
        for pace in self._by_model.values():
            pace.try_again()

    def _new(self, *, quotas: bool) -> RateLimiter:
        rpm, tpm = (self._limits.rpm, self._limits.tpm) if quotas else (None, None)
        if self._shared is not None:
            return RateLimiter(self._shared, self._shared_gate, rpm, tpm, self._clock)
        limit = AdaptiveLimit()
        return RateLimiter(limit, Gate(lambda: limit.size), rpm, tpm, self._clock)
