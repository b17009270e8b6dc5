"""Record a run: every event as it happens, every reply before it is used."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import orjson
from sqlite_utils import Database

from memreplay.conversations.models import Conversation
from memreplay.engine.events import (
    AgentReplied,
    AnswerJudged,
    AskEvent,
    BenchmarkModelAsked,
    ConversationClosed,
    ReplayEvent,
    ReplyReceived,
)
from memreplay.errors import RecordingError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.recording.annotations import RecordedAnnotations, live_annotations
from memreplay.recording.bodies import to_json
from memreplay.recording.branches import Branch
from memreplay.recording.connection import WriterLock, connect, leave_wal, open_exclusively
from memreplay.recording.event_store import LiveArchive
from memreplay.recording.reader import UNFINISHED, Recording, RunStatus
from memreplay.recording.run_rows import PaidByTests, RunRows, insert_run, reporting_write_errors

_MOST_PENDING_EVENTS = 256
_LONGEST_PENDING_SECONDS = 1.0


def fingerprint(settings: dict[str, Any]) -> str:
    """Return a digest of settings that does not depend on their order."""
    return sha256(to_json(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()


@contextmanager
def _opened(path: Path, beside: RunRecorder | None) -> Iterator[tuple[Database, WriterLock | None]]:
    """Open the file for writing: for this recorder alone, or for one more of the same process, which holds its
    lock.
    """
    if beside is None:
        with open_exclusively(path) as opened:
            yield opened
        return
    beside.flush()
    db = connect(path)
    try:
        yield db, None
    except BaseException:
        db.close()
        raise


class RunRecorder:
    """Records one run, new or resumed. No other process can write the file meanwhile.

    A branch may be recorded ``beside`` its trunk, which this process is recording: the file is the trunk's then.

    Events are committed in groups; :meth:`record` commits a reply, and all events before it, before it returns. The
    embedded reader's replies cost nothing and are always the same: they wait for their group.
    Every method that writes raises :class:`~memreplay.errors.RecordingError` if it cannot, as on a full disk.
    """

    def __init__(
        self, db: Database, path: Path, rows: RunRows, lock: WriterLock | None, *, was_killed: bool = False
    ) -> None:
        self.was_killed = was_killed
        """True if an earlier attempt at the run ended without closing it, so that calls may have been under way."""
        self._db = db
        self._rows = rows
        self._lock = lock
        self.path = path
        self.run_id = rows.run_id
        self._pending: list[ReplayEvent] = []
        self._last_flush = monotonic()
        self._keys: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self._live: dict[str, LiveArchive] = {}

    @classmethod
    def start(
        cls,
        path: Path,
        settings: dict[str, Any],
        datasets: Sequence[str],
        identity: str,
        branch: Branch | None = None,
        beside: RunRecorder | None = None,
    ) -> RunRecorder:
        """Start a new run. ``settings`` must hold no secrets; ``identity`` is their :func:`fingerprint`.

        Raises:
            RecordingError: the file is not a recording, is of another format, is in use, or cannot be written.
        """
        with _opened(path, beside) as (db, lock), reporting_write_errors(path):
            return cls(db, path, insert_run(db, path, settings, datasets, identity, branch), lock)

    @classmethod
    def resume(
        cls,
        path: Path,
        identity: str,
        statuses: Collection[RunStatus] = UNFINISHED,
        beside: RunRecorder | None = None,
        equal: Callable[[Mapping[str, Any]], bool] = lambda settings: False,
    ) -> RunRecorder:
        """Resume the newest run with this fingerprint and one of these statuses. Its scores are deleted.

        ``equal`` returns whether settings are those of the fingerprint, which is of the conversations too.

        Raises:
            RecordingError: there is none, or the file is in use.
        """
        Recording.open(path).close()
        with _opened(path, beside) as (db, lock), reporting_write_errors(path):
            recorded = Recording(db, path).runs()
            runs = [run for run in recorded if run.fingerprint == identity]
            fit = [run for run in runs if run.status in statuses]
            if not fit:
                wanted = "unfinished run" if statuses == UNFINISHED else "run"
                hint = ""
                if runs:
                    hint = "; it is finished, and --retry-errors asks again what ended in an error"
                elif any(run.status in statuses and equal(run.settings) for run in recorded):
                    hint = "; one of equal settings has other conversations: the dataset has changed, or is another"
                raise RecordingError(f"{path}: no {wanted} of these settings to resume{hint}")
            rows = RunRows(db, path, fit[-1].id)
            rows.resume()
            return cls(db, path, rows, lock, was_killed=fit[-1].status == "running")

    def add_conversation(self, conversation: Conversation) -> None:
        """Store the conversation, so that the file alone can show it; does nothing if the run has it already."""
        self._rows.add_conversation(conversation)

    def describe(self, settings: dict[str, Any], datasets: Sequence[str]) -> None:
        """Replace the settings and datasets of the run, of which an import learns some while it reads."""
        self._rows.describe(settings, datasets)

    def record(self, event: ReplayEvent) -> None:
        """Record an event. When this returns, a reply that another model or an agent gave is on disk."""
        self._pending.append(event)
        urgent = isinstance(
            event, ReplyReceived | AnswerJudged | AgentReplied | BenchmarkModelAsked | ConversationClosed
        ) and not (isinstance(event, ReplyReceived) and event.model == EXTRACTIVE_MODEL)
        if urgent or len(self._pending) >= _MOST_PENDING_EVENTS or self._overdue():
            self.flush()

    def flush(self) -> None:
        """Commit pending events. If that fails they stay pending."""
        self._last_flush = monotonic()
        if not self._pending:
            return
        keys = self._rows.insert(self._pending)
        for event, key in zip(self._pending, keys, strict=True):
            # Of ten thousand conversations without a screen, the keys alone would take a gigabyte.
            if event.conversation in self._live or event.conversation in self._keys:
                self._keys[event.conversation].append(key)
        self._pending = []

    def key_of(self, conversation_id: str, number: int) -> int:
        """Return the key of a conversation's event with this 0-based number; commits the event if it is pending.

        Only of a conversation with a live archive.
        """
        if number >= len(self._keys[conversation_id]):
            self.flush()
        return self._keys[conversation_id][number]

    def live_archive(self, conversation_id: str) -> LiveArchive:
        """Return the event store of a timeline that follows a conversation while it is recorded.

        Create it before the first event, and pass it every event after :meth:`record`. It remains readable after
        the run has ended.
        """
        recorded = Recording(self._db, self.path).archive(self.run_id, conversation_id)
        self._live[conversation_id] = LiveArchive(recorded, partial(self.key_of, conversation_id), self.flush)
        return self._live[conversation_id]

    def annotations(self, conversation_id: str) -> RecordedAnnotations:
        """Bookmarks and watches of a conversation; every change is saved at once."""
        return live_annotations(self._db, self._rows.key_of(conversation_id), self.path)

    def forget_ingestion(self, conversation_id: str, backends: Sequence[str]) -> None:
        """Delete what these backends did with a conversation, except what they were asked.

        Their stores are gone with the process that held them, or lost something, so they ingest the conversation
        again.
        """
        self.flush()
        self._rows.forget_ingestion(conversation_id, backends)

    def forget_asks(self, conversation_id: str, asks: Collection[AskEvent]) -> None:
        """Delete all events of these asks, which will be asked again."""
        self.flush()
        self._rows.forget_asks(conversation_id, asks)

    def keep_answers(self, conversation_id: str) -> list[ReplayEvent]:
        """Keep the answers of an earlier attempt at a conversation, and delete the rest.

        Returns the events that are left, in their order, as if they had been recorded by this process.
        """
        reader = Recording(self._db, self.path)
        answers = reader.asks(self.run_id, conversation_id)
        self.forget_asks(conversation_id, [answer.asked for answer in answers if answer.scored is None])
        self._rows.forget_all_but_asks(conversation_id)
        kept = self._rows.keyed_events(conversation_id)
        self._keys[conversation_id].extend(key for key, _ in kept)
        return [event for _, event in kept]

    def forget_scores(self, conversation_id: str, asks: Collection[AskEvent]) -> None:
        """Delete the scores of these asks, which will be graded again. What a judge said stays: it was paid for."""
        self._rows.forget_asks(conversation_id, asks, ("answer_scored",))

    def replace(self, event: PaidByTests, other: PaidByTests | None) -> None:
        """Replace a recorded event by another of the same conversation and kind; delete it if ``other`` is None."""
        self.flush()
        self._rows.replace(event, other)

    def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run and release the file, even if the end cannot be written.

        Raises:
            RecordingError: the end cannot be written; everything committed before is readable.
        """
        try:
            self.flush()
            self._rows.end(status)
            # A branch beside its trunk leaves the mode to the trunk, whose connection would make it wait in vain.
            if self._lock is not None:
                leave_wal(self._db)
        finally:
            self._db.close()
            if self._lock is not None:
                self._lock.release()
        for conversation_id, archive in self._live.items():
            archive.read_from(Recording.open(self.path).archive(self.run_id, conversation_id))

    def reader(self) -> Recording:
        """Open the same file for reading, after committing pending events."""
        self.flush()
        return Recording.open(self.path)

    def _overdue(self) -> bool:
        return monotonic() - self._last_flush > _LONGEST_PENDING_SECONDS
