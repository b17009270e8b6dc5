"""Where the cursor goes: to what is interesting, by session, and as often as a count says. Pure, like all moves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection

from memreplay.timeline.markers import INTERESTING, MarkKind
from memreplay.timeline.timeline import Timeline

Move = Callable[[int], int | None]
"""From a position to the next one; None where there is none in that direction."""


def repeated(move: Move, cursor: int, count: int) -> int | None:
    """A move made ``count`` times; as far as it goes where there are fewer. None where it goes nowhere."""
    reached = None
    for _ in range(count):
        further = move(cursor)
        if further is None:
            break
        reached = cursor = further
    return reached


def next_interesting(timeline: Timeline, cursor: int, kinds: Collection[MarkKind] = INTERESTING) -> int | None:
    """The next position, up to the last that was reached, at which something happened."""
    found = timeline.marks.next(cursor, kinds)
    return found if found is not None and found <= timeline.reached else None


def previous_interesting(timeline: Timeline, cursor: int, kinds: Collection[MarkKind] = INTERESTING) -> int | None:
    """The previous such position."""
    return timeline.marks.previous(cursor, kinds)


def next_session(timeline: Timeline, cursor: int) -> int | None:
    """The first turn of the next session. It may lie beyond what was played of a live conversation."""
    starts = [start.turn for start in timeline.marks.sessions]
    index = bisect_right(starts, cursor)
    return starts[index] if index < len(starts) else None


def previous_session(timeline: Timeline, cursor: int) -> int | None:
    """The first turn of this session; of the one before, where the cursor stands on it."""
    starts = [start.turn for start in timeline.marks.sessions]
    index = bisect_left(starts, cursor)
    return starts[index - 1] if index else None
