"""The memory browser: everything that one memory holds at a position, one row per item, and one item in full."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from memory_backends.text import folded
from memreplay.conversations.models import Conversation
from memreplay.debugger.contents import HeldItem, MemoryContents, Sign, changes_between, main_text
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.timeline.timeline import Timeline
from memreplay.views.document import Document, LinesDocument, Selectable
from memreplay.views.panels import short_key
from memreplay.views.panels.context import LogDocument
from memreplay.views.panels.conversation import turn_words
from memreplay.views.panels.stores import facts_in_words, state_lines
from memreplay.views.subjects import (
    PieceSubject,
    PositionSubject,
    StoredSubject,
    TurnSubject,
    ValueSubject,
    WrittenSubject,
    is_end,
    write_words,
)
from memreplay.views.text import Line, Row, Span, Tone, cells, clip, line, one_line, pad, paragraphs, visible

Order = Literal["newest", "oldest", "retrieved", "place"]
ORDERS: Final[dict[Order, str]] = {
    "newest": "newest first",
    "oldest": "oldest first",
    "retrieved": "most retrieved first",
    "place": "by store",
}

LEGEND: Final = "× times retrieved · from: source turns · * rewritten · + new − gone ~ changed"

_TONES: Final[dict[Sign, Tone]] = {"+": "added", "−": "removed", "~": "changed"}
_TURN, _RETRIEVED, _SOURCES = 7, 6, 15
_LONGEST_PREVIEW = 600
"""Characters of a text that a row is cut from: cutting must not take longer for longer texts."""


@dataclass(frozen=True)
class Against:
    """The other side of a comparison: another position of the same memory, or another memory at the same one."""

    turn: int | None = None
    backend: str | None = None

    @property
    def words(self) -> str:
        return f"± against turn {self.turn}" if self.backend is None else f"± against {one_line(self.backend)}"


class Entry(NamedTuple):
    """A row: an item, the memory that holds it, and how it differs from what the browser compares with."""

    item: HeldItem
    contents: MemoryContents
    sign: Sign | None = None


def entries_at(contents: MemoryContents, turn: int) -> list[Entry]:
    """Return all that a memory holds."""
    return [Entry(item, contents) for item in contents.held_at(turn)]


def entries_since(contents: MemoryContents, turn: int, earlier: int) -> list[Entry]:
    """Return the entries that a memory holds at only one of two positions. Loads nothing."""
    before, after = contents.held_at(earlier), contents.held_at(turn)
    signs = changes_between(before, after)
    return [
        Entry(item, contents, signs[item.key])
        for items in (after, [item for item in before if signs.get(item.key) == "−"])
        for item in items
        if item.key in signs
    ]


def entries_between(contents: MemoryContents, other: MemoryContents, turn: int) -> list[Entry]:
    """Return the points of either memory from turns that the other one holds nothing of. Loads every point of
    both.
    """
    found: list[Entry] = []
    signed: tuple[tuple[MemoryContents, MemoryContents, Sign], ...] = (
        (contents, other, "+"),
        (other, contents, "−"),
    )
    for mine, theirs, sign in signed:
        there = theirs.turns_at(turn)
        found += [
            Entry(item, mine, sign)
            for item in mine.held_at(turn)
            if item.kind == "point" and there.isdisjoint(mine.point(item).sources)
        ]
    return found


def sorted_entries(entries: Sequence[Entry], order: Order, turn: int) -> list[Entry]:
    """Entries in an order. Sorting by retrievals loads every point."""
    match order:
        case "newest":
            return sorted(entries, key=lambda entry: (entry.item.turn, entry.item.since), reverse=True)
        case "oldest":
            return sorted(entries, key=lambda entry: (entry.item.since, entry.item.turn))
        case "retrieved":
            return sorted(entries, key=lambda entry: -(entry.contents.retrieved(entry.item, turn) or 0))
        case "place":
            return sorted(entries, key=lambda entry: (entry.item.kind == "point", *entry.item.key))


def matching(entries: Sequence[Entry], text: str, turn: int) -> list[Entry]:
    """Return the entries whose item holds a text, ignoring case and accents. It loads every point."""
    wanted = folded(text)
    return [entry for entry in entries if wanted in folded(entry.contents.text(entry.item, turn))]


@dataclass(frozen=True)
class Query:
    """A wanted list of entries. The work grows with what a memory holds, so it is done in a thread."""

    contents: MemoryContents
    turn: int
    against: Against | None
    order: Order
    search: str

    @property
    def reads_everything(self) -> bool:
        """Return whether every item is loaded, which takes seconds in a long conversation."""
        return bool(self.search or self.order == "retrieved" or (self.against and self.against.backend))

    def entries(self, memories: Sequence[MemoryContents], retrievals: RetrievalIndex) -> list[Entry]:
        if self.order == "retrieved":
            retrievals.catch_up()
        found = self._unsorted(memories)
        if self.search:
            found = matching(found, self.search, self.turn)
        return sorted_entries(found, self.order, self.turn)

    def _unsorted(self, memories: Sequence[MemoryContents]) -> list[Entry]:
        match self.against:
            case Against(turn=int(turn)):
                return entries_since(self.contents, self.turn, turn)
            case Against(backend=str(backend)):
                other = next(memory for memory in memories if memory.backend == backend)
                return entries_between(self.contents, other, self.turn)
            case _:
                return entries_at(self.contents, self.turn)


# ---- the list --------------------------------------------------------------------------------------------------


class BrowserDocument(Selectable):
    """One row per entry; rows are made when they are first shown."""

    def __init__(self, timeline: Timeline, entries: Sequence[Entry], turn: int, *, counted: bool) -> None:
        super().__init__()
        self.entries = entries
        self._timeline = timeline
        self._turn = turn
        self._counted = counted
        self._laid_out = lru_cache(maxsize=2048)(self._lay_out)

    def __len__(self) -> int:
        return len(self.entries)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        return self._laid_out(index, width, index == self.cursor)

    @property
    def selected(self) -> Entry | None:
        return self.entries[self.cursor] if self.cursor < len(self.entries) else None

    def _lay_out(self, index: int, width: int, here: bool) -> tuple[Row, ...]:
        entry = self.entries[index]
        item, contents, place_width = entry.item, entry.contents, _place_width(width)
        gone = entry.sign == "−"
        place = short_key(item.place, self._timeline.conversation.id, contents.backend)
        retrieved, sources, text = self._cells(entry)
        spans = [
            Span("▶" if here else " ", "accent"),
            Span(f"{entry.sign or ' '} ", _TONES[entry.sign] if entry.sign else "plain"),
            Span(pad(written_words(self._timeline, item), _TURN), "strong"),
            Span(pad(retrieved, _RETRIEVED), "value"),
            Span(pad(sources, _SOURCES - 1) + " ", "accent"),
            Span(pad(place, place_width - 1) + " ", "dim"),
            *text,
        ]
        room = width
        cut: list[Span] = []
        for span in spans:
            cut.append(Span(clip(span.text, room), "dim" if gone and span.tone == "plain" else span.tone))
            room -= len(cut[-1].text)
            if room <= 0:
                break
        return (Row(tuple(cut), "current" if here else None),)

    def _cells(self, entry: Entry) -> tuple[str, str, list[Span]]:
        """Times retrieved, source turns, and what the item says."""
        item, contents = entry.item, entry.contents
        match item.kind:
            case "log":
                pieces = self._timeline.log_at(contents.backend, item.place, self._turn)
                size = self._timeline.log_size_at(contents.backend, item.place, self._turn)
                newest = one_line(pieces[-1][1][:_LONGEST_PREVIEW].strip()) if pieces else ""
                return "", "", [Span(f"{len(pieces):,} appended · {size:,} bytes · newest: ", "dim"), Span(newest)]
            case "state":
                value = self._timeline.state_at(contents.backend, item.place, self._turn)
                known = facts_in_words(self._timeline, contents.backend, item.place, self._turn)
                return "", "", [Span(one_line(known[:_LONGEST_PREVIEW] or _in_short(value)))]
            case "point":
                point = contents.point(item)
                count = contents.retrieved(item, self._turn) if self._counted else None
                mark = [Span("superseded ", "removed")] if point.superseded_by is not None else []
                shown = one_line(point.text[:_LONGEST_PREVIEW])
                words = "…" if count is None else f"{count:,}×"
                return words, few_turns(self._timeline.conversation, point.sources), [*mark, Span(shown)]


def column_titles(width: int) -> list[Span]:
    """Return the heads of the columns."""
    names = (("   turn", _TURN + 3), ("×", _RETRIEVED), ("from", _SOURCES), ("store", _place_width(width)))
    return [Span("".join(pad(name, size) for name, size in names) + "what it says", "dim")]


def written_words(timeline: Timeline, item: HeldItem) -> str:
    """Return the turn of the first write; an asterisk says that it was written again."""
    first = "end" if is_end(timeline, item.since) else f"{item.since}"
    return f"{first}*" if item.turn != item.since else first


def few_turns(conversation: Conversation, turns: Sequence[str]) -> str:
    """Return the turns in a narrow column: of several, the first and the last."""
    known = conversation.turns_by_id
    own = [turn_words(known[turn]) if turn in known else one_line(turn) for turn in turns]
    all_of_them = ", ".join(own)
    if len(own) < 2 or (len(own) == 2 and cells(all_of_them) < _SOURCES):
        return all_of_them
    return f"{own[0]}…{known[turns[-1]].number if turns[-1] in known else own[-1]}"


def position_words(timeline: Timeline, position: int) -> str:
    """Return a position of the cursor: a turn, what comes after the last one, or where an interrupted run
    stopped.
    """
    if not timeline.was_heard(position):
        return f"as the interrupted run left it after turn {timeline.played}"
    if is_end(timeline, position):
        return f"after turn {timeline.last_turn}"
    return f"turn {position}"


def _place_width(width: int) -> int:
    return max(17, min(30, width // 4))


def _in_short(value: Any) -> str:
    """Return the fields of a state with their values, as far as a row can show."""
    text = ", ".join(f"{name}: {inner}" for name, inner in value.items()) if isinstance(value, dict) else str(value)
    return text[:_LONGEST_PREVIEW]


# ---- one item --------------------------------------------------------------------------------------------------


class ItemDetails:
    """One item in full, as documents. Logs are laid out lazily, and their documents reused."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._logs: dict[tuple[str, str], LogDocument] = {}

    def title(self, entry: Entry, turn: int) -> str:
        """Return the place of the item, without its text."""
        item = entry.item
        place = short_key(item.place, self._timeline.conversation.id, entry.contents.backend)
        if item.kind != "log":
            return f"{place} · {one_line(item.id)}" if item.id else place
        size = self._timeline.log_size_at(entry.contents.backend, item.place, turn)
        return f"{place} · turns {item.since} to {item.turn} · {size:,} bytes"

    def document(self, entry: Entry, turn: int, earlier: int | None) -> Document:
        """Return all of it. A state is compared with what it was at an ``earlier`` position, if one is given."""
        item, backend = entry.item, entry.contents.backend
        match item.kind:
            case "log":
                log = self._logs.setdefault(
                    (backend, item.place), LogDocument(self._timeline.conversation, backend, item.place)
                )
                log.seek(self._timeline.log_at(backend, item.place, turn), 0)
                return log
            case "state":
                at = earlier if entry.sign == "−" and earlier is not None else turn
                value = self._timeline.state_at(backend, item.place, at)
                before = value if earlier is None or entry.sign == "−" else self._before(entry, earlier)
                lines = [*self._written(entry), line(""), *self._state(backend, item.place, before, value)]
                return LinesDocument(lines)
            case "point":
                return LinesDocument([*self._point_lines(entry, turn)])

    def _before(self, entry: Entry, earlier: int) -> Any:
        return self._timeline.state_at(entry.contents.backend, entry.item.place, earlier)

    def _state(self, backend: str, key: str, before: Any, after: Any) -> Iterator[Line]:
        for one in state_lines(before, after).lines:
            path = one.about
            about = ValueSubject(backend, key, path) if isinstance(path, tuple) else None
            yield Line(one.spans, one.hang, None, one.fill, about)

    def _written(self, entry: Entry) -> Iterator[Line]:
        item, backend = entry.item, entry.contents.backend
        operation = entry.contents.operation(item.ref)
        if item.kind == "state":
            yield _fact("key", one_line(item.place))
        actor = short_key(operation.actor, self._timeline.conversation.id, backend)
        command = f"{one_line(operation.store)} {one_line(operation.command)}"
        first = "first " if item.turn != item.since else ""
        since, last = (write_words(self._timeline, position) for position in (item.since, item.turn))
        yield _fact("written", f"{first}{since}", about=PositionSubject(item.since, backend))
        yield _fact(
            "last write",
            f"{last} by {actor} · {command} · {operation.ms:.1f} ms",
            about=PositionSubject(item.turn, backend),
        )

    def _point_lines(self, entry: Entry, turn: int) -> Iterator[Line]:
        item, contents, conversation = entry.item, entry.contents, self._timeline.conversation
        point = contents.point(item)
        yield from self._written(entry)
        for source in point.sources:
            yield from _source_lines(conversation, source)
        heard = self._timeline.was_heard(turn)
        until = position_words(self._timeline, turn if heard else self._timeline.played)
        yield _fact("retrieved", f"by {contents.retrieved(item, turn):,} messages and questions until {until}")
        if point.superseded_by is not None:
            yield from self._successor(contents, item.place, point.superseded_by, turn)
        yield line("")
        for name, value in point.payload.items():
            text = value if isinstance(value, str) else _json(value)
            first, *rest = visible(text).split("\n")
            yield line(Span(f"{one_line(str(name))}: ", "key"), Span(first), hang=2)
            yield from (line("  ", Span(each), hang=2) for each in rest)

    def _successor(self, contents: MemoryContents, place: str, id_: str, turn: int) -> Iterator[Line]:
        about = StoredSubject(contents.backend, place, id_, ())
        writes = self._timeline.collection(contents.backend, place).writes_of(id_, turn)
        when = f" · written {write_words(self._timeline, writes[0][0])}" if writes else ""
        yield _fact("superseded", f"by {one_line(id_)}{when}", tone="removed", about=about)
        if writes:
            yield from paragraphs(main_text(writes[-1][2].payload), indent=12)


def _source_lines(conversation: Conversation, turn_id: str) -> Iterator[Line]:
    turn = conversation.turns_by_id.get(turn_id)
    if turn is None:
        yield _fact("from", one_line(turn_id))
        return
    who = one_line(conversation.label_of(turn))
    yield line(
        Span(pad("from", 12), "dim"),
        Span(f"turn {turn_words(turn)} ", "accent"),
        Span(f"{who}: ", "key"),
        Span(one_line(turn.text)),
        hang=12,
        about=TurnSubject(turn_id),
    )


def _fact(name: str, words: str, *, tone: Tone = "plain", about: Hashable | None = None) -> Line:
    return line(Span(pad(name, 12), "dim"), Span(words, tone), hang=12, about=about)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def written_subject(timeline: Timeline, entry: Entry, turn: int) -> WrittenSubject:
    """Return an item as something that a command wrote; of a log, its newest piece."""
    item, backend = entry.item, entry.contents.backend
    match item.kind:
        case "log":
            return PieceSubject(backend, item.place, len(timeline.log_at(backend, item.place, turn)) - 1)
        case "state":
            return ValueSubject(backend, item.place, ())
        case "point":
            return StoredSubject(backend, item.place, item.id, ())
