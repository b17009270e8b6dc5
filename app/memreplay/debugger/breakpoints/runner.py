"""Where a breakpoint stops, live or in a recording. Nothing is executed."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memreplay.debugger.breakpoints.syntax import (
    Both,
    Changed,
    Compare,
    CompareOp,
    Condition,
    Contains,
    Either,
    Exists,
    Expression,
    HitSubject,
    KeySubject,
    Measure,
    Not,
    PathSubject,
    Subject,
    Test,
    TextSubject,
    Watch,
)
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.text import folded
from memreplay.timeline.fold import MISSING, Path, StateHistory, value_in
from memreplay.timeline.timeline import Timeline

_OPERATORS: Final[Mapping[CompareOp, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_holds(condition: Condition, value: Any) -> bool:
    """Whether a condition other than ``changed`` holds for a value that there is."""
    match condition:
        case Exists():
            return True
        case Compare(op, literal):
            return compares(op, value, literal)
        case Contains(text):
            wanted = folded(text)
            if isinstance(value, str):
                return wanted in folded(value)
            return isinstance(value, list | Mapping) and any(folded(str(item)) == wanted for item in value)
        case _:
            return False


def compares(op: CompareOp, value: Any, literal: Any) -> bool:
    """JSON's equality, where true is not 1; an order only between numbers or between texts."""
    numbers = _is_number(value) and _is_number(literal)
    if op in ("==", "!="):
        alike = type(value) is type(literal) or numbers
        return (alike and value == literal) is (op == "==")
    return (numbers or (isinstance(value, str) and isinstance(literal, str))) and _OPERATORS[op](value, literal)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Stop:
    """A position at which watches fire: which of them, each with the architecture that it fired in."""

    turn: int
    fired: tuple[tuple[Watch, str], ...]


