"""The turns that a memory's items come from, derived from how its snapshots change.

A memory that names no turns is followed from outside: what is new or changed after an exchange was observed comes
from that exchange, besides what it came from before. Its hits are matched to items by id, else by text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memory_backends.base import Cut, Exchange, Hit, Message, Recall, Snapshot
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


class Provenance:
    """The sources of every item of one memory, by the turns that were observed when it was written."""

    def __init__(self) -> None:
        self._items: dict[Place, str] = {}
        self._sources: dict[Place, Turns] = {}
        self._heard: dict[str, Message] = {}

    def heard(self, exchange: Exchange) -> None:
        """An exchange is being observed."""
        self._heard |= {message.turn_id: message for message in exchange.messages}

    def note(self, snapshot: Snapshot, turns: Turns) -> None:
        """The memory holds this now, after these turns. Sources that a payload names itself are taken over."""
        before, old = self._items, self._sources
        items = dict(_items_of(snapshot))
        texts = {place: said for place, (said, _) in items.items()}
        gone = {place: text for place, text in before.items() if place not in texts}
        now = {(place.store, place.key, text) for place, text in texts.items()}
        by_text = {(place.store, place.key, text): place for place, text in before.items()}
        sources: dict[Place, Turns] = {}
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
        said = tuple(message.turn_id for message in self._heard.values() if _quotes(hit.text, message))
        return hit.model_copy(update={"turns": said, "sources": () if said else self._behind(hit)})

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
