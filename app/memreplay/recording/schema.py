"""The tables of a recording, as append-only numbered migrations, and how a file is known to be one of ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlite_utils import Database, Migrations

from memreplay.errors import RecordingError

APPLICATION_ID = 0x6D72706C
"""``mrpl``, in SQLite's application_id."""

migrations = Migrations("memreplay.recording")


@migrations()
def m001_runs_conversations_events(db: Database) -> None:
    """Runs, the conversations they replay, what happened in them, and large texts stored once."""
    db.table("runs").create(
        {
            "id": str,
            "started_at": str,
            "finished_at": str,
            "status": str,
            "version": str,
            "fingerprint": str,
            "settings": str,
            "datasets": str,
        },
        pk="id",
        not_null={"started_at", "status", "version", "fingerprint", "settings", "datasets"},
    )
    db.table("conversations").create(
        {"key": int, "run_id": str, "position": int, "id": str, "dataset": str, "body": str},
        pk="key",
        foreign_keys=[("run_id", "runs", "id")],
        not_null={"run_id", "position", "id", "dataset", "body"},
    )
    db.table("conversations").create_index(["run_id", "id"], unique=True)
    db.table("events").create(
        {"key": int, "conversation": int, "backend": str, "turn": int, "kind": str, "body": str},
        pk="key",
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"conversation", "turn", "kind", "body"},
    )
    db.table("events").create_index(["conversation", "turn", "key"])
    db.table("events").create_index(["conversation", "kind"])
    db.table("texts").create({"hash": str, "body": str}, pk="hash", not_null={"body"})


@migrations()
def m002_changes_and_annotations(db: Database) -> None:
    """Which events changed a store, so that the rest need not be read to know what the stores held.

    And what a user wrote down beside a conversation: bookmarks with their notes, and watches.
    """
    db.table("events").add_column("changes", int)
    db.table("bookmarks").create(
        {"conversation": int, "turn": int, "mark": str, "note": str},
        pk=("conversation", "mark"),
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"turn", "note"},
    )
    db.table("watches").create(
        {"key": int, "conversation": int, "text": str, "backend": str, "enabled": int},
        pk="key",
        foreign_keys=[("conversation", "conversations", "key")],
        not_null={"conversation", "text", "enabled"},
    )


SCHEMA_VERSION = 2
"""Number of migrations, kept in SQLite's user_version."""


def connect(path: Path) -> Database:
    """Open a recording for writing; create it where there is none. WAL, and a commit is on disk when it returns.

    Raises:
        RecordingError: the file is not a recording, or one of a newer version.
    """
    if path.exists() and not path.is_file():
        raise RecordingError(f"{path}: not a file; expected a recording, or a name for a new one")
    existed = path.exists() and path.stat().st_size > 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = Database(sqlite3.connect(path, isolation_level=None, check_same_thread=False))
        if existed:
            refuse_foreign(db.conn, path)
        else:
            # First of all, in one write: a file whose making is cut short must still be known as ours.
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        migrations.apply(db)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except (sqlite3.Error, OSError) as error:
        raise RecordingError(f"{path}: cannot be opened as a recording: {error}") from None
    return db


def connect_read_only(path: Path) -> Database:
    """Open a recording for reading, also where its folder cannot be written.

    Raises:
        RecordingError: there is no such file, it is not a recording, one of a newer version, or an unfinished one.
    """
    if not path.is_file():
        raise RecordingError(
            f"{path}: {'not a file; expected a recording' if path.exists() else 'no such recording'}"
        )
    last: Exception | None = None
    uri = path.resolve().as_uri()
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        try:
            connection = sqlite3.connect(f"{uri}?{mode}", uri=True, check_same_thread=False)
            refuse_foreign(connection, path)
            if connection.execute("PRAGMA user_version").fetchone() == (0,):
                raise RecordingError(f"{path}: no run in it; the program ended while it made the file")
            return Database(connection)
        except sqlite3.OperationalError as error:
            last = error
        except sqlite3.Error as error:
            raise RecordingError(f"{path}: cannot be read as a recording: {error}") from None
    raise RecordingError(f"{path}: cannot be read as a recording: {last}")


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is not ours, or of a version that this program does not know.

    Raises:
        RecordingError: with one sentence of why.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        raise RecordingError(f"{path}: not a memreplay recording; it is empty")
    if application_id != APPLICATION_ID:
        raise RecordingError(f"{path}: not a memreplay recording; it is another program's SQLite file")
    if version > SCHEMA_VERSION:
        raise RecordingError(
            f"{path}: written by a newer memreplay (format {version}, this one reads up to {SCHEMA_VERSION})"
        )
