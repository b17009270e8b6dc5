"""From which turn on two runs of a conversation hold different things in memory."""

from __future__ import annotations

import re

from memory_backends.stores.trace import MemoryOperation
from memreplay.timeline.timeline import Timeline

_WALL_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
"""Times of writing differ from run to run; what a conversation says of its dates is in the messages too."""


def diverges_at(trunk: Timeline, branch: Timeline, backend: str) -> int | None:
    """The first turn at which a memory wrote something else than in the other run; None if there is none.

    Turns that an unfinished run has not played are not compared.
    """
    unfinished = [each.played for each in (trunk, branch) if each.played < each.last_turn]
    end = min(unfinished, default=max(trunk.last_turn, branch.last_turn))
    for turn in range(end + 1):
        if _written(trunk, backend, turn) != _written(branch, backend, turn):
            return turn
    return None


def _written(timeline: Timeline, backend: str, turn: int) -> list[str]:
    return [_without_times(operation) for operation in timeline.archive.written_at(backend, turn)]


def _without_times(operation: MemoryOperation) -> str:
    text = operation.model_dump_json(include={"store", "command", "key", "change", "actor"})
    return _WALL_CLOCK.sub("", text)
