"""A timeline's event store in a recording: events are read by position and key, not all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
from sqlite_utils import Database

from memory_backends.stores.trace import MemoryOperation
from memreplay.engine.events import ReplayEvent
from memreplay.errors import DamagedEventError
from memreplay.recording.bodies import EventRow, Shelf, event_from_row, parts_and_ranks, resolve, with_part
from memreplay.recording.damage import reporting_damaged_event
from memreplay.timeline.event_store import (
    EventArchive,
    EventSummary,
    MemoryArchive,
    RankedItem,
    operation_of,
    ranked_items_of,
    summarize_decision,
    summarize_write,
)
from memreplay.timeline.fold import LazySequence

_EVENTS_CACHED = 256
"""A retrieval of a long conversation takes over 100 KB once it is read."""

_NEWEST_KEPT = 2048
_CANDIDATES_CACHED = 4096
_POSITIONS_CACHED = 64


class RecordedArchive:
    """The events of a recorded conversation. A reference is the key of an event's row."""

    def __init__(self, db: Database, conversation: int, conversation_id: str, shelf: Shelf) -> None:
        self._db = db
        self._conversation, self._id = conversation, conversation_id
        self._shelf = shelf
        self._candidate = lru_cache(maxsize=_CANDIDATES_CACHED)(self._read_candidate)
        self.event = lru_cache(maxsize=_EVENTS_CACHED)(self._event)
        self.at = lru_cache(maxsize=_POSITIONS_CACHED)(self._at)
        self.operation_at = lru_cache(maxsize=_POSITIONS_CACHED)(self._operated_at)

    def keep(self, event: ReplayEvent) -> int:
        """Events are only added to a recording through its recorder.

        Raises:
            ValueError: always.
        """
        raise ValueError("this recording is open for reading only")

    def forget_positions(self) -> None:
        """Forget cached positions: events were added to them."""
        self.at.cache_clear()
        self.operation_at.cache_clear()

    def summaries(self) -> Iterator[EventSummary]:
        """Yield a note of every event that a timeline indexes, by position and then in recorded order.

        Reads the bodies of decisions and of store commands that changed a store, and no others. Most events of a
        long recording are of no use to an index: they are left out, but the last position of each sort is noted.
        """
        rows = self._db.conn.execute(
            "select key, turn, backend, kind,"
            " case when kind = 'promotion_decided' or changes = 1 then body end"
            " from events where conversation = ? and (changes = 1 or kind not in"
            " ('store_operated', 'turn_played', 'observed', 'background_work_settled'))"
            " and (kind != 'model_called' or json_extract(body, '$.call.purpose') = 'chat')"
            " order by turn, key",
            [self._conversation],
        )
        for key, turn, backend, kind, body in rows:
            if body is None:
                yield EventSummary(key, turn, backend, kind)
                continue
            event = orjson.loads(body)
            if kind == "store_operated":
                operation = with_part(event["operation"], self._shelf.part)
                yield EventSummary(key, turn, backend, kind, write=summarize_write(operation, self._read))
            else:
                yield EventSummary(
                    key, turn, backend, kind, decision=summarize_decision(event["decision"], self._read)
                )
        for condition in ("", " and +kind = 'turn_played'"):
            yield from self._last(condition)

    def _last(self, condition: str) -> Iterator[EventSummary]:
        """Return the position of the last event that meets a condition, told of no backend."""
        rows = self._db.conn.execute(
            f"select key, turn, kind from events where conversation = ?{condition}"
            " order by turn desc, key desc limit 1",
            [self._conversation],
        )
        return (EventSummary(key, turn, None, kind) for key, turn, kind in rows)

    def _read(self, value: Any) -> Any:
        """Return a value of an event's JSON, which may be a reference to a long text."""
        return resolve(value, self._shelf.text) if isinstance(value, dict) else value

    def _event(self, ref: int) -> ReplayEvent:
        row = self._db.conn.execute("select backend, turn, kind, body from events where key = ?", [ref]).fetchone()
        if row is None:
            raise DamagedEventError("an event is gone: the recording was changed meanwhile; open it again")
        return event_from_row(EventRow(self._id, *row), self._shelf)

    def _at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        return self._events(backend, turn, "")

    def _operated_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        return self._events(backend, turn, " and +kind = 'store_operated'")

    def _events(self, backend: str, turn: int, condition: str) -> Sequence[ReplayEvent]:
        """Return only keys are read now, and events when they are used: a position may hold thousands."""
        rows = self._db.conn.execute(
            f"select key from events where conversation = ? and turn = ? and +backend = ?{condition} order by key",
            [self._conversation, turn, backend],
        )
        return LazySequence([key for (key,) in rows], self.event)

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """Store commands at a position that changed a store."""
        rows = self._db.conn.execute(
            "select backend, turn, kind, body from events where conversation = ? and turn = ? and +backend = ?"
            " and changes = 1 order by key",
            [self._conversation, turn, backend],
        )
        return [operation_of(event_from_row(EventRow(self._id, *row), self._shelf)) for row in rows.fetchall()]

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        """Return what one backend heard, decided and changed up to a position. Other events are most of a
        recording.
        """
        rows = self._db.conn.execute(
            "select key from events where conversation = ? and turn <= ? and backend = ? and (changes = 1"
            " or kind in ('conversation_opened', 'observed', 'promotion_decided', 'facts_extracted')"
            " or kind = 'model_called' and json_extract(body, '$.call.purpose') = 'chat') order by turn, key",
            [self._conversation, turn, backend],
        )
        return (self._event(key) for (key,) in rows.fetchall())

    def candidates(self, ref: int) -> list[RankedItem]:
        """Return the hits and missed candidates of an event, without reading their texts or validating the
        event.
        """
        (body,) = self._db.conn.execute("select body from events where key = ?", [ref]).fetchone()
        with reporting_damaged_event():
            return self._candidates_in(orjson.loads(body))

    def _candidates_in(self, event: dict[str, Any]) -> list[RankedItem]:
        return [
            (self._candidate(part) if isinstance(part, int) else self._item(part))._replace(
                rank=rank, missed=is_missed
            )
            for is_missed, hits in ((False, event.get("hits", ())), (True, event.get("missed", ())))
            for part, rank in parts_and_ranks(hits)
        ]

    def _read_candidate(self, part: int) -> RankedItem:
        return self._item(self._shelf.raw_part(part))

    def _item(self, hit: Mapping[str, Any]) -> RankedItem:
        """Return a candidate, but for its rank and whether it was missed."""
        return RankedItem(
            self._read(hit["id"]),
            tuple(map(self._read, hit["turns"])),
            tuple(map(self._read, hit["sources"])),
            0,
            False,
            bool(hit["text"]),
        )


