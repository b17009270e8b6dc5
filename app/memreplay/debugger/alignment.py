"""Two runs of a conversation: which turns correspond, and from which on their memories hold different things."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from memory_backends.stores.trace import MemoryOperation, PatchChange
from memreplay.conversations.models import Conversation
from memreplay.timeline.timeline import Timeline


class TurnAlignment:
    """Maps turns of one conversation to those of another with the same text and speaker, in order.

    A position without a match maps like the last matching turn before it.
    """

    def __init__(self, left: Conversation, right: Conversation) -> None:
        pairs = _same_turns(left, right)
        self._to_right = _filled(len(left.turns), dict(pairs), len(right.turns))
        self.paired = len(pairs)

    def to_right(self, position: int) -> int:
        """The position in the right conversation for one in the left."""
        return self._to_right[max(0, min(position, len(self._to_right) - 1))]


def _same_turns(left: Conversation, right: Conversation) -> list[tuple[int, int]]:
    """Pairs of numbers of equal turns, both increasing."""
    waiting: dict[tuple[str, str], deque[int]] = defaultdict(deque)
    for turn in right.turns:
        waiting[right.label_of(turn), turn.text].append(turn.number)
    candidates: list[tuple[int, int]] = []
    for turn in left.turns:
        same = waiting.get((left.label_of(turn), turn.text))
        if same:
            candidates.append((turn.number, same.popleft()))
    return _longest_rising(candidates)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs whose second numbers rise (patience sorting)."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, number) in enumerate(pairs):
        low, high = 0, len(tops)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if tops[middle] < number else (low, middle)
        before.append(ends[low - 1] if low else -1)
        tops[low : low + 1] = [number]
        ends[low : low + 1] = [index]
    chosen: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]


def _filled(turns: int, known: Mapping[int, int], other_turns: int) -> list[int]:
    """The other side's position for each position from 0 to one past the last turn."""
    positions, last = [0], 0
    for number in range(1, turns + 1):
        last = known.get(number, last)
        positions.append(last)
    return [*positions, other_turns + 1]


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
    """An operation as text. Two writes within a millisecond leave a time as it was, without a step that sets it."""
    if isinstance(operation.change, PatchChange):
        steps = tuple(step for step in operation.change.steps if not _WALL_CLOCK.fullmatch(str(step.value)))
        change = operation.change.model_copy(update={"steps": steps})
        operation = operation.model_copy(update={"change": change})
    text = operation.model_dump_json(include={"store", "command", "key", "change", "actor"})
    return _WALL_CLOCK.sub("", text)
