"""Markers of notable positions on the timeline, and their counts for any range of positions in constant time.

Counts are prefix sums, so painting a strip takes as many steps as it has columns, however long the conversation.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final, Literal, get_args

from memreplay.conversations.models import Conversation
from memreplay.timeline.event_store import EventSummary

MarkKind = Literal[
    "evidence", "write", "promotion", "supersession", "drop", "question", "error", "bookmark", "session"
]
"""``write``: the write path changed a store (the read path's own notes do not count). ``promotion``: a candidate
was stored; ``drop``: it was not. ``session``: a session of the conversation starts."""

MARK_KINDS: Final[tuple[MarkKind, ...]] = get_args(MarkKind)

INTERESTING: Final[frozenset[MarkKind]] = frozenset({"evidence", "write", "promotion", "supersession", "error"})
"""The kinds that ``]`` and ``[`` stop at."""

_KIND_OF_EVENT: Final[Mapping[str, MarkKind]] = {"backend_failed": "error", "question_asked": "question"}


@dataclass(frozen=True)
class Column:
    """The positions ``first`` to ``last``, and the number of marks of each kind in them, without zeros."""

    first: int
    last: int
    counts: Mapping[MarkKind, int]


@dataclass(frozen=True)
class SessionStart:
    """The position of a session's first turn. ``date`` comes from the conversation; None for undated ones."""

    turn: int
    number: int
    date: datetime | None


class _Tally:
    """Marks of one kind: counts by position, their prefix sums, and the positions with any."""

    def __init__(self) -> None:
        self._counts = array("I", [0])
        self._sums = array("I", [0])
        self.positions: list[int] = []

    def add(self, turn: int) -> None:
        if turn >= len(self._counts):
            self._counts.extend([0] * (turn + 1 - len(self._counts)))
        self._counts[turn] += 1
        del self._sums[turn + 1 :]
        if not self.positions or self.positions[-1] < turn:
            self.positions.append(turn)
        elif self._counts[turn] == 1:
            insort(self.positions, turn)

    def between(self, first: int, last: int) -> int:
        """Return the number of marks from ``first`` to ``last``, both included."""
        return self._until(last) - self._until(first - 1)

    def _until(self, turn: int) -> int:
        wanted = min(turn, len(self._counts) - 1) + 1
        for known in range(len(self._sums) - 1, wanted):
            self._sums.append(self._sums[known] + self._counts[known])
        return self._sums[max(wanted, 0)]


class Markers:
    """All marks of one conversation, as far as it was played. Evidence and sessions are marked from the start."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._tallies: dict[MarkKind, _Tally] = {kind: _Tally() for kind in MARK_KINDS}
        self.sessions = _session_starts(conversation)
        for start in self.sessions:
            self._tallies["session"].add(start.turn)
        known = conversation.turns_by_id
        evidence = {turn for question in conversation.questions for turn in question.evidence if turn in known}
        for number in sorted(known[turn].number for turn in evidence):
            self._tallies["evidence"].add(number)

    def apply(self, summary: EventSummary) -> None:
        for kind in _kinds_of(summary):
            self._tallies[kind].add(summary.turn)

    def begin_session(self, turn: int, number: int, date: datetime | None) -> None:
        """Add a session to a conversation that grows while it is played."""
        self.sessions = (*self.sessions, SessionStart(turn, number, date))
        self._tallies["session"].add(turn)

    def set_bookmarks(self, turns: Iterable[int]) -> None:
        """Replace all bookmarks."""
        self._tallies["bookmark"] = _Tally()
        for turn in sorted(turns):
            self._tallies["bookmark"].add(turn)

    def at(self, turn: int) -> Mapping[MarkKind, int]:
        """Return the marks of one position."""
        return self._counts(turn, turn, MARK_KINDS)

    def columns(self, width: int, last: int, kinds: Collection[MarkKind] = MARK_KINDS) -> list[Column]:
        """Positions 0 to ``last`` in at most ``width`` columns of equal share."""
        total = last + 1
        width = max(1, min(width, total))
        edges = [index * total // width for index in range(width + 1)]
        return [Column(first, end - 1, self._counts(first, end - 1, kinds)) for first, end in pairwise(edges)]

    def next(self, turn: int, kinds: Collection[MarkKind] = INTERESTING) -> int | None:
        """Return the first position after ``turn`` that has a mark of these kinds."""
        found = []
        for kind in kinds:
            positions = self._tallies[kind].positions
            index = bisect_right(positions, turn)
            found += positions[index : index + 1]
        return min(found, default=None)

    def previous(self, turn: int, kinds: Collection[MarkKind] = INTERESTING) -> int | None:
        """Return the last position before ``turn`` that has a mark of these kinds."""
        found = []
        for kind in kinds:
            positions = self._tallies[kind].positions
            index = bisect_left(positions, turn)
            found += positions[index - 1 : index] if index else []
        return max(found, default=None)

    def _counts(self, first: int, last: int, kinds: Collection[MarkKind]) -> dict[MarkKind, int]:
        counts = {kind: self._tallies[kind].between(first, last) for kind in kinds}
        return {kind: count for kind, count in counts.items() if count}


def column_of(turn: int, columns: int, last: int) -> int:
    """Return the 0-based column of a position, in a strip of ``columns`` columns for positions 0 to ``last``."""
    total = last + 1
    columns = max(1, min(columns, total))
    return max(0, min(columns - 1, ((min(turn, last) + 1) * columns - 1) // total))


def _kinds_of(summary: EventSummary) -> Iterable[MarkKind]:
    if summary.write is not None:
        if summary.write.phase != "perceive":
            yield "write"
    elif summary.decision is not None:
        yield "promotion" if summary.decision.decision in ("ADD", "UPDATE") else "drop"
        if summary.decision.superseded_id is not None:
            yield "supersession"
    elif summary.kind in _KIND_OF_EVENT:
        yield _KIND_OF_EVENT[summary.kind]


def _session_starts(conversation: Conversation) -> tuple[SessionStart, ...]:
    starts: dict[int, SessionStart] = {}
    for turn in conversation.turns:
        if turn.session not in starts:
            starts[turn.session] = SessionStart(turn.number, turn.session, conversation.date_of(turn))
    return tuple(starts.values())