class LiveArchive:
    """The events of a conversation that is being recorded. A reference is an event's 0-based number.

    The newest events and positions are held in memory, so that looking at them does not make the recorder flush;
    older ones are read back from the file: ``key_of`` gives the key of an event's row there, and ``flush`` writes
    what the recorder still holds.
    """

    def __init__(self, recorded: RecordedArchive, key_of: Callable[[int], int], flush: Callable[[], None]) -> None:
        self._recorded = recorded
        self._key_of = key_of
        self._flush = flush
        self._newest: dict[int, ReplayEvent] = {}
        self._positions: dict[int, MemoryArchive] = {}
        self._count = 0

    def read_from(self, recorded: RecordedArchive) -> None:
        """Read from this archive from now on: the recorder has closed the file."""
        self._recorded = recorded

    def keep(self, event: ReplayEvent) -> int:
        """Add the event that was recorded next; returns its reference."""
        ref = self._count
        self._count += 1
        self._newest[ref] = event
        self._newest.pop(ref - _NEWEST_KEPT, None)
        if event.turn >= max(self._positions, default=0):
            self._positions.setdefault(event.turn, MemoryArchive())
            self._positions.pop(event.turn - _POSITIONS_CACHED, None)
        if event.turn in self._positions:
            self._positions[event.turn].keep(event)
        else:
            self._recorded.forget_positions()
        return ref

    def event(self, ref: int) -> ReplayEvent:
        if ref in self._newest:
            return self._newest[ref]
        return self._recorded.event(self._key_of(ref))

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Events of a backend at exactly this position, in order."""
        return self._archive_of(turn).at(backend, turn)

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Store commands of a backend at exactly this position."""
        return self._archive_of(turn).operation_at(backend, turn)

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """Store commands at a position that changed a store."""
        return self._archive_of(turn).written_at(backend, turn)

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        """Return what one backend heard, decided and changed up to a position."""
        self._flush()
        return self._recorded.kept_until(backend, turn)

    def candidates(self, ref: int) -> list[RankedItem]:
        return ranked_items_of(self.event(ref))

    def summaries(self) -> Iterator[EventSummary]:
        """None: the store is created before the first event."""
        return iter(())

    def _archive_of(self, turn: int) -> EventArchive:
        if turn in self._positions:
            return self._positions[turn]
        self._flush()
        return self._recorded
