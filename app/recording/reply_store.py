"""Replies that were paid for, kept across runs: identical requests are not paid twice."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from sqlite_utils import Database, Migrations

from app.answering.model import Reply
from app.errors import RecordingError

migrations = Migrations("memreplay.replies")


@migrations()
def m001_replies(db: Database) -> None:
    """One reply a request."""
    db.table("replies").create({"key": str, "body": str, "created_at": str}, pk="key", not_null={"body"})


class SqliteReplyCache:
    """A reply cache in a SQLite file of the user's cache folder."""

    def __init__(self, path: Path) -> None:
        """Open or create it.

        Raises:
            RecordingError: the file cannot be used.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db = Database(connection)
            self._db.execute("PRAGMA journal_mode = WAL")
            migrations.apply(self._db)
        except (sqlite3.Error, OSError) as error:
            raise RecordingError(f"{path}: cannot be used as the reply cache: {error}") from None

    def get(self, key: str) -> Reply | None:
        """The reply of an identical request, if there was one."""
        for row in self._db.query("select body from replies where key = ?", [key]):
            return Reply.model_validate_json(row["body"])
        return None

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply."""
        self._db.table("replies").insert(
            {"key": key, "body": reply.model_dump_json(), "created_at": datetime.now(UTC).isoformat()},
            replace=True,
        )

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