class BreakpointRunner:
    """Finds the stops of a set of watches in a timeline, which may go on growing.

    ``retrievals`` is what hits are looked up in; it is brought up to date where a watch needs it, so whoever
    opens a long recording lets it catch up beforehand.
    """

    def __init__(self, timeline: Timeline, retrievals: RetrievalIndex, watches: Sequence[Watch]) -> None:
        self.watches = tuple(watches)
        self._timeline = timeline
        self._retrievals = retrievals
        self._known: dict[tuple[Test, str], tuple[int, Sequence[int]]] = {}

    @property
    def must_read(self) -> bool:
        """Whether looking for a stop would have the retrievals catch up first, which may take seconds."""
        asks = any(_asks_for_hits(watch.expression) for watch in self.watches if watch.enabled)
        return asks and self._retrievals.behind > 0

    def next_stop(self, cursor: int) -> Stop | None:
        """The first position after the cursor, up to the last that was reached, at which a watch fires."""
        found = [self._next_of(watch, backend, cursor) for watch, backend in self._pairs()]
        turn = min((turn for turn in found if turn is not None), default=None)
        return None if turn is None else self.stop_at(turn)

    def previous_stop(self, cursor: int) -> Stop | None:
        """The last position before the cursor at which a watch fires."""
        found = [self._previous_of(watch, backend, cursor) for watch, backend in self._pairs()]
        turn = max((turn for turn in found if turn is not None), default=None)
        return None if turn is None else self.stop_at(turn)

    def stop_at(self, turn: int) -> Stop | None:
        """What fires at exactly this position; None where nothing does. A live session asks this after a step."""
        fired = tuple((watch, name) for watch, name in self._pairs() if self._fires(watch.expression, name, turn))
        return Stop(turn, fired) if fired else None

    def _pairs(self) -> Iterable[tuple[Watch, str]]:
        for watch in self.watches:
            for backend in self._timeline.backends:
                if watch.enabled and watch.backend in (None, backend):
                    yield watch, backend

    def _next_of(self, watch: Watch, backend: str, cursor: int) -> int | None:
        turns = self._turns_of(watch.expression, backend)
        places = range(bisect_right(turns, cursor), bisect_right(turns, self._timeline.reached))
        return self._first_that_fires(watch, backend, (turns[place] for place in places))

    def _previous_of(self, watch: Watch, backend: str, cursor: int) -> int | None:
        turns = self._turns_of(watch.expression, backend)
        places = range(bisect_left(turns, cursor) - 1, -1, -1)
        return self._first_that_fires(watch, backend, (turns[place] for place in places))

    def _first_that_fires(self, watch: Watch, backend: str, turns: Iterable[int]) -> int | None:
        return next((turn for turn in turns if self._fires(watch.expression, backend, turn)), None)

    # ---- what holds -------------------------------------------------------------------------------------

    def _fires(self, expression: Expression, backend: str, turn: int) -> bool:
        if not self._holds(expression, backend, turn):
            return False
        return self._happens(expression, backend, turn) or not self._holds(expression, backend, turn - 1)

    def _happens(self, expression: Expression, backend: str, turn: int) -> bool:
        """Whether something in it that is of one moment only is of this one."""
        match expression:
            case Test():
                return _is_of_a_moment(expression) and self._holds(expression, backend, turn)
            case Not():
                return False
            case Both(left, right) | Either(left, right):
                return self._happens(left, backend, turn) or self._happens(right, backend, turn)

    def _holds(self, expression: Expression, backend: str, turn: int) -> bool:
        match expression:
            case Test(subject, condition):
                return self._test(subject, condition, backend, turn)
            case Not(inner):
                return not self._holds(inner, backend, turn)
            case Both(left, right):
                return self._holds(left, backend, turn) and self._holds(right, backend, turn)
            case Either(left, right):
                return self._holds(left, backend, turn) or self._holds(right, backend, turn)

    def _test(self, subject: Subject, condition: Condition, backend: str, turn: int) -> bool:
        match subject:
            case TextSubject():
                turns = self._timeline.conversation.turns
                return 0 < turn <= len(turns) and value_holds(condition, turns[turn - 1].text)
            case HitSubject(item):
                return self._hit_holds(item, condition, backend, turn)
            case KeySubject() | PathSubject():
                return any(
                    self._place_holds(condition, history, path, turn)
                    for history, path in self._places(subject, backend)
                )

    def _place_holds(self, condition: Condition, history: StateHistory, path: Path, turn: int) -> bool:
        now = value_in(history.value_at(turn), path)
        if isinstance(condition, Changed):
            return history.changed_at(turn) and value_in(history.value_at(turn - 1), path) != now
        return now is not MISSING and value_holds(condition, now)

    def _hit_holds(self, item: str, condition: Condition, backend: str, turn: int) -> bool:
        perceived = self._timeline.perceived_at(backend, turn)
        if perceived is None or perceived.turn != turn:
            return False
        hits = [hit for hit in perceived.hits if item in (hit.id, *hit.turns, *hit.sources)]
        if not isinstance(condition, Measure):
            return bool(hits)
        missed = [hit for hit in perceived.missed if item in (hit.id, *hit.turns, *hit.sources)]
        best = min((*hits, *missed), key=lambda hit: hit.rank, default=None)
        if best is None:
            return False
        measured = best.rank if condition.what == "rank" else best.score
        return measured is not None and compares(condition.op, measured, condition.number)

    # ---- where to look ----------------------------------------------------------------------------------

    def _turns_of(self, expression: Expression, backend: str) -> Sequence[int]:
        """The positions at which an expression can begin to hold, in order."""
        match expression:
            case Test():
                return self._turns_of_test(expression, backend)
            case Not(inner):
                # What is denied holds nearly everywhere; it begins to where the inner one ends.
                return range(self._timeline.reached + 1) if _has_a_moment(inner) else self._turns_of(inner, backend)
            case Both(left, _) if _is_of_a_moment(left):
                return self._turns_of(left, backend)
            case Both(_, right) if _is_of_a_moment(right):
                return self._turns_of(right, backend)
            case Both(left, right) | Either(left, right):
                return _merged([self._turns_of(left, backend), self._turns_of(right, backend)])

    def _turns_of_test(self, test: Test, backend: str) -> Sequence[int]:
        grown = self._size_behind(test.subject, backend)
        known = self._known.get((test, backend)) if _is_hashable(test) else None
        if known is not None and known[0] == grown:
            return known[1]
        turns = self._looked_up(test, backend)
        if _is_hashable(test):
            self._known[test, backend] = grown, turns
        return turns

    def _size_behind(self, subject: Subject, backend: str) -> int:
        """Grows whenever there may be more positions to look at."""
        match subject:
            case TextSubject():
                return 0
            case HitSubject():
                return len(self._timeline.perceived_track(backend))
            case KeySubject() | PathSubject():
                return sum(len(history) for history, _ in self._places(subject, backend))

    def _looked_up(self, test: Test, backend: str) -> Sequence[int]:
        match test.subject:
            case TextSubject():
                turns = self._timeline.conversation.turns
                return [turn.number for turn in turns if value_holds(test.condition, turn.text)]
            case HitSubject(item):
                self._retrievals.catch_up()
                return self._retrievals.turns_of(backend, item)
            case KeySubject() | PathSubject():
                return _merged([_touched(history, path) for history, path in self._places(test.subject, backend)])

    def _places(self, subject: KeySubject | PathSubject, backend: str) -> list[tuple[StateHistory, Path]]:
        if isinstance(subject, KeySubject):
            if subject.key not in self._timeline.state_keys(backend):
                return []
            return [(self._timeline.state(backend, subject.key), path) for path in _readings(subject.path)]
        histories = [self._timeline.state(backend, key) for key in self._timeline.state_keys(backend)]
        return [(history, path) for history in histories for path in _readings(subject.path)]


