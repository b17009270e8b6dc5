"""Search the whole session for text: messages, states, stored points, hits and prompts.

The index keeps each text once, without case and accents, with all the places where it occurs. A hit that holds
turns verbatim is found by the text of these turns. A query is plain text, never a pattern.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from memory_backends.base import Hit
from memory_backends.stores.trace import MemoryOperation, PatchChange, UpsertChange, WriteChange
from memory_backends.text import folded
from memreplay.engine.events import QuestionAsked
from memreplay.timeline.timeline import Timeline

Where = Literal["message", "state", "stored", "hit", "prompt"]
"""A turn's text; a value written to a state, or the name of a field; the payload of a point; something that a
read path gave; a prompt as it was sent."""

WHERE: Final[tuple[Where, ...]] = get_args(Where)


@dataclass(frozen=True, order=True)
class Match:
    """A place where the text occurs.

    ``backend`` is empty for a message. ``place`` is the key of a state, the collection of a point or, for a prompt
    and for what was retrieved for a question, the id of that question; empty for others.
    """

    turn: int
    where: Where
    backend: str
    place: str


class SearchIndex:
    """The search index of one timeline, which :meth:`catch_up` brings up to date."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []
        self._places: list[array[int]] = []
        self._known_places: dict[tuple[Where, str, str], int] = {}
        self._kinds: list[tuple[Where, str, str]] = []
        self._said: dict[str, int] = {}
        self._start: int | None = None
        self._ahead = self._behind = 0
        self._read_to = -1
        self._asked: set[int] = set()
        for turn in timeline.conversation.turns:
            self._said[turn.id] = self._add(turn.text, turn.number, ("message", "", ""))

    def catch_up(self, most: int | None = None, near: int = 0) -> bool:
        """Index at most this many positions (default: all). True if all positions reached so far are indexed.

        The first call decides where indexing starts: at ``near``, on to the end, then from 0 up to ``near``. The
        last position is indexed again on each call, since events may still be added to it.
        """
        last = self._timeline.reached
        if self._start is None:
            self._start = self._ahead = min(near, last)
        left = last + 2 if most is None else max(most, 1)
        while left and self._ahead <= last:
            self._index_position(self._ahead)
            self._read_to = self._ahead
            self._ahead += 1
            left -= 1
        is_at_end = self._ahead > last
        while left and is_at_end and self._behind < self._start:
            self._index_position(self._behind)
            self._behind += 1
            left -= 1
        self._index_answers()
        if is_at_end:
            self._ahead = last
        return is_at_end and self._behind >= self._start

    def has_read(self, first: int, last: int) -> bool:
        """Return whether all these positions are indexed, so that nothing more can be found between them."""
        if self._start is None:
            return False
        is_ahead = first >= self._start or self._behind >= self._start
        return last <= self._read_to if is_ahead else last < self._behind

    def _index_position(self, turn: int) -> None:
        for backend in self._timeline.backends:
            self._index(backend, turn)

    def _index(self, backend: str, turn: int) -> None:
        for operation in self._timeline.archive.written_at(backend, turn):
            for text, where in _texts_written(operation):
                self._add(text, turn, (where, backend, operation.key))
        for ref in self._timeline.perceived_index(backend).refs_at(turn):
            candidates = self._timeline.archive.candidates(ref)
            shown = [candidate for candidate in candidates if candidate.has_text and not candidate.missed]
            if all(candidate.turns for candidate in shown):
                said = (turn_id for candidate in shown for turn_id in candidate.turns)
                self._add_said(said, turn, ("hit", backend, ""))
            else:
                self._add_hits(self._timeline.perceived(ref).hits, turn, backend)

    def _index_answers(self) -> None:
        for number, answer in enumerate(self._timeline.answers()):
            if number in self._asked:
                continue
            self._asked.add(number)
            asked = answer.asked
            self._add_hits(asked.hits, asked.turn, asked.backend, asked.question_id)
            self._add_prompt(asked)

    def _add_prompt(self, asked: QuestionAsked) -> None:
        for message in asked.prompt:
            for segment in message.segments:
                self._add(segment, asked.turn, ("prompt", asked.backend, asked.question_id))

    def _add_hits(self, hits: tuple[Hit, ...], turn: int, backend: str, question: str = "") -> None:
        for hit in hits:
            if hit.text and not hit.turns:
                self._add(hit.text, turn, ("hit", backend, question))
            elif hit.text:
                self._add_said(hit.turns, turn, ("hit", backend, question))

    def _add_said(self, turn_ids: Iterable[str], turn: int, place: tuple[Where, str, str]) -> None:
        for turn_id in turn_ids:
            if turn_id in self._said:
                self._add_place(self._said[turn_id], turn, place)

    def _add(self, text: str, turn: int, place: tuple[Where, str, str]) -> int:
        plain = folded(text)
        id_ = self._ids.get(plain)
        if id_ is None:
            id_ = self._ids[plain] = len(self._texts)
            self._texts.append(plain)
            self._places.append(array("Q"))
        self._add_place(id_, turn, place)
        return id_

    def _add_place(self, id_: int, turn: int, place: tuple[Where, str, str]) -> None:
        number = self._known_places.get(place)
        if number is None:
            number = self._known_places[place] = len(self._kinds)
            self._kinds.append(place)
        entry = turn << 32 | number
        places = self._places[id_]
        if not places or places[-1] != entry:
            places.append(entry)

    # ---- finding ----------------------------------------------------------------------------------------

    def find(self, text: str, where: frozenset[Where] = frozenset(WHERE)) -> SearchMatches:
        """Return all indexed places of a text, in order of position. A blank text has none."""
        wanted = folded(text)
        if not wanted.strip():
            return SearchMatches([], self._match)
        entries: set[int] = set()
        for id_, known in enumerate(self._texts):
            if wanted in known:
                entries.update(self._places[id_])
        return SearchMatches(sorted(e for e in entries if self._kinds[e & _LOW][0] in where), self._match)

    def _match(self, entry: int) -> Match:
        return Match(entry >> 32, *self._kinds[entry & _LOW])


