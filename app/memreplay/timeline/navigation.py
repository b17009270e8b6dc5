"""Cursor moves, as pure functions: to interesting positions, by session, and repeated by a count."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection

from memreplay.timeline.markers import INTERESTING, MarkKind
from memreplay.timeline.timeline import Timeline

Move = Callable[[int], int | None]
"""A function from a position to the next one; None if there is none in that direction."""


def repeated(move: Move, cursor: int, count: int) -> int | None:
    """Repeat a move ``count`` times, or as often as possible. None if the first move is not possible."""
    reached = None
    for _ in range(count):
        further = move(cursor)
        if further is None:
            break
        reached = cursor = further
    return reached


def next_interesting(timeline: Timeline, cursor: int, kinds: Collection[MarkKind] = INTERESTING) -> int | None:
    """Return the next position, up to the last one reached, with a mark of these kinds."""
    found = timeline.marks.next(cursor, kinds)
    return found if found is not None and found <= timeline.reached else None


def previous_interesting(timeline: Timeline, cursor: int, kinds: Collection[MarkKind] = INTERESTING) -> int | None:
    """Return the previous position with a mark of these kinds."""
    return timeline.marks.previous(cursor, kinds)


def next_session(timeline: Timeline, cursor: int) -> int | None:
    """Return the first turn of the next session. In a live conversation it may not be played yet."""
    starts = [start.turn for start in timeline.marks.sessions]
    index = bisect_right(starts, cursor)
    return starts[index] if index < len(starts) else None


def previous_session(timeline: Timeline, cursor: int) -> int | None:
    """Return the first turn of this session, or of the previous one if the cursor is already on it."""
    starts = [start.turn for start in timeline.marks.sessions]
    index = bisect_left(starts, cursor)
    return starts[index - 1] if index else None
