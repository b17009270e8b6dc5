"""Writing a run: every event as it happens, every reply before it is used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Literal
from uuid import uuid4

import orjson
from sqlite_utils import Database

from app import __version__
from app.conversations.models import Conversation
from app.errors import RecordingError
from app.recording.interning import intern
from app.recording.schema import connect
from app.recording.store import Recording, RunInfo
from app.replay.events import (
    AgentReplied,
    AskEvent,
    BackendEvent,
    BenchmarkModelAsked,
    ConversationClosed,
    ReplayEvent,
    ReplyReceived,
)

ASK_KINDS = ("question_asked", "reply_received", "answer_scored")

_PAID_KINDS = (*ASK_KINDS, "agent_replied", "benchmark_model_asked")
"""What a run has paid for: an interrupted one keeps it."""

_MOST_PENDING_EVENTS = 256
_LONGEST_PENDING_SECONDS = 1.0


def fingerprint(settings: dict[str, Any]) -> str:
    """Equal for equal settings, whatever their order."""
    return sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()


class RunRecorder:
    """Records one run in a file, a new run or one that is taken up again.

    Events are committed together every so often; a reply is committed, with all that came before it, before
    :meth:`record` returns. A full disk is a :class:`~app.errors.RecordingError`.
    """

    def __init__(self, db: Database, path: Path, run_id: str) -> None:
        self._db = db
        self.path = path
        self.run_id = run_id
        self._conversation_keys: dict[str, int] = {
            row["id"]: row["key"]
            for row in db.query("select key, id from conversations where run_id = ?", [run_id])
        }
        self._pending: list[ReplayEvent] = []
        self._last_flush = monotonic()
        self._known_texts: set[str] = set()

    @classmethod
    def start(cls, path: Path, settings: dict[str, Any], datasets: Sequence[str], identity: str) -> RunRecorder:
        """Begin a new run. ``settings`` must hold no secrets; ``identity`` is their :func:`fingerprint`.

        Raises:
            RecordingError: the file is not a recording, of a newer version, or cannot be written.
        """
        db = connect(path)
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
        return cls(db, path, run_id)

    @classmethod
    def resume(cls, path: Path, identity: str) -> RunRecorder:
        """Take up the newest unfinished run of equal settings.

        Raises:
            RecordingError: there is no such run.
        """
        reader = Recording.open(path)
        unfinished = [run for run in reader.runs() if run.status != "finished" and run.fingerprint == identity]
        reader.close()
        if not unfinished:
            raise RecordingError(f"{path}: no unfinished run of these settings to resume")
        recorder = cls(connect(path), path, unfinished[-1].id)
        recorder._set_status("running")
        return recorder

    def add_conversation(self, conversation: Conversation) -> None:
        """Keep the conversation itself, so that the file alone can show it. Adding it again changes nothing."""
        if conversation.id in self._conversation_keys:
            return
        with _writing(self.path), self._db.atomic():
            body = orjson.dumps(intern(conversation.model_dump(mode="json"), self._keep_text))
            row = {
                "run_id": self.run_id,
                "position": len(self._conversation_keys),
                "id": conversation.id,
                "dataset": conversation.dataset,
                "body": body.decode(),
            }
            key = self._db.table("conversations").insert(row).last_pk
            assert isinstance(key, int)
            self._conversation_keys[conversation.id] = key

    def record(self, event: ReplayEvent) -> None:
        """Take an event in. When this returns from a reply, the reply is on disk."""
        self._pending.append(event)
        urgent = isinstance(event, ReplyReceived | AgentReplied | BenchmarkModelAsked | ConversationClosed)
        if urgent or len(self._pending) >= _MOST_PENDING_EVENTS or self._overdue():
            self.flush()

    def flush(self) -> None:
        """Commit what is pending."""
        pending, self._pending = self._pending, []
        self._last_flush = monotonic()
        if not pending:
            return
        with _writing(self.path), self._db.atomic():
            self._db.conn.executemany(
                "insert into events (conversation, backend, turn, kind, body)"
                " values (:conversation, :backend, :turn, :kind, :body)",
                [self._row(event) for event in pending],
            )

    def forget_ingestion(self, conversation_id: str, backends: Sequence[str]) -> None:
        """Remove what these backends did with a conversation, but not what was asked of them.

        Their stores are gone with the process that held them; they take the conversation in anew.
        """
        key = self._conversation_keys.get(conversation_id)
        if key is None:
            return
        marks = ", ".join("?" * len(backends))
        with _writing(self.path), self._db.atomic():
            self._db.execute(
                f"delete from events where conversation = ? and (backend is null or backend in ({marks}))"
                f" and kind not in ({', '.join('?' * len(_PAID_KINDS))})",
                [key, *backends, *_PAID_KINDS],
            )

    def forget_ask(self, event: AskEvent) -> None:
        """Remove an ask that has no reply: it is asked again."""
        key = self._conversation_keys[event.conversation]
        with _writing(self.path), self._db.atomic():
            self._db.execute(
                "delete from events where conversation = ? and backend = ? and kind = 'question_asked'"
                " and json_extract(body, '$.model') = ? and json_extract(body, '$.question_id') = ?"
                " and json_extract(body, '$.repeat') = ?",
                [key, event.backend, event.model, event.question_id, event.repeat],
            )

    def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run and let go of the file."""
        self.flush()
        self._set_status(status)
        with suppress(sqlite3.OperationalError):
            # One file, readable from a folder that cannot be written; refused while somebody else reads.
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()

    def info(self) -> RunInfo:
        """The run as it stands in the file."""
        self.flush()
        return Recording(self._db, self.path).run(self.run_id)

    def reader(self) -> Recording:
        """The same file, for reading, with everything recorded so far."""
        self.flush()
        return Recording.open(self.path)

    def _set_status(self, status: str) -> None:
        finished = None if status == "running" else _now()
        with _writing(self.path):
            self._db.table("runs").update(self.run_id, {"status": status, "finished_at": finished})

    def _overdue(self) -> bool:
        return monotonic() - self._last_flush > _LONGEST_PENDING_SECONDS

    def _row(self, event: ReplayEvent) -> dict[str, Any]:
        body = orjson.dumps(intern(event.model_dump(mode="json"), self._keep_text))
        return {
            "conversation": self._conversation_keys[event.conversation],
            "backend": event.backend if isinstance(event, BackendEvent) else None,
            "turn": event.turn,
            "kind": event.kind,
            "body": body.decode(),
        }

    def _keep_text(self, digest: str, text: str) -> None:
        if digest not in self._known_texts:
            self._db.execute("insert or ignore into texts (hash, body) values (?, ?)", [digest, text])
            self._known_texts.add(digest)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a full disk or a locked file into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise RecordingError(f"{path}: cannot be written: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
