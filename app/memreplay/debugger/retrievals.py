"""An index of retrievals: every read path that found a hit or a turn, and its rank there.

It covers the read paths of ordinary turns, of which a long recording has tens of thousands. So it is brought up to
date on demand, some at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

from memreplay.timeline.timeline import Timeline

_MISSED = 1
_RANK_BITS = 24
_RANK_MASK = (1 << _RANK_BITS) - 1


@dataclass(frozen=True)
class Retrieval:
    """Something was found at a position: its 1-based rank, and whether that is below the cut (``missed``)."""

    turn: int
    rank: int
    missed: bool


class RetrievalIndex:
    """An inverted index of read paths. It answers from those it has indexed; :attr:`behind` counts the others."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._indexed: dict[str, int] = defaultdict(int)
        self._found: dict[tuple[str, str], array[int]] = {}
        self._hit: dict[tuple[str, str], array[int]] = {}
        self._lock = Lock()

    @property
    def behind(self) -> int:
        """Return the number of read paths that are not indexed yet."""
        backends = self._timeline.backends
        return sum(len(self._timeline.perceived_index(name)) - self._indexed[name] for name in backends)

    def catch_up(self, most: int | None = None, backend: str | None = None) -> bool:
        """Index at most this many read paths (default: all), of one backend or of all. True if none is left.

        It is safe to call from threads.
        """
        with self._lock:
            return self._catch_up(most, self._timeline.backends if backend is None else [backend])

    def _catch_up(self, most: int | None, backends: Sequence[str]) -> bool:
        left = self.behind if most is None else most
        for backend in backends:
            index = self._timeline.perceived_index(backend)
            start = self._indexed[backend]
            for place in range(start, min(len(index), start + left)):
                self._add(backend, index.turns[place], index.refs[place])
                self._indexed[backend] = place + 1
                left -= 1
        return self.behind == 0

    def _add(self, backend: str, turn: int, ref: int) -> None:
        best: dict[str, int] = {}
        hit: set[str] = set()
        for candidate in self._timeline.archive.candidates(ref):
            entry = turn << _RANK_BITS + 1 | min(candidate.rank, _RANK_MASK) << 1 | candidate.missed
            for item in (candidate.id, *candidate.turns, *candidate.sources):
                best.setdefault(item, entry)
            if not candidate.missed:
                hit.update((candidate.id, *candidate.turns))
        for item, entry in best.items():
            self._found.setdefault((backend, item), array("Q")).append(entry)
        for item in hit:
            self._hit.setdefault((backend, item), array("I")).append(turn)

    def of(self, backend: str, item: str) -> Sequence[Retrieval]:
        """Return where one backend found an item, by position, each with its best rank."""
        return [
            Retrieval(entry >> _RANK_BITS + 1, entry >> 1 & _RANK_MASK, bool(entry & _MISSED))
            for entry in self._found.get((backend, item), ())
        ]

    def turns_of(self, backend: str, item: str) -> list[int]:
        """Return the positions at which one backend found an item."""
        return [entry >> _RANK_BITS + 1 for entry in self._found.get((backend, item), ())]

    def hits_on(self, backend: str, items: Iterable[str], until: int) -> int:
        """Return the number of positions up to ``until`` at which one backend had a hit on any of these items: a
        stored item by its id, or a text that holds one of these turns verbatim.
        """
        found: set[int] = set()
        for item in items:
            turns = self._hit.get((backend, item), ())
            found.update(turns[: bisect_right(turns, until)])
        return len(found)
