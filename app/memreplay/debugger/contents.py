"""Everything that a memory holds at a position: each key and each point, with where it came from.

Listing what is held loads nothing; the text, the sources and the successor of an item are loaded when it is looked
at. So a list of ten thousand points costs what the rows on the screen cost.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from memory_backends.stores.trace import MemoryOperation, UpsertChange
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.debugger.search import texts_in
from memreplay.timeline.event_store import operation_of
from memreplay.timeline.fold import MISSING
from memreplay.timeline.timeline import Timeline

ItemKind = Literal["state", "log", "point"]


class HeldItem(NamedTuple):
    """A key, or a point, as it was last written.

    ``place`` is the key or the collection, ``id`` that of a point and empty for a key. ``since`` is the position of
    the first write, ``turn`` that of the last one, ``ref`` the reference of the last one's event, and ``number``
    the place of the point in it.
    """

    kind: ItemKind
    store: str
    place: str
    id: str
    since: int
    turn: int
    ref: int
    number: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Return what identifies it in its memory."""
        return self.place, self.id


class PointDetails(NamedTuple):
    """The content of a point, for display.

    ``sources`` are the turns that it names, else those that caused its last write; ``verbatim`` those of them whose
    text stands in it. ``superseded_by`` is the id of the point that took its place, as the memory wrote it down.
    """

    payload: Mapping[str, Any]
    text: str
    sources: tuple[str, ...]
    verbatim: tuple[str, ...]
    superseded_by: str | None


class MemoryContents:
    """The content of one memory, read from the events of its timeline. Points that were read stay in memory."""

    def __init__(self, timeline: Timeline, backend: str, retrievals: RetrievalIndex) -> None:
        self.backend = backend
        self._timeline = timeline
        self._retrievals = retrievals
        self._points: dict[tuple[int, int], PointDetails] = {}
        self._asked: Mapping[str, list[int]] = {}
        self._asked_at: list[int] = []

    def held_at(self, turn: int) -> list[HeldItem]:
        """Return the keys, then the points of each collection in the order of their first write. Loads no point."""
        self._read_answers()
        return [*self._states(turn), *self._logs(turn), *self._points_at(turn)]

    def _states(self, turn: int) -> Iterator[HeldItem]:
        for key in self._timeline.state_keys(self.backend):
            history = self._timeline.state(self.backend, key)
            count = history.count_until(turn)
            if count and history.value_after(count - 1) is not MISSING:
                last = history.turns[count - 1], history.refs[count - 1]
                yield HeldItem("state", self._label(key), key, "", history.turns[0], *last)

    def _logs(self, turn: int) -> Iterator[HeldItem]:
        for key in self._timeline.log_keys(self.backend):
            history = self._timeline.log(self.backend, key)
            last = history.latest(turn)
            if last is not None:
                yield HeldItem("log", self._label(key), key, "", history.pieces_at(turn)[0][0], *last)

    def _points_at(self, turn: int) -> Iterator[HeldItem]:
        for name in self._timeline.collections(self.backend):
            label = self._label(name)
            for point in self._timeline.collection(self.backend, name).held_at(turn):
                yield HeldItem("point", label, name, point.id, point.since, point.turn, point.ref, point.place)

    def _label(self, key: str) -> str:
        return self._timeline.store_label(self.backend, key)

    # ---- one item ------------------------------------------------------------------------------------------

    def operation(self, ref: int) -> MemoryOperation:
        """Return the store command with this reference."""
        return operation_of(self._timeline.archive.event(ref))

    def point(self, item: HeldItem) -> PointDetails:
        """Return what a point says; it is loaded the first time."""
        place = item.ref, item.number
        if place not in self._points:
            self._points[place] = self._read(item)
        return self._points[place]

    def _read(self, item: HeldItem) -> PointDetails:
        operation = self.operation(item.ref)
        assert isinstance(operation.change, UpsertChange)
        payload = operation.change.points[item.number].payload
        text = main_text(payload)
        known = self._timeline.conversation.turns_by_id
        named = payload.get("sources")
        sources = operation.turns
        if isinstance(named, list) and any(str(turn) in known for turn in named):
            sources = tuple(str(turn) for turn in named)
        verbatim = tuple(turn for turn in sources if turn in known and known[turn].text in text)
        marked = self._timeline.description(self.backend).store_of(item.place).superseded_field
        successor = payload.get(marked) if marked is not None else None
        return PointDetails(payload, text, sources, verbatim, None if successor is None else str(successor))

    def retrieved(self, item: HeldItem, turn: int) -> int | None:
        """Return how many messages and questions up to a position had a hit on a point, or on a text with its
        turns.

        None for a key. It counts the read paths that the index of retrievals has reached.
        """
        if item.kind != "point":
            return None
        names = (item.id, *self.point(item).verbatim)
        asked = {number for name in names for number in self._asked.get(name, ()) if self._asked_at[number] <= turn}
        return self._retrievals.hits_on(self.backend, names, turn) + len(asked)

    def _read_answers(self) -> None:
        """Index what the questions retrieved, if more were asked since."""
        answers = [answer.asked for answer in self._timeline.answers() if answer.asked.backend == self.backend]
        if len(self._asked_at) == len(answers):
            return
        found: dict[str, list[int]] = defaultdict(list)
        for number, asked in enumerate(answers):
            for name in {name for hit in asked.hits for name in (hit.id, *hit.turns)}:
                found[name].append(number)
        self._asked, self._asked_at = found, [asked.turn for asked in answers]

    def text(self, item: HeldItem, turn: int) -> str:
        """Return everything in an item, to search in."""
        match item.kind:
            case "log":
                return "".join(text for _, text in self._timeline.log_at(self.backend, item.place, turn))
            case "state":
                return "\n".join((item.place, *texts_in(self._timeline.state_at(self.backend, item.place, turn))))
            case "point":
                return "\n".join((item.id, *texts_in(self.point(item).payload)))

    def turns_at(self, turn: int) -> frozenset[str]:
        """Return the turns that points and logs hold something of. It loads every point."""
        held = {
            source for item in self.held_at(turn) if item.kind == "point" for source in self.point(item).sources
        }
        for key in self._timeline.log_keys(self.backend):
            for _, ref, _ in self._timeline.log(self.backend, key).writes_until(turn):
                held.update(self.operation(ref).turns)
        return frozenset(held)


def main_text(payload: Mapping[str, Any]) -> str:
    """Return what a point says: the longest text in its payload, however its field is called; else all as JSON."""
    texts = (value for name, value in payload.items() if isinstance(value, str) and name != "id")
    return max(texts, key=len, default="") or json.dumps(payload, ensure_ascii=False, default=str)


Sign = Literal["+", "−", "~"]


def changes_between(before: Sequence[HeldItem], after: Sequence[HeldItem]) -> dict[tuple[str, str], Sign]:
    """Return what was added, removed, or written again from one position to another, by the keys of the items."""
    old, new = ({item.key: item.ref for item in items} for items in (before, after))
    added: dict[tuple[str, str], Sign] = {key: "+" for key in new if key not in old}
    written: dict[tuple[str, str], Sign] = {key: "~" for key, ref in new.items() if old.get(key, ref) != ref}
    removed: dict[tuple[str, str], Sign] = {key: "−" for key in old if key not in new}
    return added | written | removed
