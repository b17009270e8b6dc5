"""A recording as the place where a timeline's events rest: read by position and by key, not all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from sqlite_utils import Database

from app.recording.bodies import unpacked
from app.replay.archive import Note, note_of
from app.replay.events import ReplayEvent

_EVENTS_KEPT = 2048
_PLACES_KEPT = 64

_TELLING = "('operated', 'decided')"
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
        self.event = lru_cache(maxsize=_EVENTS_KEPT)(self._event)
        self.at = lru_cache(maxsize=_PLACES_KEPT)(self._at)

    def keep(self, event: ReplayEvent) -> int:
        """A finished recording takes in nothing more.

        Raises:
            ValueError: always.
        """
        raise ValueError("a recording that is only read takes in no event")

    def notes(self) -> Iterator[Note]:
        """What there is to know of every event, by position and then in order.

        Only bodies of decisions and of what changed a store are read. A file of the first format does not say what
        did: there every operation is read.
        """
        columns = {column.name for column in self._db.table("events").columns}
        changes = "changes" if "changes" in columns else "null"
        rows = self._db.conn.execute(
            "select key, turn, backend, kind,"
            f" case when kind in {_TELLING} and ({changes} is null or {changes} = 1) then body end"
            " from events where conversation = ? order by turn, key",
            [self._conversation],
        )
        for key, turn, backend, kind, body in rows:
            if body is None:
                yield Note(key, turn, backend, kind)
            else:
                yield note_of(key, unpacked(body, self._look_up))

    def _event(self, ref: int) -> ReplayEvent:
        row = self._db.conn.execute("select body from events where key = ?", [ref]).fetchone()
        return unpacked(row[0], self._look_up)

    def _at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        rows = self._db.conn.execute(
            "select body from events where conversation = ? and turn = ? and backend = ? order by key",
            [self._conversation, turn, backend],
        )
        return tuple(unpacked(body, self._look_up) for (body,) in rows)


class LiveArchive:
    """The events of a conversation that is being recorded. A reference is an event's number, from 0.

    What was recorded is read back when it is looked at again: nothing is kept here but the newest events.
    """

    def __init__(self, writer: LiveWriter, conversation_id: str, recorded: RecordedArchive) -> None:
        self._writer = writer
        self._conversation_id = conversation_id
        self._recorded = recorded
        self._newest: dict[int, ReplayEvent] = {}
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
        self._recorded.at.cache_clear()
        return ref

    def event(self, ref: int) -> ReplayEvent:
        """An event by its reference."""
        if ref in self._newest:
            return self._newest[ref]
        return self._recorded.event(self._writer.key_of(self._conversation_id, ref))

    def at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        self._writer.flush()
        return self._recorded.at(backend, turn)

    def notes(self) -> Iterator[Note]:
        """Nothing is known before it was kept."""
        return iter(())
