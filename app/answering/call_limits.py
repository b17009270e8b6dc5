"""How many calls may be under way at once: a number that was asked for, or one that follows the provider."""

from __future__ import annotations

import math
from typing import Protocol

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
