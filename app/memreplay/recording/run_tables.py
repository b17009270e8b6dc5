"""One run in the tables of a recording: every change is one transaction, or is not made at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
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
from memreplay.recording.bodies import intern, packed, unpacked
from memreplay.recording.reader import Recording, RunStatus
from memreplay.timeline.event_store import summarize

_PAID_KINDS = (*ASK_KINDS, "agent_replied", "benchmark_model_asked")
"""What a run has paid for: an interrupted one keeps it."""

PaidByTests = AgentReplied | BenchmarkModelAsked
"""What a run of tests has paid for."""


class RunTables:
    """The rows of one run. A full disk is a :class:`~memreplay.errors.RecordingError`."""

    def __init__(self, db: Database, path: Path, run_id: str) -> None:
        self._db = db
        self._path = path
        self.run_id = run_id
        self._keys: dict[str, int] = {
            row["id"]: row["key"]
            for row in db.query("select key, id from conversations where run_id = ?", [run_id])
        }
        self._known_texts: set[str] = set()
        self._new_texts: set[str] = set()

    def key_of(self, conversation_id: str) -> int:
        """The key of a conversation that was added."""
        return self._keys[conversation_id]

    def add_conversation(self, conversation: Conversation) -> None:
        """Keep the conversation itself. Adding it again changes nothing."""
        if conversation.id in self._keys:
            return
        with self._atomically():
            body = orjson.dumps(intern(conversation.model_dump(mode="json"), self._keep_text))
            row = {
                "run_id": self.run_id,
                "position": len(self._keys),
                "id": conversation.id,
                "dataset": conversation.dataset,
                "body": body.decode(),
            }
            key = self._db.table("conversations").insert(row).last_pk
            assert isinstance(key, int)
        self._keys[conversation.id] = key

    def insert(self, events: Sequence[ReplayEvent]) -> list[int]:
        """Commit these events, whose keys are given back."""
        with self._atomically():
            return [self._insert(event) for event in events]

    def forget_ingestion(self, conversation_id: str, backends: Sequence[str]) -> None:
        """Remove what these backends did with a conversation, but not what was asked of them."""
        key = self._keys.get(conversation_id)
        if key is None:
            return
        with self._atomically():
            self._db.execute(
                f"delete from events where conversation = ? and kind not in ({_marks(_PAID_KINDS)})"
                f" and (backend is null or backend in ({_marks(backends)}))",
                [key, *_PAID_KINDS, *backends],
            )

    def forget_asks(self, conversation_id: str, asks: Collection[AskEvent]) -> None:
        """Remove every trace of these asks."""
        key = self._keys.get(conversation_id)
        if key is None or not asks:
            return
        unwanted = {(ask.backend, ask.model, ask.question_id, ask.repeat, ask.by_hand) for ask in asks}
        rows = self._db.execute(
            f"select key, backend, body from events where conversation = ? and kind in ({_marks(ASK_KINDS)})",
            [key, *ASK_KINDS],
        )
        keys = []
        for event_key, backend, body in rows:
            fields = orjson.loads(body)
            ask = (backend, *(fields[name] for name in ("model", "question_id", "repeat", "by_hand")))
            if ask in unwanted:
                keys.append((event_key,))
        with self._atomically():
            self._db.conn.executemany("delete from events where key = ?", keys)

    def replace(self, event: PaidByTests, other: PaidByTests | None) -> None:
        """Put another event, of the same conversation and kind, in the place of one on record; or remove it."""
        texts = Recording(self._db, self._path).text
        rows = self._db.execute(
            "select key, body from events where conversation = ? and turn = ? and kind = ? order by key",
            [self._keys[event.conversation], event.turn, event.kind],
        )
        key = next((key for key, body in rows.fetchall() if unpacked(body, texts) == event), None)
        with self._atomically():
            if other is None:
                self._db.execute("delete from events where key = ?", [key])
            else:
                row = self._row(other) | {"key": key}
                self._db.execute("update events set turn = :turn, body = :body where key = :key", row)

    def set_status(self, status: RunStatus) -> None:
        """How far the run is; one that is not running any more is over now."""
        finished = None if status == "running" else _now()
        with _writing(self._path):
            self._db.table("runs").update(self.run_id, {"status": status, "finished_at": finished})

    def _insert(self, event: ReplayEvent) -> int:
        cursor = self._db.conn.execute(
            "insert into events (conversation, backend, turn, kind, body, changes)"
            " values (:conversation, :backend, :turn, :kind, :body, :changes)",
            self._row(event),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _row(self, event: ReplayEvent) -> dict[str, Any]:
        return {
            "conversation": self._keys[event.conversation],
            "backend": event.backend if isinstance(event, BackendEvent) else None,
            "turn": event.turn,
            "kind": event.kind,
            "body": packed(event, self._keep_text),
            "changes": int(summarize(0, event).write is not None) if isinstance(event, StoreOperated) else None,
        }

    def _keep_text(self, digest: str, text: str) -> None:
        if digest not in self._known_texts and digest not in self._new_texts:
            self._db.execute("insert or ignore into texts (hash, body) values (?, ?)", [digest, text])
            self._new_texts.add(digest)

    @contextmanager
    def _atomically(self) -> Iterator[None]:
        """One transaction. Texts are known to be in the file only when it is committed."""
        self._new_texts = set()
        with _writing(self._path), self._db.atomic():
            yield
        self._known_texts |= self._new_texts


def insert_run(
    db: Database, path: Path, settings: dict[str, Any], datasets: Sequence[str], identity: str
) -> RunTables:
    """A new run, under an id of its own. ``settings`` hold no secrets.

    Raises:
        RecordingError: the file cannot be written.
    """
    run_id = uuid4().hex[:12]
    with _writing(path):
        db.table("runs").insert(
            {
                "id": run_id,
                "started_at": _now(),
                "finished_at": None,
                "status": "running",
                "version": __version__,
                "fingerprint": identity,
                "settings": orjson.dumps(settings).decode(),
                "datasets": orjson.dumps(list(datasets)).decode(),
            }
        )
    return RunTables(db, path, run_id)


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a full disk or a locked file into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise RecordingError(f"{path}: cannot be written: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
