"""The pace at which a provider is asked: calls at once, quotas a minute, and the pauses it asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from app.answering.call_limits import AdaptiveLimit, CallLimit, FixedLimit
from app.answering.gate import Gate, GivenUpError, HaltedError
from app.answering.model_names import EXTRACTIVE_MODEL
from app.answering.rate_limits import RateLimit


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
class PaceLimits:
    """``concurrency`` is adaptive where it is None; ``rpm`` and ``tpm`` are one model's a minute."""

    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None


_REMEMBERED = 0.99
"""Weight of a call against the next one: the last hundred or so count."""

_TOLERATED_SHARE = 0.1

_CREDIT = 30.0
"""Calls that are taken to have gone well under a limit that was just lowered."""


class Pace:
    """The pace of one model.

    A pause that the provider asks for holds all calls back, not only the one that was told, unless hardly any
    call was refused lately: a stray refusal is that call's affair.
    """

    def __init__(self, limit: CallLimit, gate: Gate, rpm: int | None, tpm: int | None, clock: Clock) -> None:
        self._limit, self._gate, self._clock = limit, gate, clock
        self._requests = RateLimit(rpm) if rpm else None
        self._tokens = RateLimit(tpm) if tpm else None
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
            HaltedError: the run ends, or the model is given up, and the call has not begun.
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
            HaltedError: the run ends meanwhile, or the model is given up.
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
            raise GivenUpError(self.given_up)
        if self._halted.is_set():
            raise HaltedError

    async def _rest_for_quotas(self, tokens: int) -> None:
        now = self._clock.now()
        spent = ((self._requests, 1), (self._tokens, tokens))
        waits = [quota.reserve(amount, now) for quota, amount in spent if quota]
        if (seconds := max(waits, default=0.0)) > 0:
            await self.rest(seconds)


class Paces:
    """A pace for each model of a run; a fixed number of calls at once is shared by all of them."""

    def __init__(self, limits: PaceLimits | None = None, clock: Clock | None = None) -> None:
        self._limits, self._clock = limits or PaceLimits(), clock or RealClock()
        fixed = self._limits.concurrency
        self._shared = FixedLimit(fixed) if fixed else None
        self._shared_gate = Gate(lambda: fixed or 0)
        self._by_model: dict[str, Pace] = {}
        self._halted = False

    def of(self, model: str) -> Pace:
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

    def _new(self, *, quotas: bool) -> Pace:
        rpm, tpm = (self._limits.rpm, self._limits.tpm) if quotas else (None, None)
        if self._shared is not None:
            return Pace(self._shared, self._shared_gate, rpm, tpm, self._clock)
        limit = AdaptiveLimit()
        return Pace(limit, Gate(lambda: limit.size), rpm, tpm, self._clock)
