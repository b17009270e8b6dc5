"""Snapshots of memories that use no store of ours: what changed between two, and the turns that items come from."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memory_backends.base import BackendError, Cut, Exchange, Hit, Message, Recall, Snapshot
from memory_backends.storable import MOST_LEVELS, is_deeper
from memory_backends.stores.trace import (
    AppendChange,
    Change,
    MemoryOperation,
    MemoryTrace,
    PatchChange,
    RemoveChange,
    StoredPoint,
    TraceEntry,
    UpsertChange,
    WriteChange,
    patch_between,
)
from memory_backends.text import folded_words


class Place(NamedTuple):
    """The place of an item: store label, key or collection, and a point's id, a line's number or a JSON pointer."""

    store: str
    key: str
    id: str


Turns = tuple[str, ...]

_SAYS_NOTHING = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|[0-9a-f]{8}(?:-?[0-9a-f]{4,}){3,}|\W*")
"""Time stamps, hashes and ids: an item that differs only in these says the same."""

_SHORTEST = 12
"""Characters. A shorter text occurs inside other texts by chance, so only equal texts match."""

_MOSTLY = 0.6
"""The share of an item's words that another text must take over for the one to count as merged into the other."""


_FEW, _HALF = 1 / 3, 1 / 2
"""Shares of the words of an item that the exchange it comes from, or another, has."""

_LATEST = 5
"""Exchanges that a memory which writes late may be behind."""

_LONG_WORD = 4
"""Letters. Shorter words are those of any text."""


def exchanges_late(text: str, heard: Sequence[Sequence[Message]]) -> int:
    """Return how many exchanges before the last one the words of a new item were said; 0 where it has its words, or
    those of none.
    """
    words = {word for word in folded_words(text).split() if len(word) >= _LONG_WORD}
    if not words or not heard:
        return 0

    def share(exchange: Sequence[Message]) -> float:
        said = {word for message in exchange for word in folded_words(message.text).split()}
        return len(words & said) / len(words)

    if share(heard[-1]) > _FEW:
        return 0
    shares = [(share(each), -late) for late, each in enumerate(reversed(heard[-_LATEST - 1 : -1]), start=1)]
    most, late = max(shares, default=(0.0, 0))
    return -late if most >= _HALF else 0


