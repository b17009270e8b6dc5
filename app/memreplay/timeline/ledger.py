"""An index of events of one kind by position, and the promotion ledger built on it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from memory_backends.stores.trace import PromotionDecision
from memreplay.timeline.event_store import DecisionSummary
from memreplay.timeline.fold import LazySequence

LedgerEntry = tuple[int, PromotionDecision]
"""The position of a decision, and the decision."""


class PositionIndex:
    """Positions and references of events, ordered by position. An event that arrives late is inserted in order."""

    def __init__(self) -> None:
        self.turns = array("I")
        self.refs = array("q")

    def __len__(self) -> int:
        return len(self.turns)

    def add(self, turn: int, ref: int) -> int:
        """Add an event and return its 0-based place."""
        if not self.turns or self.turns[-1] <= turn:
            self.turns.append(turn)
            self.refs.append(ref)
            return len(self.turns) - 1
        place = bisect_right(self.turns, turn)
        self.turns.insert(place, turn)
        self.refs.insert(place, ref)
        return place

    def latest(self, turn: int) -> int | None:
        """The reference of the last event at or before a position, if there is one."""
        end = bisect_right(self.turns, turn)
        return self.refs[end - 1] if end else None

    def refs_at(self, turn: int) -> array[int]:
        """References of the events at exactly this position."""
        return self.refs[bisect_left(self.turns, turn) : bisect_right(self.turns, turn)]


class Ledger:
    """The promotion decisions of one backend.

    Decisions are loaded on access. Counts by kind and source turns are indexed without loading.
    """

    def __init__(self, load: Callable[[int], PromotionDecision]) -> None:
        self._load = load
        self._track = PositionIndex()
        self._turns_of_kind: dict[str, array[int]] = defaultdict(lambda: array("I"))
        self._from: dict[str, list[int]] = defaultdict(list)

    def add(self, turn: int, ref: int, decision: DecisionSummary) -> None:
        """Append a decision; positions never decrease."""
        place = self._track.add(turn, ref)
        self._turns_of_kind[decision.decision].append(turn)
        for source in decision.sources:
            self._from[source].append(place)

    def counts_until(self, turn: int) -> Mapping[str, int]:
        """The number of decisions of each kind up to a position."""
        return {kind: bisect_right(turns, turn) for kind, turns in self._turns_of_kind.items()}

    def at(self, turn: int) -> list[PromotionDecision]:
        """The decisions of exactly this position, in order."""
        return [self._load(ref) for ref in self._track.refs_at(turn)]

    def until(self, turn: int) -> Sequence[LedgerEntry]:
        """All decisions up to a position, oldest first, as a view that loads nothing."""
        return LazySequence(range(bisect_right(self._track.turns, turn)), self._entry)

    def about_turn(self, turn_id: str) -> list[LedgerEntry]:
        """The decisions on candidates that were distilled from a turn, oldest first."""
        return [self._entry(place) for place in self._from.get(turn_id, ())]

    def _entry(self, place: int) -> LedgerEntry:
        return self._track.turns[place], self._load(self._track.refs[place])