_LOW = (1 << 32) - 1


class SearchMatches:
    """The places of one text, to step through from any position."""

    def __init__(self, entries: list[int], match: Callable[[int], Match]) -> None:
        self._entries = entries
        self._match = match

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Match]:
        return map(self._match, self._entries)

    def __getitem__(self, place: int) -> Match:
        """Return the match with this 0-based number."""
        return self._match(self._entries[place])

    def first_from(self, turn: int) -> int:
        """Return the number of the first match at or after a position; the number of all matches if there is
        none.
        """
        return bisect_left(self._entries, turn << 32)

    def number_of(self, match: Match) -> int | None:
        """Return the number of a match among these; None if it is not one of them."""
        first, end = (
            bisect_left(self._entries, match.turn << 32),
            bisect_left(self._entries, (match.turn + 1) << 32),
        )
        return next((number for number in range(first, end) if self[number] == match), None)

    def next_match(self, turn: int) -> Match | None:
        """Return the first match after this position."""
        index = bisect_left(self._entries, (turn + 1) << 32)
        return self._match(self._entries[index]) if index < len(self._entries) else None

    def previous_match(self, turn: int) -> Match | None:
        """Return the last match before this position."""
        index = bisect_right(self._entries, (turn << 32) - 1)
        return self._match(self._entries[index - 1]) if index else None

    def at(self, turn: int) -> list[Match]:
        """Return the matches at exactly this position."""
        first, end = bisect_left(self._entries, turn << 32), bisect_left(self._entries, (turn + 1) << 32)
        return [self._match(entry) for entry in self._entries[first:end]]


def _texts_written(operation: MemoryOperation) -> Iterator[tuple[str, Where]]:
    """Yield the texts that an operation stored. Appends to a log are left out: they are messages."""
    match operation.change:
        case WriteChange(value=value):
            yield from ((text, "state") for text in texts_in(value))
        case PatchChange(steps=steps):
            for step in steps:
                if step.op != "remove":
                    yield from ((text, "state") for text in texts_in(step.value))
        case UpsertChange(points=points):
            for point in points:
                yield from ((text, "stored") for text in texts_in(point.payload))
        case _:
            return


def texts_in(value: Any) -> Iterator[str]:
    """Yield every name of a field, text and number in a JSON value."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in value.items():
                yield name
                yield from texts_in(item)
        case list() | tuple():
            for item in value:
                yield from texts_in(item)
        case None | bool():
            return
        case _:
            yield str(value)
