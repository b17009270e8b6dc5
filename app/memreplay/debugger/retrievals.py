"""Where something was retrieved: by the id of a hit or of a turn, every read path that found it, and at which rank.

The index is made of the read paths of ordinary turns. It grows with the timeline when it is asked to, a stretch at
a time, since a long recording holds tens of thousands of them.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from memreplay.timeline.timeline import Timeline

_MISSED = 1
_RANK_BITS = 24
_RANK_MASK = (1 << _RANK_BITS) - 1


@dataclass(frozen=True)
class Retrieval:
    """Something was found at a position: at which 1-based rank, and whether that was below the cut."""

    turn: int
    rank: int
    missed: bool


class RetrievalIndex:
    """Every read path so far, turned over: from what was found to where.

    An index that is behind its timeline says so (:attr:`behind`), and answers for what it has seen.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._seen: dict[str, int] = defaultdict(int)
        self._found: dict[tuple[str, str], array[int]] = {}
        self._taking_in = Lock()

    @property
    def behind(self) -> int:
        """Read paths that are not in the index yet."""
        backends = self._timeline.backends
        return sum(len(self._timeline.perceived_index(name)) - self._seen[name] for name in backends)

    def catch_up(self, most: int | None = None) -> bool:
        """Take in read paths, at most so many. True where none is left. Threads take turns at it."""
        with self._taking_in:
            return self._catch_up(most)

    def _catch_up(self, most: int | None) -> bool:
        left = self.behind if most is None else most
        for backend in self._timeline.backends:
            track = self._timeline.perceived_index(backend)
            start = self._seen[backend]
            for place in range(start, min(len(track), start + left)):
                self._take_in(backend, track.turns[place], track.refs[place])
                self._seen[backend] = place + 1
                left -= 1
        return self.behind == 0

    def _take_in(self, backend: str, turn: int, ref: int) -> None:
        best: dict[str, int] = {}
        for candidate in self._timeline.archive.candidates(ref):
            entry = turn << _RANK_BITS + 1 | min(candidate.rank, _RANK_MASK) << 1 | candidate.missed
            for item in (candidate.id, *candidate.turns, *candidate.sources):
                best.setdefault(item, entry)
        for item, entry in best.items():
            self._found.setdefault((backend, item), array("Q")).append(entry)

    def of(self, backend: str, item: str) -> Sequence[Retrieval]:
        """Where an item was found by one backend, by position; the best of its places at each."""
        return [
            Retrieval(entry >> _RANK_BITS + 1, entry >> 1 & _RANK_MASK, bool(entry & _MISSED))
            for entry in self._found.get((backend, item), ())
        ]

    def turns_of(self, backend: str, item: str) -> list[int]:
        """The positions at which one backend found an item."""
        return [entry >> _RANK_BITS + 1 for entry in self._found.get((backend, item), ())]
