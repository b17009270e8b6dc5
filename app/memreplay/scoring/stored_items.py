"""What a memory stored as one thing: an item, what took its place, and the records of a JSON state."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from memory_backends.stores.trace import PatchStep
from memreplay.grading.read import content_of, same_token, tokens_of
from memreplay.scoring.holding import Piece
from memreplay.timeline.fold import MISSING, patched, pointer_of

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

    @property
    def turns(self) -> frozenset[str]:
        """The turns that it comes from."""
        return frozenset(self.since)

    @cached_property
    def piece(self) -> Piece:
        """The item as a text to look for an answer in."""
        return Piece(self.text, self.turns)

    @property
    def is_current(self) -> bool:
        """Whether it is still stored and still valid."""
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
    """The words of a text that are no longer in the one that took its place."""
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
        """The value with the name of its field."""
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
        """The key was removed."""
        self._gone += [replace(item, removed=True, ended_at=at) for item in self._records()]
        self._value, self._leaves, self._since, self._written = MISSING, {}, {}, {}

    def items(self) -> Iterator[Item]:
        """The records that are there, and those that were."""
        yield from self._records()
        yield from self._gone

    def _records(self) -> Iterator[Item]:
        """The fields of an object are one record, unless several of them are sentences."""
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
        """The turn that a slot names, else those that wrote the value."""
        turn = leaves.get((*path[:-1], "turn")) if self._is_slot(path) else None
        if turn is None:
            return written[path]
        return {turn.text: max(written[path].values(), default=0)}


_SENTENCE = 5
"""Words; what is longer says something by itself."""


def leaves_with_paths(value: Any, path: Path = (), name: str = "") -> Iterator[tuple[Path, Leaf]]:
    """The plain values in a JSON value, each with its path. A field of an object is written ``name: value``.

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
    """What a stored point says, a line for each text in it.

    Beside a sentence, bare numbers are scores and counters of it; without one they are what is known.
    """
    leaves = list(_values_in(payload))
    has_sentence = any(isinstance(leaf, str) and len(leaf.split()) >= _PHRASE for leaf in leaves)
    return "\n".join(str(leaf) for leaf in leaves if isinstance(leaf, str) or not has_sentence)


_PHRASE = 3
"""Words from which on a text says something of somebody."""


def _values_in(value: Any) -> Iterator[str | int | float]:
    match value:
        case Mapping():
            for inner in value.values():
                yield from _values_in(inner)
        case list() | tuple():
            for inner in value:
                yield from _values_in(inner)
        case str() | int() | float() if _says_something(value):
            yield value
        case _:
            pass


_TIME_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*")


def _says_something(value: str | int | float) -> bool:
    """Whether a value can be part of a fact: no flag, and not the time at which it was written."""
    return not isinstance(value, bool) and not (isinstance(value, str) and _TIME_STAMP.fullmatch(value))
