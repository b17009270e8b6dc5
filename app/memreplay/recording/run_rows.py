"""The rows of one run. Every change is one transaction."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from uuid import uuid4

import orjson
from sqlite_utils import Database

from memreplay import __version__
from memreplay.conversations.models import Conversation
from memreplay.engine.events import (
    ASK_KINDS,
    AgentReplied,
    AskEvent,
    BackendEvent,
    BenchmarkModelAsked,
    ReplayEvent,
    StoreOperated,
)
from memreplay.errors import RecordingError
from memreplay.recording.bodies import (
    EventRow,
    conversation_to_json,
    event_from_row,
    event_to_json,
    intern,
    to_json,
)
from memreplay.recording.branches import Branch, insert_branch
from memreplay.recording.connection import connect_read_only, full_disk, leave_wal, open_exclusively
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, placeholders
from memreplay.scoring.question_row import QuestionRow
from memreplay.timeline.event_store import changes

_PAID_KINDS = (*ASK_KINDS, "agent_replied", "benchmark_model_asked")
"""Kinds of events that cost money: an interrupted run keeps them."""

_UNPAID = (
    f"kind not in {placeholders(_PAID_KINDS)}"
    " and not (kind = 'model_called' and json_extract(body, '$.call.phase') in ('perceive', 'recall'))"
)
"""The other events. Calls of models that memory made to read cost money too, and scores are not asked for again."""

PaidByTests = AgentReplied | BenchmarkModelAsked
"""Events of tests that cost money."""


class RunRows:
    """Inserts and changes the rows of one run.

    Every method that writes raises :class:`~memreplay.errors.RecordingError` if it cannot, as on a full disk.
    """

    def __init__(self, db: Database, path: Path, run_id: str) -> None:
        self._db = db
        self._path = path
        self.run_id = run_id
        self._keys: dict[str, int] = {
            row["id"]: row["key"]
            for row in db.query("select key, id from conversations where run_id = ?", [run_id])
        }
        self._texts = _Latest[str, bool]()
        self._parts = _Latest[bytes, int]()

    def key_of(self, conversation_id: str) -> int:
        return self._keys[conversation_id]

    def add_conversation(self, conversation: Conversation) -> None:
        """Insert a conversation, unless the run has it already."""
        if conversation.id in self._keys:
            return
        with self._atomically():
            body = conversation_to_json(conversation, self._store_text)
            row = {
                "run_id": self.run_id,
                "position": len(self._keys),
                "id": conversation.id,
                "dataset": conversation.dataset,
                "body": body,
            }
            key = self._db.table("conversations").insert(row).last_pk
            assert isinstance(key, int)
        self._keys[conversation.id] = key

    def put_conversation(self, conversation: Conversation, events: Sequence[ReplayEvent]) -> Sequence[ReplayEvent]:
        """Insert a conversation, or replace the one of its id; returns the events that are to be inserted.

        Those with which its recorded events begin stay, so that a screen that shows them goes on.
        """
        if conversation.id not in self._keys:
            self.add_conversation(conversation)
            return events
        key = self._keys[conversation.id]
        recorded = self.keyed_events(conversation.id)
        pairs = zip(recorded, events, strict=False)
        kept = next((n for n, ((_, old), new) in enumerate(pairs) if old != new), min(len(recorded), len(events)))
        with self._atomically():
            body = conversation_to_json(conversation, self._store_text)
            self._db.table("conversations").update(key, {"dataset": conversation.dataset, "body": body})
            gone = [(event_key,) for event_key, _ in recorded[kept:]]
            self._db.conn.executemany("delete from events where key = ?", gone)
            self._db.execute(
                "delete from scores where run_id = ? and conversation = ?", [self.run_id, conversation.id]
            )
        return events[kept:]

    def describe(self, settings: dict[str, Any], datasets: Sequence[str]) -> None:
        """Replace the settings and datasets of the run."""
        with self._atomically():
            written = {"settings": to_json(settings).decode(), "datasets": to_json(list(datasets)).decode()}
            self._db.table("runs").update(self.run_id, written)

    def insert(self, events: Sequence[ReplayEvent]) -> list[int]:
        """Commit these events and return their keys."""
        with self._atomically():
            return [self._insert(event) for event in events]

    def insert_unnumbered(self, events: Sequence[ReplayEvent]) -> None:
        """Commit these events, faster than :meth:`insert`, which returns their keys."""
        with self._atomically():
            self._db.conn.executemany(_INSERT_EVENT, [self._row(event) for event in events])

    def forget_ingestion(self, conversation_id: str, backends: Sequence[str]) -> None:
        """Delete what these backends did with a conversation, except what they were asked and read for it."""
        key = self._keys.get(conversation_id)
        if key is None:
            return
        kept = set(chain.from_iterable(self._reads_of_asks(key).values()))
        rows = self._db.execute(
            f"select key from events where conversation = ? and {_UNPAID}"
            f" and (backend is null or backend in {placeholders(backends)})",
            [key, *_PAID_KINDS, *backends],
        )
        unwanted = [(event,) for (event,) in rows if event not in kept]
        with self._atomically():
            self._db.conn.executemany("delete from events where key = ?", unwanted)

    def forget_all_but_asks(self, conversation_id: str) -> None:
        """Delete all events of a conversation that cost nothing."""
        with self._atomically():
            self._db.execute(
                f"delete from events where conversation = ? and {_UNPAID}",
                [self._keys[conversation_id], *_PAID_KINDS],
            )

    def keyed_events(self, conversation_id: str) -> list[tuple[int, ReplayEvent]]:
        """Return all events of a conversation with their keys, by position and then in recorded order."""
        return self._keyed_events(conversation_id, "", ())

    def _keyed_events(
        self, conversation_id: str, condition: str, values: Sequence[Any]
    ) -> list[tuple[int, ReplayEvent]]:
        shelf = Recording(self._db, self._path)
        rows = self._db.execute(
            "select key, backend, turn, kind, body from events"
            f" where conversation = ?{condition} order by turn, key",
            [self._keys[conversation_id], *values],
        )
        return [(key, event_from_row(EventRow(conversation_id, *row), shelf)) for key, *row in rows.fetchall()]

    def forget_asks(
        self, conversation_id: str, asks: Collection[AskEvent], kinds: Sequence[str] = ASK_KINDS
    ) -> None:
        """Delete the events of these asks, of all ``kinds`` or some."""
        key = self._keys.get(conversation_id)
        if key is None or not asks:
            return
        reads = self._reads_of_asks(key)
        unwanted = {(ask.backend, ask.model, ask.question_id, ask.repeat, ask.by_hand) for ask in asks}
        rows = self._db.execute(
            f"select key, backend, body from events where conversation = ? and kind in {placeholders(kinds)}",
            [key, *kinds],
        )
        keys = []
        for event_key, backend, body in rows:
            fields = orjson.loads(body)
            ask = (backend, *(fields[name] for name in ("model", "question_id", "repeat", "by_hand")))
            if ask in unwanted:
                keys.append((event_key,))
                keys += [(read,) for read in reads.get(event_key, ())]
        with self._atomically():
            self._db.conn.executemany("delete from events where key = ?", keys)

    def _reads_of_asks(self, conversation: int) -> dict[int, list[int]]:
        """Return the store commands of each ask's recall, by the key of its event: they directly precede it."""
        rows = self._db.execute(
            "select e.key, e.backend, e.kind from events e"
            " left join parts p on p.key = json_extract(e.body, '$.operation.part')"
            " where e.conversation = ? and (e.kind = 'question_asked' or e.kind = 'store_operated' and"
            " coalesce(json_extract(p.body, '$.phase'), json_extract(e.body, '$.operation.phase')) = 'recall')"
            " order by e.key",
            [conversation],
        )
        reads: dict[int, list[int]] = {}
        pending: dict[str, list[int]] = defaultdict(list)
        for key, backend, kind in rows:
            if kind == "question_asked":
                reads[key] = pending.pop(backend, [])
            else:
                pending[backend].append(key)
        return reads

    def replace(self, event: PaidByTests, other: PaidByTests | None) -> None:
        """Replace a recorded event by another of the same conversation and kind; delete it if ``other`` is None."""
        alike = self._keyed_events(event.conversation, " and turn = ? and kind = ?", (event.turn, event.kind))
        key = next((key for key, recorded in alike if recorded == event), None)
        with self._atomically():
            if other is None:
                self._db.execute("delete from events where key = ?", [key])
            else:
                row = self._row(other) | {"key": key}
                self._db.execute("update events set turn = :turn, body = :body where key = :key", row)

    def resume(self) -> None:
        """Mark the run as running again. Its scores are out of date from now on."""
        with self._atomically():
            self._db.execute("delete from scores where run_id = ?", [self.run_id])
            self._db.table("runs").update(self.run_id, {"status": "running", "finished_at": None})

    def end(self, status: Literal["finished", "interrupted"]) -> None:
        with self._atomically():
            self._db.table("runs").update(self.run_id, {"status": status, "finished_at": _now()})

    def _insert(self, event: ReplayEvent) -> int:
        cursor = self._db.conn.execute(_INSERT_EVENT, self._row(event))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _row(self, event: ReplayEvent) -> dict[str, Any]:
        return {
            "conversation": self._keys[event.conversation],
            "backend": event.backend if isinstance(event, BackendEvent) else None,
            "turn": event.turn,
            "kind": event.kind,
            "changes": int(changes(event.operation)) if isinstance(event, StoreOperated) else None,
            "body": event_to_json(event, self._store_text, self._share),
        }

    def _store_text(self, digest: str, text: str) -> None:
        if self._texts.get(digest) is None:
            self._db.conn.execute("insert or ignore into texts (hash, body) values (?, ?)", [digest, text])
            self._texts.add(digest, True)

    def _share(self, part: dict[str, Any]) -> int:
        """Return the key of a part's row. One that has not been used for long may be stored again."""
        digest = blake2b(orjson.dumps(part), digest_size=16).digest()
        key = self._parts.get(digest)
        if key is None:
            body = orjson.dumps(intern(part, self._store_text)).decode()
            key = self._db.conn.execute("insert into parts (body) values (?)", [body]).lastrowid
            assert key is not None
            self._parts.add(digest, key)
        return key

    @contextmanager
    def _atomically(self) -> Iterator[None]:
        """Run one transaction. Texts and parts count as stored only once it is committed."""
        self._texts.begin()
        self._parts.begin()
        with reporting_write_errors(self._path), self._db.atomic():
            yield
        self._texts.commit()
        self._parts.commit()


