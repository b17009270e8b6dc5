"""A reply cache in SQLite, shared by all runs: identical requests are paid for once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError
from sqlite_utils import Database, Migrations

from memory_backends.private_files import create_private_file, make_private_folder
from memreplay.llm.model import Reply

migrations = Migrations("memreplay.replies")


@migrations()
def m001_replies(db: Database) -> None:
    db.table("replies").create({"key": str, "body": str, "created_at": str}, pk="key", not_null={"body"})


class SqliteReplyCache:
    """A reply cache in a SQLite file of the user's cache folder.

    A reply survives the process once :meth:`put` returns, but not a power failure; the recording does. If the cache
    fails in use (full disk), the run continues without it and ``warn`` gets one sentence.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] = lambda sentence: None) -> None:
        """Open or create the file; without it, if it cannot be used."""
        self._path, self._warn = path, warn
        self._failed = False
        self._db: Database | None = None
        try:
            make_private_folder(path.parent)
            create_private_file(path)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            db = Database(connection)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            migrations.apply(db)
            self._db = db
        except (sqlite3.Error, OSError) as error:
            self._warn_once(error)

    def get(self, key: str) -> Reply | None:
        """Return the reply to an identical request, if there is one."""
        if self._db is None:
            return None
        try:
            row = self._db.execute("select body from replies where key = ?", [key]).fetchone()
            return Reply.model_validate_json(row[0]) if row else None
        except (sqlite3.Error, ValidationError) as error:
            self._warn_once(error)
            return None

    def put(self, key: str, reply: Reply) -> None:
        if self._db is None:
            return
        row = [key, reply.model_dump_json(), datetime.now(UTC).isoformat()]
        try:
            self._db.execute("insert or replace into replies (key, body, created_at) values (?, ?, ?)", row)
        except sqlite3.Error as error:
            self._warn_once(error)

    def _warn_once(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            reason = error.strerror if isinstance(error, OSError) else error
            self._warn(
                f"{self._path}: the reply cache cannot be used; continuing without it: {reason}"
                " (XDG_CACHE_HOME names another folder)"
            )

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
