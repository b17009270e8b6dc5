"""Bookmarks, notes, watches and labels of answers, saved in the recording of their conversation."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from memreplay.errors import RecordingError
from memreplay.llm.judging import Verdict
from memreplay.recording.connection import connect_read_only, open_briefly
from memreplay.recording.labels import labels_of_conversation
from memreplay.timeline.annotations import Annotations, Bookmark, SavedBreakpoint, SessionAnnotations
from memreplay.timeline.timeline import AskKey

_KEY = "select key from conversations where run_id = ? and id = ?"


class RecordedAnnotations(SessionAnnotations):
    """Annotations that are on disk when a change returns.

    Every change raises :class:`~memreplay.errors.RecordingError` if the file cannot be written.
    """

    def __init__(
        self,
        writing: Callable[[], AbstractContextManager[Database]],
        conversation: int,
        path: Path,
        bookmarks: Sequence[Bookmark],
        watches: Sequence[SavedBreakpoint],
        labels: Mapping[AskKey, Verdict],
    ) -> None:
        super().__init__(None, bookmarks, watches, labels)
        self._writing = writing
        self._conversation = conversation
        self._path = path

    def set_bookmark(self, bookmark: Bookmark) -> None:
        """Save a bookmark; it replaces one with the same mark."""
        row = (self._conversation, bookmark.mark, bookmark.turn, bookmark.note)
        self._save(("insert or replace into bookmarks (conversation, mark, turn, note) values (?, ?, ?, ?)", [row]))
        super().set_bookmark(bookmark)

    def remove_bookmark(self, mark: str) -> None:
        """Delete a bookmark, if there is one with this mark."""
        self._save(("delete from bookmarks where conversation = ? and mark = ?", [(self._conversation, mark)]))
        super().remove_bookmark(mark)

    def set_breakpoints(self, watches: Sequence[SavedBreakpoint]) -> None:
        """Replace all watches."""
        rows = [(self._conversation, watch.text, watch.backend, int(watch.enabled)) for watch in watches]
        self._save(
            ("delete from watches where conversation = ?", [(self._conversation,)]),
            ("insert into watches (conversation, text, backend, enabled) values (?, ?, ?, ?)", rows),
        )
        super().set_breakpoints(watches)

    def set_label(self, key: AskKey, label: Verdict | None) -> None:
        """Save the label of an answer, or delete it."""
        asked = (key.backend, key.model, key.question_id, key.repeat, key.turn, int(key.by_hand))
        place = (self._conversation, *asked)
        if label is None:
            where = "conversation = ? and backend = ? and model = ? and question_id = ? and repeat = ? and turn = ?"
            self._save((f"delete from labels where {where} and by_hand = ?", [place]))
        else:
            self._save(("insert or replace into labels values (?, ?, ?, ?, ?, ?, ?, ?)", [(*place, label)]))
        super().set_label(key, label)

    def _save(self, *statements: tuple[str, list[tuple[Any, ...]]]) -> None:
        try:
            with self._writing() as db, db.atomic():
                for statement, rows in statements:
                    db.conn.executemany(statement, rows)
        except sqlite3.Error as error:
            raise RecordingError(f"{self._path}: cannot be written: {error}") from None


def live_annotations(db: Database, conversation: int, path: Path) -> RecordedAnnotations:
    """Annotations of a conversation that is being recorded, saved through the recorder's connection."""
    known = _bookmarks(db, conversation), _watches(db, conversation), labels_of_conversation(db, conversation)
    return RecordedAnnotations(lambda: nullcontext(db), conversation, path, *known)


def annotations_of(path: Path, run_id: str, conversation_id: str, *, shipped: Path | None = None) -> Annotations:
    """The annotations of a recorded conversation.

    They are saved in its file, but kept for the session only if the file is not writable or is ``shipped``.

    Raises:
        RecordingError: the file cannot be read, or the run has no such conversation.
    """
    reader = connect_read_only(path)
    try:
        row = reader.execute(_KEY, [run_id, conversation_id]).fetchone()
        if row is None:
            raise RecordingError(f"{path}: run {run_id} has no conversation {conversation_id}")
        known = _bookmarks(reader, row[0]), _watches(reader, row[0]), labels_of_conversation(reader, row[0])
    finally:
        reader.close()
    if shipped is not None and path.resolve() == shipped.resolve():
        return SessionAnnotations("Kept for this session only: the shipped recording is never changed.", *known)
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return SessionAnnotations(f"Kept for this session only: {path} cannot be written.", *known)
    return RecordedAnnotations(lambda: open_briefly(path), row[0], path, *known)


def _bookmarks(db: Database, conversation: int) -> list[Bookmark]:
    query = "select mark, turn, note from bookmarks where conversation = ?"
    return [Bookmark.model_validate(row) for row in db.query(query, [conversation])]


def _watches(db: Database, conversation: int) -> list[SavedBreakpoint]:
    query = "select text, backend, enabled from watches where conversation = ? order by key"
    return [SavedBreakpoint.model_validate(row) for row in db.query(query, [conversation])]