_INSERT_EVENT = (
    "insert into events (conversation, backend, turn, kind, changes, body)"
    " values (:conversation, :backend, :turn, :kind, :changes, :body)"
)

_MOST_REMEMBERED = 100_000
"""Texts and parts that are remembered as stored: those of the latest conversations."""

_K = TypeVar("_K")

_V = TypeVar("_V")


class _Latest(Generic[_K, _V]):
    """The value stored last, by key. Values of a transaction count only once it is committed."""

    def __init__(self) -> None:
        self._committed: dict[_K, _V] = {}
        self._new: dict[_K, _V] = {}

    def get(self, key: _K) -> _V | None:
        return self._new.get(key) or self._committed.get(key)

    def add(self, key: _K, value: _V) -> None:
        self._new[key] = value

    def begin(self) -> None:
        self._new = {}

    def commit(self) -> None:
        self._committed |= self._new
        self._new = {}
        excess = len(self._committed) - _MOST_REMEMBERED
        if excess > 0:
            # Half of them at a time: a dictionary keeps the room of what is removed from its front.
            self._committed = dict(islice(self._committed.items(), excess + _MOST_REMEMBERED // 2, None))


def insert_run(
    db: Database,
    path: Path,
    settings: dict[str, Any],
    datasets: Sequence[str],
    identity: str,
    branch: Branch | None = None,
) -> RunRows:
    """Insert a new run with a new id. ``settings`` must hold no secrets; a ``branch`` departs from another run."""
    run_id = uuid4().hex[:12]
    with db.atomic():
        db.table("runs").insert(
            {
                "id": run_id,
                "started_at": _now(),
                "finished_at": None,
                "status": "running",
                "version": __version__,
                "fingerprint": identity,
                "settings": to_json(settings).decode(),
                "datasets": to_json(list(datasets)).decode(),
            }
        )
        if branch is not None:
            insert_branch(db, run_id, branch)
    return RunRows(db, path, run_id)


@contextmanager
def reporting_write_errors(path: Path) -> Iterator[None]:
    """Report SQLite's error about a full disk or a locked file in one sentence.

    Raises:
        RecordingError: something in the block could not be written.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise RecordingError(f"{path}: cannot be written: {error}") from full_disk(error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def store_scores(path: Path, run_id: str, rows: Sequence[QuestionRow]) -> None:
    """Replace the stored scores of a run in one transaction. The file is not written if they are the same already.

    Raises:
        RecordingError: the file is read-only, in use, or cannot be written.
    """
    scores = [_score(run_id, row) for row in rows]
    with closing(connect_read_only(path)) as db, reporting_damage(path):
        if _stored_scores(db, run_id) == scores:
            return
    with open_exclusively(path) as (db, lock):
        try:
            with reporting_write_errors(path), db.atomic():
                db.execute("delete from scores where run_id = ?", [run_id])
                db.table("scores").insert_all(scores)
            leave_wal(db)
        finally:
            db.close()
            lock.release()


def _stored_scores(db: Database, run_id: str) -> list[dict[str, Any]]:
    rows = db.conn.execute("select * from scores where run_id = ? order by rowid", [run_id])
    names = [name for name, *_ in rows.description]
    return [dict(zip(names, row, strict=True)) for row in rows]


_SAME_NAMES = (
    "dataset",
    "conversation",
    "question_id",
    "backend",
    "model",
    "repeat",
    "kind",
    "type",
    "question",
    "expected",
    "predicted",
    "outcome",
    "score",
    "max_score",
    "recorded_score",
    "failure",
    "failure_loss",
    "failure_detail",
    "failure_doubt",
    "failure_judge",
    "failure_by_rules",
    "closed_book_correct",
    "recall_at_1",
    "recall_at_5",
    "recall_at_10",
    "reciprocal_rank",
    "evidence_in_prompt",
    "exact_match",
    "entity_recall",
    "f1",
    "cost_usd",
    "ms",
    "recall_ms",
    "error",
)
"""Columns that are named and filled as in :class:`~memreplay.scoring.question_row.QuestionRow`."""


def _score(run_id: str, row: QuestionRow) -> dict[str, Any]:
    tokens = row.tokens
    return {
        "run_id": run_id,
        **{name: getattr(row, name) for name in _SAME_NAMES},
        "prompt_tokens": tokens.prompt if tokens else None,
        "completion_tokens": tokens.completion if tokens else None,
        "cached_tokens": tokens.cached if tokens else None,
    }
