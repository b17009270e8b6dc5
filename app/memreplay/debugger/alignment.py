"""Two runs: how many turns they have in common, and from which on their memories hold different things."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from dataclasses import dataclass

from memory_backends.stores.trace import MemoryOperation, PatchChange
from memreplay.conversations.models import Conversation
from memreplay.timeline.timeline import Timeline


def turns_in_both(left: Conversation, right: Conversation) -> int:
    """Return how many turns two conversations have in common: same speaker, same text, in the same order.

    Of equal turns the first goes with the first, the second with the second, and so on.
    """
    waiting: dict[tuple[str, str], deque[int]] = defaultdict(deque)
    for turn in right.turns:
        waiting[right.label_of(turn), turn.text].append(turn.number)
    # The length of the longest rising subsequence, by patience sorting.
    tops: list[int] = []
    for turn in left.turns:
        if same := waiting.get((left.label_of(turn), turn.text)):
            number = same.popleft()
            place = bisect_left(tops, number)
            tops[place : place + 1] = [number]
    return len(tops)


_WALL_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
"""Times of writing differ from run to run; what a conversation says of its dates is in the messages too."""


@dataclass(frozen=True)
class Divergence:
    """The first turn at which a memory wrote something else than in the other run; None if there is none.

    ``played_to`` is the turn up to which an unfinished run was played, and the runs are compared; None if both were
    played to their ends.
    """

    turn: int | None
    played_to: int | None = None


def divergence(trunk: Timeline, branch: Timeline, backend: str) -> Divergence:
    """Return where a memory begins to differ in two runs."""
    unfinished = min((each.played for each in (trunk, branch) if each.played < each.last_turn), default=None)
    end = max(trunk.last_turn, branch.last_turn) if unfinished is None else unfinished
    turns = range(end + 1)
    differs = (turn for turn in turns if _written(trunk, backend, turn) != _written(branch, backend, turn))
    return Divergence(next(differs, None), unfinished)


def _written(timeline: Timeline, backend: str, turn: int) -> list[str]:
    return [_without_times(operation) for operation in timeline.archive.written_at(backend, turn)]


def _without_times(operation: MemoryOperation) -> str:
    """Return an operation as text. Two writes within a millisecond leave a time as it was, without a step that
    sets it.
    """
    if isinstance(operation.change, PatchChange):
        steps = tuple(step for step in operation.change.steps if not _WALL_CLOCK.fullmatch(str(step.value)))
        change = operation.change.model_copy(update={"steps": steps})
        operation = operation.model_copy(update={"change": change})
    text = operation.model_dump_json(include={"store", "command", "key", "change", "actor"})
    return _WALL_CLOCK.sub("", text)
