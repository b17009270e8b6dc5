"""Read a recording: its runs, their conversations, and everything that happened in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import orjson
from sqlite_utils import Database

from memreplay.conversations.models import Conversation, Frozen
from memreplay.engine.events import ASK_KINDS, AnswerScored, QuestionAsked, ReplayEvent, ReplyReceived
from memreplay.errors import RecordingError
from memreplay.recording.bodies import reporting_damage, resolve, unpacked, whole, without_what_was_given
from memreplay.recording.event_store import RecordedArchive
from memreplay.recording.schema import connect_read_only
from memreplay.timeline.timeline import AnswerIndex, Timeline

RunStatus = Literal["running", "finished", "interrupted"]

UNFINISHED: Final[frozenset[RunStatus]] = frozenset({"running", "interrupted"})
"""What is left of a run that was stopped, or that was killed."""

ANY_STATUS: Final[frozenset[RunStatus]] = UNFINISHED | {"finished"}


class RunInfo(Frozen):
    """A run in a recording. Times are ISO 8601 in UTC; ``settings`` hold no secrets.

    ``fingerprint`` is equal for runs that would ask the same questions in the same way.
    """

    id: str
    started_at: str
    finished_at: str | None
    status: RunStatus
    version: str
    fingerprint: str
    settings: dict[str, Any]
    datasets: tuple[str, ...]


class Recording:
    """A recording, open for reading."""

    def __init__(self, db: Database, path: Path) -> None:
        self._db = db
        self.path = path
        self.text = lru_cache(maxsize=4096)(self._read_text)

    @classmethod
    def open(cls, path: Path) -> Recording:
        """Open a file.

        Raises:
            RecordingError: it is missing, not a recording, or of a newer version.
        """
        return cls(connect_read_only(path), path)

    def runs(self) -> list[RunInfo]:
        """All runs, oldest first."""
        with reporting_damage(self.path):
            return [_run_info(row) for row in self._db.query("select * from runs order by started_at, rowid")]

    def run(self, run_id: str | None = None) -> RunInfo:
        """One run by its id, or the newest.

        Raises:
            RecordingError: there is none.
        """
        runs = [run for run in self.runs() if run_id in (None, run.id)]
        if not runs:
            wanted = f"no run {run_id}" if run_id else "no run"
            known = ", ".join(run.id for run in self.runs())
            raise RecordingError(f"{self.path}: {wanted} in it" + (f"; it holds {known}" if known else ""))
        return runs[-1]

    def conversation_ids(self, run_id: str) -> list[str]:
        """The conversations of a run, in the order in which they were replayed."""
        query = "select id from conversations where run_id = ? order by position"
        return [row["id"] for row in self._db.query(query, [run_id])]

    def conversation(self, run_id: str, conversation_id: str) -> Conversation:
        """A conversation as it was replayed.

        Raises:
            RecordingError: the run has no such conversation.
        """
        with reporting_damage(self.path):
            row = self._db.table("conversations").get(self._key(run_id, conversation_id))
            return Conversation.model_validate(resolve(orjson.loads(row["body"]), self.text))

    def events(
        self, run_id: str, conversation_id: str, kinds: tuple[str, ...] | None = None
    ) -> Iterator[ReplayEvent]:
        """What happened in a conversation, by position and then in order; only some kinds if asked."""
        condition = "" if kinds is None else f" and e.kind in {_listed(kinds)}"
        return self._events(run_id, conversation_id, condition, kinds or ())

    def asks(self, run_id: str, conversation_id: str) -> AnswerIndex:
        """All that was asked in a conversation and what came of it, without hits, cut and the text of prompts.

        Nothing else that happened is read.
        """
        asks = AnswerIndex()
        condition = f" and e.kind in {_listed(ASK_KINDS)}"
        with reporting_damage(self.path):
            for event in self._events(run_id, conversation_id, condition, ASK_KINDS, thin=without_what_was_given):
                if isinstance(event, QuestionAsked | ReplyReceived | AnswerScored):
                    asks.apply(event)
        return asks

    def writes_and(self, run_id: str, conversation_id: str, kinds: tuple[str, ...]) -> Iterator[ReplayEvent]:
        """The store commands that changed a store, and events of these kinds, by position and then in order.

        A file of the first format does not say which commands did: there it is all of them.
        """
        columns = {column.name for column in self._db.table("events").columns}
        changed = "(e.changes is null or e.changes = 1)" if "changes" in columns else "true"
        condition = f" and (e.kind in {_listed(kinds)} or e.kind = 'store_operated' and {changed})"
        return self._events(run_id, conversation_id, condition, kinds)

    def _events(
        self,
        run_id: str,
        conversation_id: str,
        condition: str,
        values: tuple[str, ...],
        thin: Callable[[dict[str, Any]], None] = whole,
    ) -> Iterator[ReplayEvent]:
        query = (
            "select e.body from events e join conversations c on c.key = e.conversation"
            f" where c.run_id = ? and c.id = ?{condition} order by e.turn, e.key"
        )
        for row in self._db.query(query, [run_id, conversation_id, *values]):
            yield unpacked(row["body"], self.text, thin)

    def archive(self, run_id: str, conversation_id: str) -> RecordedArchive:
        """The events of a conversation, read as they are looked at, as long as the recording is open.

        Raises:
            RecordingError: the run has no such conversation.
        """
        return RecordedArchive(self._db, self._key(run_id, conversation_id), self.text)

    def timeline(self, run_id: str, conversation_id: str) -> Timeline:
        """A conversation with an index of what happened in it, as long as the recording is open. May take long.

        Raises:
            RecordingError: the run has no such conversation.
        """
        with reporting_damage(self.path):
            return Timeline(
                self.conversation(run_id, conversation_id), archive=self.archive(run_id, conversation_id)
            )

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _key(self, run_id: str, conversation_id: str) -> int:
        query = "select key from conversations where run_id = ? and id = ?"
        for row in self._db.query(query, [run_id, conversation_id]):
            return int(row["key"])
        raise RecordingError(f"{self.path}: run {run_id} has no conversation {conversation_id}")

    def _read_text(self, digest: str) -> str:
        for row in self._db.query("select body from texts where hash = ?", [digest]):
            return str(row["body"])
        raise RecordingError(f"{self.path}: damaged: the text {digest} is missing")


def _listed(kinds: tuple[str, ...]) -> str:
    """As many places for values as there are kinds."""
    return f"({', '.join('?' * len(kinds))})"


def _run_info(row: dict[str, Any]) -> RunInfo:
    return RunInfo.model_validate(
        {**row, "settings": orjson.loads(row["settings"]), "datasets": orjson.loads(row["datasets"])}
    )