class Provenance:
    """The sources of every item of one memory, by the turns that were observed when it was written."""

    def __init__(self) -> None:
        self._items: dict[Place, str] = {}
        self._sources: dict[Place, Turns] = {}
        self._heard: dict[str, Message] = {}
        self._exchanges: list[tuple[Message, ...]] = []
        self._late: dict[Place, Turns] = {}

    def late(self, store: str, key: str, id_: str) -> Turns | None:
        """Return the turns of an item that :meth:`note` found written late; None for any other."""
        return self._late.get(Place(store, key, id_))

    def heard(self, exchange: Exchange) -> None:
        """Note that an exchange is being observed."""
        self._heard |= {message.turn_id: message for message in exchange.messages}
        self._exchanges = [*self._exchanges[-_LATEST:], exchange.messages]

    def note(self, snapshot: Snapshot, turns: Turns) -> None:
        """Note what the memory holds now, after these turns. Sources that a payload names itself are taken over."""
        before, old = self._items, self._sources
        items = dict(_items_of(snapshot))
        texts = {place: said for place, (said, _) in items.items()}
        gone = {place: text for place, text in before.items() if place not in texts}
        now = {(place.store, place.key, text) for place, text in texts.items()}
        by_text = {(place.store, place.key, text): place for place, text in before.items()}
        sources: dict[Place, Turns] = {}
        self._late = {}
        for place, (text, named) in items.items():
            if named is not None:
                sources[place] = named
                continue
            if before.get(place) == text:
                sources[place] = old[place]
                continue
            moved_from = by_text.get((place.store, place.key, text))
            if moved_from is not None and texts.get(moved_from) != text:
                sources[place] = old[moved_from]
                continue
            # In a list or log the text that stood here may only have moved.
            was_here = before.get(place)
            rewritten = was_here is not None and (place.store, place.key, was_here) not in now
            merged = [old[other] for other, was in gone.items() if other[:2] == place[:2] and _merged(was, text)]
            if turns and was_here is None and not merged and (late := exchanges_late(text, self._exchanges)):
                turns_of_it = tuple(message.turn_id for message in self._exchanges[-1 - late])
                sources[place] = self._late[place] = turns_of_it
                continue
            sources[place] = _union(old[place] if rewritten else (), *merged, turns)
        self._items, self._sources = texts, sources

    def completed(self, recall: Recall) -> Recall:
        """Return the recall, in which hits that name no turns got them."""
        if all(hit.turns or hit.sources for hit in (*recall.hits, *recall.missed)):
            return recall
        hits = tuple(map(self._completed, recall.hits))
        missed = tuple(map(self._completed, recall.missed))
        cut = tuple(_completed_cut(each, hits) for each in recall.cut)
        return recall.model_copy(update={"hits": hits, "missed": missed, "cut": cut})

    def state(self) -> dict[str, Any]:
        """Return everything that it knows, as plain JSON."""
        return {
            "items": [[*place, text, list(self._sources[place])] for place, text in self._items.items()],
            "heard": [message.model_dump(mode="json") for message in self._heard.values()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved :meth:`state`."""
        rows = [(Place(*row[:3]), str(row[3]), tuple(row[4])) for row in state["items"]]
        self._items = {place: text for place, text, _ in rows}
        self._sources = {place: turns for place, _, turns in rows}
        heard = map(Message.model_validate, state["heard"])
        self._heard = {message.turn_id: message for message in heard}

    def _completed(self, hit: Hit) -> Hit:
        if hit.turns or hit.sources:
            return hit
        behind = self._behind(hit)
        quoted = [message for message in self._heard.values() if _quotes(hit.text, message)]
        own = [message.text for message in quoted if message.turn_id in behind]
        said = tuple(
            message.turn_id
            for message in quoted
            # What was said twice is quoted of the turns that the item comes from alone.
            if message.turn_id in behind or not any(message.text.strip() in text for text in own)
        )
        return hit.model_copy(update={"turns": said, "sources": () if said else behind})

    def _behind(self, hit: Hit) -> Turns:
        place = Place(hit.store, hit.place, hit.id)
        if place in self._sources:
            return self._sources[place]
        same_id = [turns for other, turns in self._sources.items() if other.id == hit.id]
        if len(same_id) == 1:
            return same_id[0]
        return _union(*(self._sources[place] for place, text in self._items.items() if _same(text, hit.text)))


def _completed_cut(cut: Cut, hits: Sequence[Hit]) -> Cut:
    if cut.turns:
        return cut
    left_out = (hit.turns for hit in hits if hit.place == cut.place and not hit.in_prompt)
    return cut.model_copy(update={"turns": _union(*left_out)})


def _items_of(snapshot: Snapshot) -> Iterator[tuple[Place, tuple[str, Turns | None]]]:
    for store, collections in snapshot.points.items():
        for key, points in collections.items():
            for id_, payload in points.items():
                named = payload.get("sources")
                yield (
                    Place(store, key, str(id_)),
                    ("\n".join(_texts_in(payload)), tuple(map(str, named)) if isinstance(named, list) else None),
                )
    for store, values in snapshot.values.items():
        for key, value in values.items():
            for id_, text in _leaves(value, ""):
                yield Place(store, key, id_), (text, None)


def _leaves(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a JSON value with their pointers; the lines of a log."""
    match value:
        case str():
            lines = value.splitlines()
            yield from (
                (f"{pointer}#{number}" if len(lines) > 1 else pointer, line) for number, line in enumerate(lines)
            )
        case Mapping():
            for name, inner in value.items():
                yield from _leaves(inner, f"{pointer}/{name}")
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from _leaves(inner, f"{pointer}/{index}")
        case _:
            pass


def _texts_in(payload: Mapping[str, Any]) -> list[str]:
    return [text for _, text in _leaves(payload, "") if not _SAYS_NOTHING.fullmatch(text)]


def _merged(old: str, new: str) -> bool:
    """Return whether most words of a text that is gone are in another."""
    had, has = set(folded_words(old).split()), set(folded_words(new).split())
    return bool(had) and len(had & has) / len(had) >= _MOSTLY


def _quotes(text: str, message: Message) -> bool:
    said = message.text.strip()
    return message.line in text or (len(said) >= _SHORTEST and said in text)


def _same(item: str, hit: str) -> bool:
    """Return whether a hit shows an item: one of its texts, or one text within the other."""
    wanted = folded_words(hit)
    for text in map(folded_words, item.splitlines()):
        shorter, longer = sorted((text, wanted), key=len)
        if shorter and (text == wanted or (len(shorter) >= _SHORTEST and f" {shorter} " in f" {longer} ")):
            return True
    return False


def _union(*turns: Turns) -> Turns:
    return tuple(dict.fromkeys(turn for some in turns for turn in some))


MOST_ITEMS = 200_000
"""Values, with all that is in them, of a snapshot that is looked at."""

MOST_CHARACTERS = 64 * 2**20
"""Characters of their texts."""


def beyond_limits(snapshot: Snapshot) -> str:
    """Return in a sentence that a snapshot is too large to be looked at after every write; empty if it is not."""
    items = characters = 0
    left: list[Any] = [snapshot.values, snapshot.points]
    while left:
        value = left.pop()
        items += 1
        match value:
            case str() | bytes():
                characters += len(value)
            case Mapping():
                characters += sum(len(key) for key in value if isinstance(key, str))
                left += value.values()
            case list() | tuple():
                left += value
        if items + len(left) > MOST_ITEMS or characters > MOST_CHARACTERS:
            return (
                f"it holds more than {MOST_ITEMS:,} values or {MOST_CHARACTERS:,} characters (at least"
                f" {items + len(left):,} and {characters:,}): what it holds is unknown"
            )
    if is_deeper([snapshot.values, snapshot.points]):
        return f"it holds more than {MOST_LEVELS} values inside each other: what it holds is unknown"
    return ""


COMMAND = "snapshot"
"""The command of such an operation: no command was seen, only its effect."""

KEYFRAME_EVERY = 64

_ABSENT: Final = object()


class SnapshotDiffer:
    """Records in a trace how each snapshot differs from the one before.

    A key or collection that the memory itself has ever named in its trace is left to the memory.
    """

    def __init__(self, trace: MemoryTrace) -> None:
        self._trace = trace
        self._values: Mapping[tuple[str, str], Any] = {}
        self._points: Mapping[tuple[str, str], Mapping[str, Any]] = {}
        self._traced: set[tuple[str, str]] = set()
        self._writes: Counter[str] = Counter()

    def leave_out(self, entries: Iterable[TraceEntry]) -> None:
        """Remember which places the memory traces by itself."""
        for entry in entries:
            if isinstance(entry, MemoryOperation):
                self._traced.add((entry.store, entry.key))

    def start_from(self, snapshot: Snapshot) -> None:
        """Record what changes from here on."""
        self._values, self._points = _by_key(plain(snapshot.values)), _by_key(plain(snapshot.points))

    def lost_since(self, snapshot: Snapshot) -> tuple[int, int]:
        """Return how many items are gone since the last call of :meth:`note`, and how many there were.

        Nothing is lost where something was written as well: then the memory itself works on what it holds. A log
        that became shorter counts as an item.
        """
        old, new = (
            self._items(self._values, self._points),
            self._items(_by_key(plain(snapshot.values)), _by_key(plain(snapshot.points))),
        )
        gone = [place for place, held in old.items() if place not in new or _is_cut(held, new[place])]
        written = [place for place, held in new.items() if place not in gone and old.get(place) != held]
        return (0 if written else len(gone)), len(old)

    def _items(
        self, values: Mapping[tuple[str, str], Any], points: Mapping[tuple[str, str], Mapping[str, Any]]
    ) -> dict[Place, Any]:
        """Return every value and every point, but those of places that the memory traces by itself."""
        items = {Place(*place, ""): held for place, held in values.items() if place not in self._traced}
        for place, held in points.items():
            if place not in self._traced:
                items |= {Place(*place, id_): payload for id_, payload in held.items()}
        return items

    def note(
        self,
        snapshot: Snapshot,
        ms: float,
        late: Callable[[str, str, str], Turns | None] = lambda store, key, id_: None,
    ) -> None:
        """Record what is new, changed or gone since the last call; ``ms`` is what taking the snapshot cost.

        ``late`` returns the turns of a point that was written after their exchange, which are recorded with it.

        Raises:
            BackendError: the snapshot holds something that is not plain data.
        """
        values, points = _by_key(plain(snapshot.values)), _by_key(plain(snapshot.points))
        for store, key in dict.fromkeys([*values, *self._values]):
            if (store, key) not in self._traced:
                old, new = self._values.get((store, key), _ABSENT), values.get((store, key), _ABSENT)
                for change in self._changes(key, old, new):
                    self._trace.note(store, COMMAND, key, change, ms)
        for store, key in dict.fromkeys([*points, *self._points]):
            if (store, key) not in self._traced:
                for change in _point_changes(self._points.get((store, key), {}), points.get((store, key), {})):
                    self._note_points(store, key, change, ms, late)
        self._values, self._points = values, points

    def _note_points(
        self, store: str, key: str, change: Change, ms: float, late: Callable[[str, str, str], Turns | None]
    ) -> None:
        """Record a change of points; those that were written late apart."""
        if not isinstance(change, UpsertChange):
            self._trace.note(store, COMMAND, key, change, ms)
            return
        by_turns: dict[Turns | None, list[StoredPoint]] = {}
        for point in change.points:
            by_turns.setdefault(late(store, key, point.id), []).append(point)
        cause = self._trace.cause
        for turns, points in by_turns.items():
            part = UpsertChange(points=tuple(points))
            if turns is None:
                self._trace.note(store, COMMAND, key, part, ms)
                continue
            with self._trace.caused_by(cause.phase, cause.actor, turns):
                self._trace.note(store, COMMAND, key, part, ms)

    def _changes(self, key: str, old: Any, new: Any) -> list[Change]:
        """Return a text that only grew is an append; a change between text and state is a removal and a new
        write.
        """
        if old is not _ABSENT and new is not _ABSENT and old == new:
            return []
        if new is _ABSENT:
            return [RemoveChange(count=1)]
        if isinstance(old, str) and isinstance(new, str) and new.startswith(old):
            return [AppendChange(offset=len(old.encode()), text=new[len(old) :])]
        changes_kind = old is not _ABSENT and (isinstance(old, str) or isinstance(new, str))
        gone: list[Change] = [RemoveChange(count=1)] if changes_kind else []
        if isinstance(new, str):
            return [*gone, AppendChange(offset=0, text=new)]
        return [*gone, self._state_change(key, old, new)]

    def _state_change(self, key: str, old: Any, new: Any) -> Change:
        self._writes[key] += 1
        steps = patch_between(old, new) if isinstance(old, dict) and isinstance(new, dict) else None
        if steps is None:
            return WriteChange(value=new)
        return PatchChange(steps=steps, keyframe=new if self._writes[key] % KEYFRAME_EVERY == 0 else None)


def _is_cut(old: Any, new: Any) -> bool:
    """Return whether a log or a list lost its end, or a state some of its fields."""
    if isinstance(old, dict) and isinstance(new, dict):
        return not old.keys() <= new.keys()
    return isinstance(old, str | list) and isinstance(new, str | list) and len(new) < len(old)


def _by_key(stores: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(store, key): held for store, keys in stores.items() for key, held in keys.items()}


def _point_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    written = tuple(
        StoredPoint(id=id_, payload=payload, replaced=old.get(id_))
        for id_, payload in new.items()
        if old.get(id_) != payload
    )
    gone = tuple(id_ for id_ in old if id_ not in new)
    changes: list[Change] = [UpsertChange(points=written)] if written else []
    return [*changes, RemoveChange(count=len(gone), ids=gone)] if gone else changes


def plain(value: Any) -> Any:
    """Return a copy as plain JSON, safe to keep while its owner changes the original.

    What JSON cannot express becomes text; half a surrogate pair becomes a question mark.

    Raises:
        BackendError: it cannot be written as JSON at all.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise BackendError(f"the snapshot cannot be written as JSON: {error}") from None
    return json.loads(text)