def _asks_for_hits(expression: Expression) -> bool:
    match expression:
        case Test(subject):
            return isinstance(subject, HitSubject)
        case Not(inner):
            return _asks_for_hits(inner)
        case Both(left, right) | Either(left, right):
            return _asks_for_hits(left) or _asks_for_hits(right)


def _is_of_a_moment(expression: Expression) -> bool:
    """Whether it can hold only where something happens, not for as long as something stands."""
    match expression:
        case Test(subject, condition):
            return isinstance(subject, TextSubject | HitSubject) or isinstance(condition, Changed)
        case Not():
            return False
        case Both(left, right):
            return _is_of_a_moment(left) or _is_of_a_moment(right)
        case Either(left, right):
            return _is_of_a_moment(left) and _is_of_a_moment(right)


def _has_a_moment(expression: Expression) -> bool:
    match expression:
        case Test():
            return _is_of_a_moment(expression)
        case Not(inner):
            return _has_a_moment(inner)
        case Both(left, right) | Either(left, right):
            return _has_a_moment(left) or _has_a_moment(right)


def _readings(path: Path) -> list[Path]:
    """What a path may mean: neighbouring parts may be one name with dots in it (``facts.user.name``)."""
    if len(path) < 2:
        return [path]
    rest = _readings(path[1:])
    return [(path[0], *others) for others in rest] + [(f"{path[0]}.{others[0]}", *others[1:]) for others in rest]


def _touched(history: StateHistory, path: Path) -> Sequence[int]:
    """The positions of all writes that may have changed a place in a state."""
    indexes = (depth for depth, part in enumerate(path) if part.isdecimal())
    inside = path[: next(indexes, len(path))]  # in a list, any change may move what comes after it
    above = [history.writes_at(inside[:depth]) for depth in range(len(inside))]
    numbers = _merged([*above, history.writes_within(inside)])
    return list(dict.fromkeys(history.turns[number] for number in numbers))


def _merged(sequences: Sequence[Sequence[int]]) -> Sequence[int]:
    filled = [sequence for sequence in sequences if len(sequence)]
    return filled[0] if len(filled) == 1 else sorted({item for sequence in filled for item in sequence})


def _is_hashable(test: Test) -> bool:
    return not isinstance(test.condition, Compare) or not isinstance(test.condition.literal, list | dict)
