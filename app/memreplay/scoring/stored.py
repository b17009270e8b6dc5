"""The items that a memory held when it was asked, folded from the recorded store commands and decisions.

An item is a Qdrant point, a stretch of a log, or a record inside a JSON state: whatever a memory stored as one
thing. Its text is every string in it, whatever the fields are called, so that memories of any make are read alike,
and every number, unless these are scores beside a sentence. An item is linked to the turns that it names as its
sources, else to the turns that were being observed when it was written. Working state (an agent's scratchpad and
staged candidates) is not memory and holds no items.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, Protocol

from memory_backends.base import MemoryDescription
from memory_backends.stores.trace import (
    AppendChange,
    MemoryOperation,
    PatchChange,
    PatchStep,
    PromotionDecision,
    RemoveChange,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.conversations.models import Conversation
from memreplay.engine.events import (
    ConversationOpened,
    FactsExtracted,
    ModelCalled,
    Observed,
    PromotionDecided,
    ReplayEvent,
    StoreOperated,
    call_in,
)
from memreplay.grading.read import content_of, same_token, tokens_of
from memreplay.grading.times import times_in
from memreplay.scoring.holding import Piece, heading_day
from memreplay.scoring.writer import MadeCall
from memreplay.text import normalised
from memreplay.timeline.fold import MISSING, patched, pointer_of
from memreplay.timeline.timeline import Answer

NO_WORDS = re.compile(r"[-+\d.,:TZ\s]*")

_MOST_REPLACED = 6
"""Words. A text that lost more was not corrected but written anew."""


@dataclass(frozen=True)
class Item:
    """Something that a memory stored at a ``place`` (a key or collection) under an ``id`` (a point's, or a JSON
    pointer).

    ``since`` maps each turn that it comes from to the position at which that turn got into it. ``removed``: it is
    no longer there. ``superseded``: a later value took its place (``successor`` is the id of the point that has
    it); it may still be stored. ``ended_at`` is the position at which either happened, ``written_at`` that at which
    the text was written. ``names_turns``: what is stored says itself which turns it comes from.
    """

    text: str
    since: Mapping[str, int]
    place: str = ""
    id: str = ""
    written_at: int = 0
    removed: bool = False
    superseded: bool = False
    ended_at: int | None = None
    successor: str | None = None
    names_turns: bool = False
    days: frozenset[date] = frozenset()
    """The days of the times in its fields."""

    @property
    def turns(self) -> frozenset[str]:
        """Return the turns that it comes from."""
        return frozenset(self.since)

    @cached_property
    def piece(self) -> Piece:
        """Return the item as a text to look for an answer in."""
        return Piece(self.text, self.turns, days=self.days)

    @property
    def is_current(self) -> bool:
        """Return whether it is still stored and still valid."""
        return not (self.removed or self.superseded)


@dataclass(frozen=True)
class Supersession:
    """Something that a later value replaced, by the memory's own account.

    ``values`` are what no longer holds: the old value, or the words that a rewritten text lost. The turns are those
    that said the old and the new one.
    """

    values: tuple[str, ...]
    old_turns: frozenset[str]
    new_turns: frozenset[str]


def replaced(old: str, new: str, old_since: Mapping[str, int], new_since: Mapping[str, int]) -> list[Supersession]:
    """Return the words of a text that are no longer in the one that took its place."""
    turns = frozenset(new_since) - frozenset(old_since)
    kept = [token for _, token in content_of(tokens_of(new))]
    lost = [
        token.text for _, token in content_of(tokens_of(old)) if not any(same_token(token, other) for other in kept)
    ]
    if not turns or not lost or len(lost) > _MOST_REPLACED:
        return []
    return [Supersession(tuple(lost), frozenset(old_since), turns)]


Path = tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """A plain value in a JSON state, with the name of its field. ``group`` is the path of the object it belongs to,
    else its own path.
    """

    name: str
    text: str
    group: Path

    @property
    def line(self) -> str:
        """Return the value with the name of its field."""
        return f"{self.name}: {self.text}" if self.name else self.text


class State:
    """A JSON state: its values with the turns that last wrote them, and those that were overwritten."""

    def __init__(self, key: str, slots: str | None) -> None:
        self._key = key
        self._slots = slots
        self._value: Any = MISSING
        self._leaves: dict[Path, Leaf] = {}
        self._since: dict[Path, Mapping[str, int]] = {}
        self._written: dict[Path, int] = {}
        self._gone: list[Item] = []

    def write(self, value: Any, since: Mapping[str, int], at: int) -> list[Supersession]:
        """Replace the whole value; returns what was replaced by something else.

        A value that moved to another place, as in a list that lost its first item, keeps its turns.
        """
        before, written = self._leaves, self._since
        after = dict(leaves_with_paths(value))
        lost = {path: leaf for path, leaf in before.items() if after.get(path) != leaf}
        new = {path: leaf for path, leaf in after.items() if before.get(path) != leaf}
        moved = {leaf.line: path for path, leaf in lost.items()}
        self._value, self._leaves = value, after
        self._since = {path: written[path] for path in after if path not in new}
        arrived = {path: moved.pop(leaf.line) for path, leaf in new.items() if leaf.line in moved}
        for path in new:
            was_at = arrived.get(path)
            counts = self._slots is None or self._is_slot(path)
            by = since if counts else {}
            self._since[path] = written[was_at] if was_at else {**by, **written.get(path, {})}
        found: list[Supersession] = []
        left = set(arrived.values())
        for path, leaf in lost.items():
            if path in left or NO_WORDS.fullmatch(leaf.text) or self._names_a_turn(path):
                continue
            old = self._turns_of(path, before, written)
            is_superseded = path in new and path not in arrived
            if is_superseded:
                now = self._turns_of(path, after, self._since)
                found += self._superseded(path, leaf, new[path], old, now)
            self._gone.append(
                Item(
                    leaf.line,
                    old,
                    self._key,
                    pointer_of(leaf.group),
                    self._written[path],
                    removed=not is_superseded,
                    superseded=is_superseded,
                    ended_at=at,
                )
            )
        self._written = {
            path: self._written[arrived.get(path, path)] if path in arrived or path not in new else at
            for path in after
        }
        return found

    def _superseded(
        self, path: Path, old: Leaf, new: Leaf, old_since: Mapping[str, int], new_since: Mapping[str, int]
    ) -> list[Supersession]:
        if not self._is_slot(path):
            return replaced(old.text, new.text, old_since, new_since)
        turns = frozenset(new_since) - frozenset(old_since)
        return [Supersession((old.text,), frozenset(old_since), turns)] if turns else []

    def patch(self, steps: Sequence[PatchStep], since: Mapping[str, int], at: int) -> list[Supersession]:
        """Apply a patch; returns what it replaced by something else."""
        try:
            value = patched(self._value if self._value is not MISSING else {}, steps)
        except (KeyError, IndexError, TypeError, ValueError):
            return []  # a patch that does not fit what was recorded before: an incomplete recording
        return self.write(value, since, at)

    def clear(self, at: int) -> None:
        """Note that the key was removed."""
        self._gone += [replace(item, removed=True, ended_at=at) for item in self._records()]
        self._value, self._leaves, self._since, self._written = MISSING, {}, {}, {}

    def items(self) -> Iterator[Item]:
        """Yield the records that are there, and those that were."""
        yield from self._records()
        yield from self._gone

    def _records(self) -> Iterator[Item]:
        """Yield the fields of an object are one record, unless several of them are sentences."""
        groups: dict[Path, list[Path]] = defaultdict(list)
        for path, leaf in self._leaves.items():
            groups[leaf.group].append(path)
        for group, paths in groups.items():
            texts = [self._leaves[path].text for path in paths]
            apart = sum(len(text.split()) > _SENTENCE for text in texts) > 1
            for members in [[path] for path in paths] if apart else [paths]:
                since: dict[str, int] = {}
                for path in members:
                    for turn, at in self._turns_of(path, self._leaves, self._since).items():
                        since[turn] = min(at, since.get(turn, at))
                text = "\n".join(self._leaves[path].line for path in members)
                written = max(self._written[path] for path in members)
                is_slot = self._is_slot(members[0])
                if is_slot:
                    since = dict.fromkeys(since, written)
                place = pointer_of(members[0] if apart else group)
                yield Item(text, since, self._key, place, written, names_turns=is_slot)

    def _is_slot(self, path: Path) -> bool:
        return bool(path) and path[0] == self._slots

    def _names_a_turn(self, path: Path) -> bool:
        return self._is_slot(path) and path[-1] == "turn"

    def _turns_of(
        self, path: Path, leaves: Mapping[Path, Leaf], written: Mapping[Path, Mapping[str, int]]
    ) -> Mapping[str, int]:
        """Return the turn that a slot names, else those that wrote the value."""
        turn = leaves.get((*path[:-1], "turn")) if self._is_slot(path) else None
        if turn is None:
            return written[path]
        return {turn.text: max(written[path].values(), default=0)}


_SENTENCE = 5
"""Words; what is longer says something by itself."""


def leaves_with_paths(value: Any, path: Path = (), name: str = "") -> Iterator[tuple[Path, Leaf]]:
    """Yield the plain values in a JSON value, each with its path. A field of an object is written ``name: value``.

    ``{"notes": ["a", "b"], "city": {"value": "Girona", "turn": "3"}}`` holds four, of which the last two belong
    together.
    """
    match value:
        case Mapping():
            for field, inner in value.items():
                yield from leaves_with_paths(inner, (*path, str(field)), str(field))
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from leaves_with_paths(inner, (*path, str(index)))
        case str() | int() | float() if _says_something(value):
            yield path, Leaf(name, str(value), path[:-1] if name else path)
        case _:
            pass


def text_of(payload: Any) -> str:
    """Return what a stored point says, a line for each text in it.

    Beside a sentence, numbers are scores and counters of it, unless their field is named for what is known.
    """
    leaves = list(_values_in(payload))
    has_sentence = any(isinstance(leaf, str) and len(leaf.split()) >= _PHRASE for _, leaf in leaves)
    said = (leaf for name, leaf in leaves if isinstance(leaf, str) or not has_sentence or name.lower() in _KNOWN)
    return "\n".join(map(str, said))


_KNOWN = frozenset("value amount number quantity answer object content data fact".split())
"""Names of fields of which a number is what a memory knows: {"attribute": "bus line to work", "value": 14}."""
_PHRASE = 3
"""Words from which on a text says something of somebody."""


def _values_in(value: Any, name: str = "") -> Iterator[tuple[str, str | int | float]]:
    """Yield the plain values in a JSON value, each with the name of its field; those of a list have none."""
    match value:
        case Mapping():
            for field, inner in value.items():
                yield from _values_in(inner, str(field))
        case list() | tuple():
            for inner in value:
                yield from _values_in(inner)
        case str() | int() | float() if _says_something(value):
            yield name, value
        case _:
            pass


_OF_THE_STORE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)
"""The time at which something was written, or an id: it differs from run to run, and its digits are no answer."""


def _days_in(payload: Any) -> frozenset[date]:
    """Return the days of the times in the fields of a stored point."""
    times = (value for value in payload.values() if isinstance(value, str) and _OF_THE_STORE.fullmatch(value))
    return frozenset(time.first for value in times for time in times_in(value) if time.days == 1)


def _says_something(value: str | int | float) -> bool:
    """Return whether a value can be part of a fact: no flag, and nothing that the store made up."""
    return not isinstance(value, bool) and not (isinstance(value, str) and _OF_THE_STORE.fullmatch(value))


class MemoryHistory(Protocol):
    """The input of attribution: a :class:`memreplay.timeline.timeline.Timeline`, or the events of a finished
    run.
    """

    conversation: Conversation
    backends: list[str]

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        """Return what one backend heard, decided and changed up to a position, with its opening, in order."""
        ...

    def answers(self) -> Iterator[Answer]:
        """Return all answers so far."""
        ...


class StoredMemory:
    """The items of one backend after all events up to a position."""

    def __init__(self, events: Iterable[ReplayEvent]) -> None:
        self.observed: set[str] = set()
        self.supersessions: list[Supersession] = []
        self.is_recorded = False
        """True if the turns that this memory observed were recorded; an imported run has only its answers."""
        self.calls: list[MadeCall] = []
        """The calls of the model that writes, in order."""
        self._dropped: list[PromotionDecision] = []
        self._dated: set[str] = set()
        """The places whose items are returned under the dates on which they were said."""
        self._points: dict[tuple[str, str], Item] = {}
        self._places: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
        """Return the collections that hold each point id."""
        self._values: dict[tuple[str, str], str] = {}
        self._pieces: dict[str, list[Item]] = defaultdict(list)
        self._removed: dict[str, int] = {}
        """The position at which each log was last removed."""
        self._states: dict[str, State] = {}
        self._gone: list[Item] = []
        self._memory = MemoryDescription()
        self._heard_last: tuple[str, ...] = ()
        self._heard_at: dict[str, int] = {}
        """The number of the exchange, from 1, in which each turn was heard."""
        self._exchange_at: dict[int, int] = {}
        """The number of the exchange that was heard at each position."""
        for event in _opening_first(iter(events)):
            self._apply(event)
        self.items: tuple[Item, ...] = (
            *self._points.values(),
            *(piece for pieces in self._pieces.values() for piece in pieces),
            *(item for state in self._states.values() for item in state.items()),
            *self._gone,
        )

    @property
    def is_known(self) -> bool:
        """Return whether what it holds could be listed."""
        return self._memory.is_known

    @property
    def is_empty(self) -> bool:
        """Return whether no write was ever recorded."""
        return not self.items

    @cached_property
    def stored(self) -> Sequence[Piece]:
        """Return what it held, and still counted as valid."""
        current = (item for item in self.items if item.is_current)
        return [replace(item.piece, is_dated=item.place in self._dated) for item in current]

    @cached_property
    def removed(self) -> Sequence[Piece]:
        """Return what it had held and removed."""
        return [item.piece for item in self.items if item.removed]

    @cached_property
    def superseded(self) -> Sequence[Piece]:
        """Return what it held, and had replaced by a later value."""
        return [item.piece for item in self.items if item.superseded]

    @cached_property
    def _by_id(self) -> Mapping[tuple[str, str], Item]:
        return {(item.place, item.id): item for item in self.items if item.id and not item.removed}

    def dates(self, place: str | None = None) -> bool:
        """Return whether what is returned from a place, or from any, stands under the date on which it was said."""
        return bool(self._dated) if place is None else place in self._dated

    def behind(self, place: str, id_: str, text: str) -> frozenset[str]:
        """Return the turns that a retrieved text comes from, where it does not name them: those of the item with
        its id, else of the items with its text.
        """
        item = self._by_id.get((place, id_))
        if item is not None:
            return item.turns
        wanted = normalised(text)
        same = (
            item.turns
            for item in self.items
            if wanted and not item.removed and f" {wanted} " in f" {normalised(item.text)} "
        )
        return frozenset().union(*same)

    def name_sources(self, backend: str, answers: Iterable[Answer]) -> None:
        """Link items to the turns that a memory names only where it returns them: by id, or by their text; and note
        in which places it dates what it returns.

        A hit may stand for several items, whose turns are not those of each.
        """
        named: dict[tuple[str, str] | str, set[str]] = defaultdict(set)
        returned = (hit for answer in answers if answer.asked.backend == backend for hit in answer.asked.hits)
        for hit in returned:
            if hit.place not in self._dated and heading_day(hit.text) is not None:
                self._dated.add(hit.place)
            for key in ((hit.place, hit.id), normalised(hit.text)) if hit.sources else ():
                named[key].update(hit.sources)
        if not named:
            return
        self.items = tuple(
            replace(item, since=dict.fromkeys(turns, item.written_at) | dict(item.since))
            if not item.names_turns
            and (turns := named.get((item.place, item.id)) or named.get(normalised(item.text)))
            else item
            for item in self.items
        )

    @cached_property
    def _exchanges_late(self) -> Mapping[str, int]:
        """Return how many exchanges after its own the first item of each turn was written."""
        written: dict[str, int] = {}
        for item in self._points.values():
            for turn, at in item.since.items() if not item.names_turns else ():
                written[turn] = min(at, written.get(turn, at))
        return {
            turn: max(0, self._exchange_at.get(at, 0) - self._heard_at[turn])
            for turn, at in written.items()
            if turn in self._heard_at
        }

    def exchanges_late(self, turn: str) -> int:
        """Return how many exchanges after its own the first item of a turn was written; 0 where none was late."""
        return self._exchanges_late.get(turn, 0)

    def is_pending(self, turn: str) -> bool:
        """Return whether a memory that writes late had not yet come to a turn when it was asked."""
        lag = max(self._exchanges_late.values(), default=0)
        return 0 < len(self._exchange_at) - self._heard_at.get(turn, 0) + 1 <= lag

    def dropped_from(self, turn: str) -> Sequence[PromotionDecision]:
        """Return the candidates from a turn that were judged and not kept."""
        return [decision for decision in self._dropped if turn in decision.sources]

    def _apply(self, event: ReplayEvent) -> None:
        match event:
            case ConversationOpened():
                self._memory = event.memory
            case Observed():
                self.is_recorded = True
                self.observed.update(event.turns)
                self._heard_last = event.turns
                number = self._exchange_at.setdefault(event.turn, len(self._exchange_at) + 1)
                self._heard_at.update(dict.fromkeys(event.turns, number))
            case ModelCalled() | FactsExtracted() if (call := call_in(event)) is not None:
                self.calls.append(MadeCall(event.turn, call.turns or self._heard_last, call))
            case PromotionDecided():
                self._decide(event.decision, event.turn)
            case StoreOperated() if event.operation.error is None:
                self.is_recorded = True
                self._operate(event.operation, event.turn)
            case _:
                pass

    def _decide(self, decision: PromotionDecision, at: int) -> None:
        if decision.decision == "DROP":
            self._dropped.append(decision)
        for place in self._places.get(decision.superseded_id or "", ()):
            item = self._points[place]
            self._points[place] = replace(
                item, superseded=True, ended_at=at, successor=decision.knowledge_id or item.successor
            )
            if value := self._values.get(place):
                new = frozenset(decision.sources) - item.turns
                self.supersessions.append(Supersession((value,), item.turns, new))

    def _operate(self, operation: MemoryOperation, at: int) -> None:
        key = operation.key
        # A memory that writes in the background has no turn at hand: it writes what it heard last.
        in_background = operation.phase == "consolidate" and not operation.turns
        since = dict.fromkeys(self._heard_last if in_background else operation.turns, at)
        match operation.change:
            case AppendChange(text=text):
                self._append(key, text, since, at)
            case RemoveChange(ids=ids):
                self._remove(key, ids, at)
            case WriteChange() | PatchChange() | UpsertChange() if self._memory.store_of(key).is_scratch:
                pass
            case UpsertChange(points=points):
                for point in points:
                    self._write_point(key, point, since, at)
            case WriteChange(value=str(text)):
                self._remove(key, (), at)
                self._append(key, text, since, at)
            case WriteChange(value=value):
                self.supersessions += self._state(key).write(value, since, at)
            case PatchChange(steps=steps):
                self.supersessions += self._state(key).patch(steps, since, at)
            case _:
                pass

    def _state(self, key: str) -> State:
        return self._states.setdefault(key, State(key, self._memory.store_of(key).slots))

    def _append(self, key: str, text: str, since: Mapping[str, int], now: int) -> None:
        """Add to a log. One that was just removed is written anew: it keeps the turns of lines that it had."""
        lines = [line for line in text.splitlines() if line]
        before = self._removed_at(key, now)
        had = [line for piece in before for line in piece.text.splitlines() if line]
        kept = {turn: at for piece in before for turn, at in piece.since.items()}
        if had:
            for what, start, end, other, until in SequenceMatcher(None, had, lines, autojunk=False).get_opcodes():
                if what == "replace" and end - start == until - other:
                    for old, new in zip(had[start:end], lines[other:until], strict=True):
                        self.supersessions += replaced(old, new, kept, {**since, **kept})
        is_kept = not set(had).isdisjoint(lines)
        self._pieces[key].append(Item(text, {**since, **(kept if is_kept else {})}, key, key, now))

    def _removed_at(self, key: str, now: int) -> list[Item]:
        """Return the pieces of a log that were removed at this position."""
        if self._removed.get(key) != now:
            return []
        return [piece for piece in self._pieces[key] if piece.removed and piece.ended_at == now]

    def _write_point(self, key: str, point: StoredPoint, since: Mapping[str, int], at: int) -> None:
        payload, place = point.payload, (key, point.id)
        before = self._points.get(place)
        if before is not None and not before.removed:
            since = {**since, **before.since}
        named = payload.get("sources")
        turns = [str(turn) for turn in named] if isinstance(named, list) else []
        names_turns = any(turn in self.observed or turn in since for turn in turns)
        if names_turns:
            since = {turn: since.get(turn, at) for turn in turns}
        marked = self._memory.store_of(key).superseded_field
        successor = payload.get(marked) if marked is not None else None
        value = payload.get("value")
        if isinstance(value, str):
            self._values[place] = value
        self._places[point.id][place] = None
        text = text_of({field: value for field, value in payload.items() if not self._are_turns(value, since)})
        if before is not None and not before.removed:
            self._rewritten(before, text, since, at)
        self._points[place] = Item(
            text,
            since,
            *place,
            at if before is None or before.text != text else before.written_at,
            superseded=successor is not None,
            ended_at=None if successor is None else at,
            successor=None if successor is None else str(successor),
            names_turns=names_turns,
            days=_days_in(payload),
        )

    def _are_turns(self, value: Any, since: Container[str]) -> bool:
        """Return whether a value lists ids of turns, of which the digits say nothing."""
        ids = [str(one) for one in value] if isinstance(value, list) else []
        return bool(ids) and all(one in self.observed or one in since for one in ids)

    def _rewritten(self, before: Item, text: str, since: Mapping[str, int], at: int) -> None:
        """Keeps the lines that a rewritten item lost. A changed time stamp or counter is no loss."""
        now = set(text.splitlines())
        lost = [line for line in before.text.splitlines() if line not in now and not NO_WORDS.fullmatch(line)]
        if lost:
            was = "\n".join(lost)
            self._gone.append(replace(before, text=was, superseded=True, ended_at=at))
            self.supersessions += replaced(was, text, before.since, since)

    def _remove(self, key: str, ids: Sequence[str], at: int) -> None:
        places = [(key, id_) for id_ in ids] if ids else [place for place in self._points if place[0] == key]
        for place in places:
            item = self._points.get(place)
            if item is not None and not item.removed:
                self._points[place] = replace(item, removed=True, ended_at=at)
        if not ids:
            self._removed[key] = at
            self._pieces[key] = [
                piece if piece.removed else replace(piece, removed=True, ended_at=at) for piece in self._pieces[key]
            ]
            if key in self._states:
                self._states[key].clear(at)


def _opening_first(events: Iterator[ReplayEvent]) -> Iterator[ReplayEvent]:
    """Yield what a memory does while it is opened precedes the event that describes it."""
    before: list[ReplayEvent] = []
    for event in events:
        if isinstance(event, ConversationOpened):
            yield event
            break
        before.append(event)
    yield from before
    yield from events
