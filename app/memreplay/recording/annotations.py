"""Bookmarks, notes, watches and labels of answers, saved in the recording of their conversation, or beside it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlite_utils import Database

from memory_backends.private_files import create_private_file, make_private_folder
from memreplay.conversations.models import Frozen
from memreplay.errors import RecordingError
from memreplay.llm.judging import Verdict
from memreplay.paths import notes_folder
from memreplay.recording.connection import connect_read_only, open_briefly
from memreplay.timeline.annotations import Annotations, Bookmark, SavedBreakpoint, SessionAnnotations
from memreplay.timeline.timeline import AskKey


def labels_of_conversation(db: Database, conversation: int) -> dict[AskKey, Verdict]:
    """Return the labelled answers of a conversation, by its key."""
    if not db.table("labels").exists():
        return {}
    query = "select backend, model, question_id, repeat, turn, by_hand, label from labels where conversation = ?"
    return {
        AskKey(backend, model, question_id, repeat, turn, bool(by_hand)): label
        for backend, model, question_id, repeat, turn, by_hand, label in db.execute(query, [conversation])
    }


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
        super().__init__(bookmarks, watches, labels)
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


class _KeptConversation(Frozen):
    """A user's notes on one conversation of a recording that is not written to."""

    bookmarks: tuple[Bookmark, ...] = ()
    breakpoints: tuple[SavedBreakpoint, ...] = ()
    labels: tuple[tuple[AskKey, Verdict], ...] = ()


_KEPT: TypeAdapter[dict[str, _KeptConversation]] = TypeAdapter(dict[str, _KeptConversation])


class AnnotationsBeside(SessionAnnotations):
    """Annotations of a recording that is not written to, in a JSON file of their own, from the first change on.

    Every change raises :class:`~memreplay.errors.RecordingError` if that file cannot be written.
    """

    def __init__(
        self,
        file: Path,
        conversation: str,
        bookmarks: Sequence[Bookmark],
        watches: Sequence[SavedBreakpoint],
        labels: Mapping[AskKey, Verdict],
    ) -> None:
        self._file, self._conversation = file, conversation
        kept = self._read().get(conversation)
        super().__init__(
            bookmarks if kept is None else kept.bookmarks,
            watches if kept is None else kept.breakpoints,
            labels if kept is None else dict(kept.labels),
        )

    def set_bookmark(self, bookmark: Bookmark) -> None:
        super().set_bookmark(bookmark)
        self._save()

    def remove_bookmark(self, mark: str) -> None:
        super().remove_bookmark(mark)
        self._save()

    def set_breakpoints(self, breakpoints: Sequence[SavedBreakpoint]) -> None:
        super().set_breakpoints(breakpoints)
        self._save()

    def set_label(self, key: AskKey, label: Verdict | None) -> None:
        super().set_label(key, label)
        self._save()

    def _read(self) -> dict[str, _KeptConversation]:
        try:
            return _KEPT.validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            raise RecordingError(f"{self._file}: these bookmarks cannot be read: {error}") from None

    def _save(self) -> None:
        mine = _KeptConversation(
            bookmarks=tuple(self.bookmarks()),
            breakpoints=tuple(self.breakpoints()),
            labels=tuple(self.labels().items()),
        )
        text = _KEPT.dump_json(self._read() | {self._conversation: mine}, indent=2).decode()
        unfinished = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            make_private_folder(self._file.parent)
            create_private_file(unfinished)
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(self._file)
        except OSError as error:
            raise RecordingError(f"{self._file}: cannot be written: {error.strerror}") from None


def annotations_of(path: Path, run_id: str, conversation_id: str, *, shipped: Collection[Path] = ()) -> Annotations:
    """Return the annotations of a recorded conversation.

    They are saved in its file. Those of a file that cannot be written are saved beside it, as ``NAME.notes.json``;
    if that folder cannot be written either, or the file is ``shipped``, in the user's data folder.

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
    whole = path.resolve()
    is_shipped = any(whole == one.resolve() for one in shipped)
    if not is_shipped and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return RecordedAnnotations(lambda: open_briefly(path), row[0], path, *known)
    beside = path.with_name(f"{path.name}.notes.json")
    if is_shipped or not os.access(path.parent, os.W_OK):
        digest = sha256(os.fsencode(whole)).hexdigest()[:12]
        beside = notes_folder() / f"{path.name}-{digest}.notes.json"
    return AnnotationsBeside(beside, f"{run_id}/{conversation_id}", *known)


def _bookmarks(db: Database, conversation: int) -> list[Bookmark]:
    query = "select mark, turn, note from bookmarks where conversation = ?"
    return [Bookmark.model_validate(row) for row in db.query(query, [conversation])]


def _watches(db: Database, conversation: int) -> list[SavedBreakpoint]:
    query = "select text, backend, enabled from watches where conversation = ? order by key"
    return [SavedBreakpoint.model_validate(row) for row in db.query(query, [conversation])]
