"""A recording as the place where a timeline's events rest: read by position and by key, not all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

import orjson
from sqlite_utils import Database

from memory_backends.stores.trace import MemoryOperation
from memreplay.engine.events import ReplayEvent
from memreplay.recording.bodies import inflated, resolve, unpacked
from memreplay.timeline.event_store import (
    EventArchive,
    EventSummary,
    MemoryArchive,
    RankedItem,
    changes,
    operation_of,
    ranked_items_of,
    summarize_decision,
    summarize_write,
)
from memreplay.timeline.fold import LazySequence

_EVENTS_KEPT = 2048
_PLACES_KEPT = 64

_TELLING = "('store_operated', 'promotion_decided')"
"""Kinds whose body an index must see."""


class LiveWriter(Protocol):
    """Who records the events of a conversation that is still being played."""

    def key_of(self, conversation_id: str, number: int) -> int:
        """The key of the ``number``-th event (0-based) of a conversation, on disk when this returns."""
        ...

    def flush(self) -> None:
        """Commit what is pending."""
        ...


class RecordedArchive:
    """The events of one conversation of a recording. A reference is the key of an event's row."""

    def __init__(self, db: Database, conversation: int, look_up: Callable[[str], str]) -> None:
        self._db = db
        self._conversation = conversation
        self._look_up = look_up
        columns = {column.name for column in db.table("events").columns}
        self._changes = "changes" if "changes" in columns else "null"
        self.event = lru_cache(maxsize=_EVENTS_KEPT)(self._event)
        self.at = lru_cache(maxsize=_PLACES_KEPT)(self._at)
        self.operation_at = lru_cache(maxsize=_PLACES_KEPT)(self._operated_at)

    def keep(self, event: ReplayEvent) -> int:
        """A finished recording takes in nothing more.

        Raises:
            ValueError: always.
        """
        raise ValueError("a recording that is only read takes in no event")

    def forget_positions(self) -> None:
        """More happened at a position that was read already."""
        self.at.cache_clear()
        self.operation_at.cache_clear()

    def summaries(self) -> Iterator[EventSummary]:
        """What there is to know of every event, by position and then in order.

        Only bodies of decisions and of what changed a store are read. A file of the first format does not say what
        did: there every operation is read.
        """
        rows = self._db.conn.execute(
            "select key, turn, backend, kind,"
            f" case when kind in {_TELLING} and ({self._changes} is null or {self._changes} = 1) then body end"
            " from events where conversation = ? order by turn, key",
            [self._conversation],
        )
        for key, turn, backend, kind, body in rows:
            if body is None:
                yield EventSummary(key, turn, backend, kind)
                continue
            event = orjson.loads(inflated(body))
            if kind == "store_operated":
                yield EventSummary(key, turn, backend, kind, write=summarize_write(event["operation"], self._read))
            else:
                yield EventSummary(
                    key, turn, backend, kind, decision=summarize_decision(event["decision"], self._read)
                )

    def _read(self, value: Any) -> Any:
        """A text, wherever it is kept."""
        return resolve(value, self._look_up) if isinstance(value, dict) else value

    def _event(self, ref: int) -> ReplayEvent:
        row = self._db.conn.execute("select body from events where key = ?", [ref]).fetchone()
        return unpacked(row[0], self._look_up)

    def _at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        return self._events(backend, turn, "")

    def _operated_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        return self._events(backend, turn, " and +kind = 'store_operated'")

    def _events(self, backend: str, turn: int, condition: str) -> Sequence[ReplayEvent]:
        """Their keys; the events are read when they are looked at, since a position may hold thousands."""
        rows = self._db.conn.execute(
            f"select key from events where conversation = ? and turn = ? and +backend = ?{condition} order by key",
            [self._conversation, turn, backend],
        )
        return LazySequence([key for (key,) in rows], self.event)

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """The store commands of a position that changed a store."""
        rows = self._db.conn.execute(
            "select body from events where conversation = ? and turn = ? and +backend = ?"
            " and +kind = 'store_operated'"
            f" and ({self._changes} is null or {self._changes} = 1) order by key",
            [self._conversation, turn, backend],
        )
        operations = (operation_of(unpacked(body, self._look_up)) for (body,) in rows)
        return [operation for operation in operations if changes(operation)]

    def candidates(self, ref: int) -> list[RankedItem]:
        """What the read path of a reference found. Its texts are not read, nor is it validated again."""
        (body,) = self._db.conn.execute("select body from events where key = ?", [ref]).fetchone()
        event = orjson.loads(inflated(body))
        return [
            RankedItem(
                self._read(hit["id"]),
                tuple(map(self._read, hit["turns"])),
                tuple(map(self._read, hit["sources"])),
                hit["rank"],
                is_missed,
                bool(hit["text"]),
            )
            for is_missed, hits in ((False, event["hits"]), (True, event.get("missed", ())))
            for hit in hits
        ]


class LiveArchive:
    """The events of a conversation that is being recorded. A reference is an event's number, from 0.

    What was recorded is read back when it is looked at again: only the newest events and positions are kept here,
    so that looking at the frontier does not make the recorder write.
    """

    def __init__(self, writer: LiveWriter, conversation_id: str, recorded: RecordedArchive) -> None:
        self._writer = writer
        self._conversation_id = conversation_id
        self._recorded = recorded
        self._newest: dict[int, ReplayEvent] = {}
        self._positions: dict[int, MemoryArchive] = {}
        self._count = 0

    def read_from(self, recorded: RecordedArchive) -> None:
        """The recording was closed by its writer, and opened again for reading."""
        self._recorded = recorded

    def keep(self, event: ReplayEvent) -> int:
        """Take in what was recorded next; its reference."""
        ref = self._count
        self._count += 1
        self._newest[ref] = event
        self._newest.pop(ref - _EVENTS_KEPT, None)
        if event.turn >= max(self._positions, default=0):
            self._positions.setdefault(event.turn, MemoryArchive())
            self._positions.pop(event.turn - _PLACES_KEPT, None)
        if event.turn in self._positions:
            self._positions[event.turn].keep(event)
        else:
            self._recorded.forget_positions()
        return ref

    def event(self, ref: int) -> ReplayEvent:
        """An event by its reference."""
        if ref in self._newest:
            return self._newest[ref]
        return self._recorded.event(self._writer.key_of(self._conversation_id, ref))

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        return self._archive_of(turn).at(backend, turn)

    def operation_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """The store commands among it."""
        return self._archive_of(turn).operation_at(backend, turn)

    def written_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """The store commands of a position that changed a store."""
        return self._archive_of(turn).written_at(backend, turn)

    def candidates(self, ref: int) -> list[RankedItem]:
        """What the read path of a reference found."""
        return ranked_items_of(self.event(ref))

    def summaries(self) -> Iterator[EventSummary]:
        """Nothing is known before it was kept."""
        return iter(())

    def _archive_of(self, turn: int) -> EventArchive:
        if turn in self._positions:
            return self._positions[turn]
        self._writer.flush()
        return self._recorded
