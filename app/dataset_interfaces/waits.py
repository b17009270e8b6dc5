"""The pauses of a script, as they stand in an example and in a definition file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

Wait = dict[str, Any]
"""Arguments of a ``WaitAction``; empty for no pause."""

_LAST_PAUSE_ENDS_AT = 90.0
"""Percent of the memory span at which the last line of a script is due, where its waits are not given."""


class WaitCreator:
    """Builds, writes and reads the waits of an example."""

    @classmethod
    def create_wait(
        cls, tokens: int | None = None, time: timedelta | None = None, percentage_finished: float | None = None
    ) -> Wait:
        """A pause; what is None is left out."""
        given = {"tokens": tokens, "time": time, "percentage_finished": percentage_finished}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def serialise(cls, w_dict: Mapping[str, Any]) -> Wait:
        """As JSON holds it: ``time`` in seconds, whole days included."""
        wait = dict(w_dict)
        if "time" in wait:
            wait["time"] = _seconds(wait["time"])
        return wait

    @classmethod
    def unserialise(cls, w_dict: Mapping[str, Any]) -> Wait:
        """Back from JSON."""
        wait = dict(w_dict)
        if "time" in wait:
            wait["time"] = timedelta(seconds=wait["time"])
        return wait


def even_waits(lines: int) -> list[Wait]:
    """Line *i* of *n* waits until ``(i + 1) · 90 / (n - 1)`` percent of the memory span; the last has no wait."""
    if lines < 2:
        return [{} for _ in range(lines)]
    share = _LAST_PAUSE_ENDS_AT / (lines - 1)
    return [{"percentage_finished": (line + 1) * share} for line in range(lines - 1)] + [{}]


def _seconds(time: timedelta) -> int | float:
    seconds = time.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
