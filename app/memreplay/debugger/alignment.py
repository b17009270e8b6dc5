"""Align two recordings by turn."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from memreplay.conversations.models import Conversation


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
