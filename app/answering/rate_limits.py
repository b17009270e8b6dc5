"""Keeping under a provider's quota a minute: of requests, or of tokens."""

from __future__ import annotations


class RateLimit:
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
