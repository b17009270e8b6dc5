"""Finds the positions at which breakpoints stop, live or in a recording, without looking at every position."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memory_backends.base import Hit
from memory_backends.text import folded
from memreplay.debugger.breakpoints import (
    Both,
    Breakpoint,
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
)
from memreplay.debugger.retrievals import RetrievalIndex
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
    """Return whether a condition other than ``changed`` holds for a value that exists.

    A slot that keeps its value in an object (``{"value": …, "turn": …}``, or several of them under ``values``) is
    compared by what it keeps.
    """
    match condition:
        case Exists():
            return True
        case Compare(op, literal):
            kept = [] if isinstance(literal, Mapping) else _kept_in(value)
            return any(compares(op, each, literal) for each in kept or [value])
        case Contains(text):
            wanted = folded(text)
            if isinstance(value, str):
                return wanted in folded(value)
            if any(isinstance(each, str) and wanted in folded(each) for each in _kept_in(value)):
                return True
            return isinstance(value, list | Mapping) and any(folded(str(item)) == wanted for item in value)
        case _:
            return False


def _kept_in(value: Any) -> list[Any]:
    """Return the values that a slot keeps in objects; none if it is no such slot."""
    if not isinstance(value, Mapping):
        return []
    if "value" in value:
        return [value["value"]]
    several = value.get("values")
    listed = several if isinstance(several, list) else []
    return [each["value"] for each in listed if isinstance(each, Mapping) and "value" in each]


def compares(op: CompareOp, value: Any, literal: Any) -> bool:
    """JSON equality, in which true is not 1. Only numbers, or strings, are ordered."""
    numbers = _is_number(value) and _is_number(literal)
    if op in ("==", "!="):
        alike = type(value) is type(literal) or numbers
        return (alike and value == literal) is (op == "==")
    return (numbers or (isinstance(value, str) and isinstance(literal, str))) and _OPERATORS[op](value, literal)


def _measure_holds(condition: Condition, hit: Hit) -> bool:
    if not isinstance(condition, Measure):
        return True
    measured = hit.rank if condition.what == "rank" else hit.score
    return measured is not None and compares(condition.op, measured, condition.number)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Stop:
    """A position at which breakpoints fire: which of them, each with the architecture it fired in."""

    turn: int
    fired: tuple[tuple[Breakpoint, str], ...]


_MOST_PATHS: Final = 2_000
_DEEPEST: Final = 6


def written_paths(timeline: Timeline, backend: str | None, turn: int) -> list[str]:
    """Return the paths of the states at a position, as they are written in a breakpoint: ``shared_data.broker``.

    Of one memory, or of all; those of objects before those inside.
    """
    names = [name for name in timeline.backends if backend in (None, name)]
    return [str(PathSubject(path)) for path in _paths(timeline, names, turn)]


def _paths(timeline: Timeline, backends: Sequence[str], turn: int, only: str | None = None) -> list[Path]:
    """Return the places in the states at a position, or in that of one key."""
    found: dict[Path, None] = {}
    for backend in backends:
        for key in timeline.state_keys(backend):
            if only in (None, key):
                _add_paths(found, timeline.state_at(backend, key, turn), ())
    return list(found)


def _add_paths(found: dict[Path, None], value: Any, before: Path) -> None:
    if not isinstance(value, Mapping) or len(before) == _DEEPEST:
        return
    for name, inner in value.items():
        if len(found) >= _MOST_PATHS:
            return
        found[*before, name] = None
        _add_paths(found, inner, (*before, name))


class BreakpointRunner:
    """Finds the stops of a set of breakpoints in a timeline, which may still grow.

    ``retrievals`` finds hits by id. A breakpoint that needs it brings it up to date first; in a long recording
    that takes seconds, so let the index catch up beforehand (:attr:`must_read`).
    """

    def __init__(self, timeline: Timeline, retrievals: RetrievalIndex, breakpoints: Sequence[Breakpoint]) -> None:
        self.breakpoints = tuple(breakpoints)
        self._timeline = timeline
        self._retrievals = retrievals
        self._known: dict[tuple[Test, str], tuple[int, Sequence[int]]] = {}

    def unknown_places(self, breakpoint_: Breakpoint) -> dict[str, list[str]]:
        """Return the keys and paths of a breakpoint that no state has had at any position so far, each with those
        that may be meant: of a similar name, or else beside it.
        """
        backends = [name for name in self._timeline.backends if breakpoint_.backend in (None, name)]
        return {
            str(subject): self._alternatives(subject, backends)
            for subject in _subjects(breakpoint_.expression)
            if isinstance(subject, KeySubject | PathSubject)
            and not any(self._has_existed(subject, backend) for backend in backends)
        }

    def _alternatives(self, subject: KeySubject | PathSubject, backends: Sequence[str]) -> list[str]:
        key = subject.key if isinstance(subject, KeySubject) else None
        keys = dict.fromkeys(known for backend in backends for known in self._timeline.state_keys(backend))
        if key is not None and key not in keys:
            return [str(KeySubject(known)) for known in keys]
        paths, wanted = _paths(self._timeline, backends, self._timeline.reached, key), subject.path
        found = [path for path in paths if wanted and wanted[-1].casefold() in path[-1].casefold()]
        for length in range(len(wanted) - 1, -1, -1):
            found = found or [path for path in paths if path[:-1] in _readings(wanted[:length])]
        return [str(PathSubject(path) if key is None else KeySubject(key, path)) for path in found]

    def _has_existed(self, subject: KeySubject | PathSubject, backend: str) -> bool:
        return any(
            value_in(history.value_at(turn), path) is not MISSING
            for history, path in self._places(subject, backend)
            for turn in reversed(_touched(history, path))
        )

    @property
    def must_read(self) -> bool:
        """Return whether a search would first bring the retrieval index up to date, which may take seconds."""
        asks = any(_needs_index(breakpoint_.expression) for breakpoint_ in self.breakpoints if breakpoint_.enabled)
        return asks and self._retrievals.behind > 0

    def next_stop(self, cursor: int) -> Stop | None:
        """Return the first position after the cursor, up to the last one reached, at which a breakpoint fires."""
        found = [self._next_of(breakpoint_, backend, cursor) for breakpoint_, backend in self._pairs()]
        turn = min((turn for turn in found if turn is not None), default=None)
        return None if turn is None else self.stop_at(turn)

    def previous_stop(self, cursor: int) -> Stop | None:
        """Return the last position before the cursor at which a breakpoint fires."""
        found = [self._previous_of(breakpoint_, backend, cursor) for breakpoint_, backend in self._pairs()]
        turn = max((turn for turn in found if turn is not None), default=None)
        return None if turn is None else self.stop_at(turn)

    def stops(self, most: int) -> list[int]:
        """Return the positions of the first stops, as far as was played."""
        found: list[int] = []
        while len(found) < most and (stop := self.next_stop(found[-1] if found else -1)) is not None:
            found.append(stop.turn)
        return found

    def stop_at(self, turn: int) -> Stop | None:
        """Return what fires at exactly this position, None if nothing does. A live session calls this after each
        step.
        """
        fired = tuple(pair for pair in self._pairs() if self._fires(pair[0].expression, pair[1], turn))
        return Stop(turn, fired) if fired else None

    def _pairs(self) -> Iterable[tuple[Breakpoint, str]]:
        for breakpoint_ in self.breakpoints:
            for backend in self._timeline.backends:
                if breakpoint_.enabled and breakpoint_.backend in (None, backend):
                    yield breakpoint_, backend

    def _next_of(self, breakpoint_: Breakpoint, backend: str, cursor: int) -> int | None:
        turns = self._turns_of(breakpoint_.expression, backend)
        places = range(bisect_right(turns, cursor), bisect_right(turns, self._timeline.reached))
        return self._first_that_fires(breakpoint_, backend, (turns[place] for place in places))

    def _previous_of(self, breakpoint_: Breakpoint, backend: str, cursor: int) -> int | None:
        turns = self._turns_of(breakpoint_.expression, backend)
        places = range(bisect_left(turns, cursor) - 1, -1, -1)
        return self._first_that_fires(breakpoint_, backend, (turns[place] for place in places))

    def _first_that_fires(self, breakpoint_: Breakpoint, backend: str, turns: Iterable[int]) -> int | None:
        return next((turn for turn in turns if self._fires(breakpoint_.expression, backend, turn)), None)

    # ---- what holds -------------------------------------------------------------------------------------

    def _fires(self, expression: Expression, backend: str, turn: int) -> bool:
        if not self._holds(expression, backend, turn):
            return False
        return self._happens(expression, backend, turn) or not self._holds(expression, backend, turn - 1)

    def _happens(self, expression: Expression, backend: str, turn: int) -> bool:
        """Return whether a momentary part of it, one that holds only at single positions, holds here."""
        match expression:
            case Test():
                return _is_momentary(expression) and self._holds(expression, backend, turn)
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

    def _hit_holds(self, item: str | None, condition: Condition, backend: str, turn: int) -> bool:
        perceived = self._timeline.perceived_at(backend, turn)
        if perceived is None or perceived.turn != turn:
            return False
        if item is None:
            return any(_measure_holds(condition, hit) for hit in (*perceived.hits, *perceived.missed))
        hits = [hit for hit in perceived.hits if item in (hit.id, *hit.turns, *hit.sources)]
        if not isinstance(condition, Measure):
            return bool(hits)
        missed = [hit for hit in perceived.missed if item in (hit.id, *hit.turns, *hit.sources)]
        best = min((*hits, *missed), key=lambda hit: hit.rank, default=None)
        return best is not None and _measure_holds(condition, best)

    # ---- where to look ----------------------------------------------------------------------------------

    def _turns_of(self, expression: Expression, backend: str) -> Sequence[int]:
        """Return the positions at which an expression can begin to hold, in order: a superset of its stops."""
        match expression:
            case Test():
                return self._turns_of_test(expression, backend)
            case Not(inner):
                # A negation starts to hold where the inner expression ends, which a momentary one may do anywhere.
                return (
                    range(self._timeline.reached + 1)
                    if _has_momentary_part(inner)
                    else self._turns_of(inner, backend)
                )
            case Both(left, _) if _is_momentary(left):
                return self._turns_of(left, backend)
            case Both(_, right) if _is_momentary(right):
                return self._turns_of(right, backend)
            case Both(left, right) | Either(left, right):
                return _merged([self._turns_of(left, backend), self._turns_of(right, backend)])

    def _turns_of_test(self, test: Test, backend: str) -> Sequence[int]:
        grown = self._size_of_source(test.subject, backend)
        known = self._known.get((test, backend)) if _is_hashable(test) else None
        if known is not None and known[0] == grown:
            return known[1]
        turns = self._find_turns(test, backend)
        if _is_hashable(test):
            self._known[test, backend] = grown, turns
        return turns

    def _size_of_source(self, subject: Subject, backend: str) -> int:
        """Return a number that grows whenever there may be more positions to look at."""
        match subject:
            case TextSubject():
                return 0
            case HitSubject():
                return len(self._timeline.perceived_index(backend))
            case KeySubject() | PathSubject():
                return sum(len(history) for history, _ in self._places(subject, backend))

    def _find_turns(self, test: Test, backend: str) -> Sequence[int]:
        match test.subject:
            case TextSubject():
                turns = self._timeline.conversation.turns
                return [turn.number for turn in turns if value_holds(test.condition, turn.text)]
            case HitSubject(item):
                if item is None:
                    return list(dict.fromkeys(self._timeline.perceived_index(backend).turns))
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


def _subjects(expression: Expression) -> list[Subject]:
    match expression:
        case Test(subject):
            return [subject]
        case Not(inner):
            return _subjects(inner)
        case Both(left, right) | Either(left, right):
            return [*_subjects(left), *_subjects(right)]


def _needs_index(expression: Expression) -> bool:
    match expression:
        case Test(subject):
            return isinstance(subject, HitSubject) and subject.item is not None
        case Not(inner):
            return _needs_index(inner)
        case Both(left, right) | Either(left, right):
            return _needs_index(left) or _needs_index(right)


def _is_momentary(expression: Expression) -> bool:
    """Return whether it can hold only at the position of an event (a turn, a retrieval, a change), not for a
    while.
    """
    match expression:
        case Test(subject, condition):
            return isinstance(subject, TextSubject | HitSubject) or isinstance(condition, Changed)
        case Not():
            return False
        case Both(left, right):
            return _is_momentary(left) or _is_momentary(right)
        case Either(left, right):
            return _is_momentary(left) and _is_momentary(right)


def _has_momentary_part(expression: Expression) -> bool:
    match expression:
        case Test():
            return _is_momentary(expression)
        case Not(inner):
            return _has_momentary_part(inner)
        case Both(left, right) | Either(left, right):
            return _has_momentary_part(left) or _has_momentary_part(right)


def _readings(path: Path) -> list[Path]:
    """Return what a path may mean: neighbouring parts may be one name with dots in it (``facts.user.name``)."""
    if len(path) < 2:
        return [path]
    rest = _readings(path[1:])
    return [(path[0], *others) for others in rest] + [(f"{path[0]}.{others[0]}", *others[1:]) for others in rest]


def _touched(history: StateHistory, path: Path) -> Sequence[int]:
    """Return the positions of all writes that may have changed a place in a state."""
    indexes = (depth for depth, part in enumerate(path) if part.isdecimal())
    inside = path[: next(indexes, len(path))]  # any change to a list may move its items
    numbers = _merged([*history.writes_around(inside), history.writes_within(inside)])
    return list(dict.fromkeys(history.turns[number] for number in numbers))


def _merged(sequences: Sequence[Sequence[int]]) -> Sequence[int]:
    filled = [sequence for sequence in sequences if len(sequence)]
    return filled[0] if len(filled) == 1 else sorted({item for sequence in filled for item in sequence})


def _is_hashable(test: Test) -> bool:
    return not isinstance(test.condition, Compare) or not isinstance(test.condition.literal, list | dict)
