"""A number typed before a movement, as in vim: how often it is made."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

_SECONDS_IT_LASTS = 1.5
_MOST_DIGITS = 6


class TypedCount:
    """Digits as they are typed. A number that was left alone for a while is forgotten."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._digits = ""
        self._typed_at = 0.0

    def add(self, digit: int) -> bool:
        """Take in a digit. True where a number begins with it."""
        begins = not self.pending
        self._digits = ("" if begins else self._digits) + str(digit)
        self._digits = self._digits[-_MOST_DIGITS:]
        self._typed_at = self._now()
        return begins

    @property
    def pending(self) -> bool:
        """Whether a number is being typed."""
        return bool(self._digits) and self._now() - self._typed_at <= _SECONDS_IT_LASTS

    def take(self) -> int | None:
        """The number, which is used up by this; None where none was typed, or it is 0."""
        number = int(self._digits) if self.pending else 0
        self._digits = ""
        return number or None
