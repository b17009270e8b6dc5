"""Writing a run: every event as it happens, every reply before it is used."""

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Final, Literal
from uuid import uuid4

import orjson
from sqlite_utils import Database

from app import __version__
from app.conversations.models import Conversation
from app.errors import RecordingError
from app.recording.annotations import RecordedAnnotations, live_annotations
from app.recording.archive import LiveArchive
from app.recording.bodies import packed
from app.recording.interning import intern
from app.recording.lock import WriterLock
from app.recording.schema import connect
from app.recording.store import Recording, RunInfo, RunStatus
from app.replay.archive import note_of
from app.replay.events import (
    AgentReplied,
    AskEvent,
    BackendEvent,
    BenchmarkModelAsked,
    ConversationClosed,
    Operated,
    ReplayEvent,
    ReplyReceived,
)

ASK_KINDS = ("question_asked", "reply_received", "answer_scored")

_PAID_KINDS = (*ASK_KINDS, "agent_replied", "benchmark_model_asked")
"""What a run has paid for: an interrupted one keeps it."""

UNFINISHED: Final[frozenset[RunStatus]] = frozenset({"running", "interrupted"})
"""What is left of a run that was stopped, or that was killed."""

ANY_STATUS: Final[frozenset[RunStatus]] = UNFINISHED | {"finished"}

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

    def __init__(self, db: Database, path: Path, run_id: str, lock: WriterLock) -> None:
        self._db = db
        self._lock = lock
        self.path = path
        self.run_id = run_id
        self._conversation_keys: dict[str, int] = {
            row["id"]: row["key"]
            for row in db.query("select key, id from conversations where run_id = ?", [run_id])
        }
        self._pending: list[ReplayEvent] = []
        self._last_flush = monotonic()
        self._known_texts: set[str] = set()
        self._keys: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self._live: dict[str, LiveArchive] = {}
        self._new_texts: set[str] = set()

    @classmethod
    def start(cls, path: Path, settings: dict[str, Any], datasets: Sequence[str], identity: str) -> RunRecorder:
        """Begin a new run. ``settings`` must hold no secrets; ``identity`` is their :func:`fingerprint`.

        Raises:
            RecordingError: the file is not a recording, of a newer version, in use, or cannot be written.
        """
        with _opened_alone(path) as (db, lock):
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
            return cls(db, path, run_id, lock)

    @classmethod
    def resume(cls, path: Path, identity: str, statuses: Collection[RunStatus] = UNFINISHED) -> RunRecorder:
        """Take up the newest run of equal settings that has one of these statuses.

        Raises:
            RecordingError: there is no such run, or the file is in use.
        """
        Recording.open(path).close()
        with _opened_alone(path) as (db, lock):
            runs = [run for run in Recording(db, path).runs() if run.fingerprint == identity]
            fit = [run for run in runs if run.status in statuses]
            if not fit:
                wanted = "unfinished run" if statuses == UNFINISHED else "run"
                hint = "; it is finished, and --retry-errors asks again what ended in an error" if runs else ""
                raise RecordingError(f"{path}: no {wanted} of these settings to resume{hint}")
            recorder = cls(db, path, fit[-1].id, lock)
            recorder._set_status("running")
            return recorder

    def add_conversation(self, conversation: Conversation) -> None:
        """Keep the conversation itself, so that the file alone can show it. Adding it again changes nothing."""
        if conversation.id in self._conversation_keys:
            return
        with self._atomically():
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
        """Commit what is pending. What could not be committed stays pending."""
        self._last_flush = monotonic()
        if not self._pending:
            return
        with self._atomically():
            keys = [self._insert(event) for event in self._pending]
        for event, key in zip(self._pending, keys, strict=True):
            self._keys[event.conversation].append(key)
        self._pending = []

    def _insert(self, event: ReplayEvent) -> int:
        cursor = self._db.conn.execute(
            "insert into events (conversation, backend, turn, kind, body, changes)"
            " values (:conversation, :backend, :turn, :kind, :body, :changes)",
            self._row(event),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def key_of(self, conversation_id: str, number: int) -> int:
        """The key of the ``number``-th event (0-based) that was recorded of a conversation, on disk by then."""
        if number >= len(self._keys[conversation_id]):
            self.flush()
        return self._keys[conversation_id][number]

    def live_archive(self, conversation_id: str) -> LiveArchive:
        """Where a timeline of a conversation that is being recorded may let its events rest.

        It must be made before the first event, and be given every event after it was recorded. It can be read
        after the run is over.
        """
        recorded = Recording(self._db, self.path).archive(self.run_id, conversation_id)
        self._live[conversation_id] = LiveArchive(self, conversation_id, recorded)
        return self._live[conversation_id]

    def annotations(self, conversation_id: str) -> RecordedAnnotations:
        """Bookmarks and watches of a conversation, saved with it as they are made."""
        return live_annotations(self._db, self._conversation_keys[conversation_id], self.path)

    def forget_ingestion(self, conversation_id: str, backends: Sequence[str]) -> None:
        """Remove what these backends did with a conversation, but not what was asked of them.

        Their stores are gone with the process that held them; they take the conversation in anew.
        """
        key = self._conversation_keys.get(conversation_id)
        if key is None:
            return
        with self._atomically():
            self._db.execute(
                f"delete from events where conversation = ? and kind not in ({_marks(_PAID_KINDS)})"
                f" and (backend is null or backend in ({_marks(backends)}))",
                [key, *_PAID_KINDS, *backends],
            )

    def forget_asks(self, conversation_id: str, asks: Collection[AskEvent]) -> None:
        """Remove every trace of these asks: they are asked again."""
        key = self._conversation_keys.get(conversation_id)
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

    def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run and let go of the file, also where the end cannot be written any more.

        Raises:
            RecordingError: it cannot; whatever was recorded before can be read.
        """
        try:
            self.flush()
            self._set_status(status)
            with suppress(sqlite3.OperationalError):
                # One file, readable from a folder that cannot be written; refused while somebody else reads.
                self._db.execute("PRAGMA journal_mode = DELETE")
        finally:
            self._db.close()
            self._lock.release()
        for conversation_id, archive in self._live.items():
            archive.read_from(Recording.open(self.path).archive(self.run_id, conversation_id))

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
        return {
            "conversation": self._conversation_keys[event.conversation],
            "backend": event.backend if isinstance(event, BackendEvent) else None,
            "turn": event.turn,
            "kind": event.kind,
            "body": packed(event, self._keep_text),
            "changes": int(note_of(0, event).write is not None) if isinstance(event, Operated) else None,
        }

    def _keep_text(self, digest: str, text: str) -> None:
        if digest not in self._known_texts and digest not in self._new_texts:
            self._db.execute("insert or ignore into texts (hash, body) values (?, ?)", [digest, text])
            self._new_texts.add(digest)

    @contextmanager
    def _atomically(self) -> Iterator[None]:
        """One transaction. Texts are known to be in the file only when it is committed."""
        self._new_texts = set()
        with _writing(self.path), self._db.atomic():
            yield
        self._known_texts |= self._new_texts


@contextmanager
def _opened_alone(path: Path) -> Iterator[tuple[Database, WriterLock]]:
    """The file, open for writing by nobody else; let go of again where the block fails."""
    lock = WriterLock.take(path)
    db: Database | None = None
    try:
        db = connect(path)
        yield db, lock
    except BaseException:
        if db is not None:
            db.close()
        lock.release()
        raise


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
