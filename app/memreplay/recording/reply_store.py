"""A reply cache in SQLite, shared by all runs: identical requests are paid for once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError
from sqlite_utils import Database, Migrations

from memreplay.errors import RecordingError
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
        """Open or create the file.

        Raises:
            RecordingError: the file cannot be used.
        """
        self._path, self._warn = path, warn
        self._failed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db = Database(connection)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            migrations.apply(self._db)
        except (sqlite3.Error, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RecordingError(
                f"{path}: cannot be used as the reply cache: {reason}; XDG_CACHE_HOME names another folder"
            ) from None

    def get(self, key: str) -> Reply | None:
        """The reply to an identical request, if there is one."""
        try:
            row = self._db.execute("select body from replies where key = ?", [key]).fetchone()
            return Reply.model_validate_json(row[0]) if row else None
        except (sqlite3.Error, ValidationError) as error:
            self._warn_once(error)
            return None

    def put(self, key: str, reply: Reply) -> None:
        row = [key, reply.model_dump_json(), datetime.now(UTC).isoformat()]
        try:
            self._db.execute("insert or replace into replies (key, body, created_at) values (?, ?, ?)", row)
        except sqlite3.Error as error:
            self._warn_once(error)

    def _warn_once(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            self._warn(f"{self._path}: the reply cache cannot be used; continuing without it: {error}")

    def close(self) -> None:
        self._db.close()
