"""The table ``scores``: every answer of a run with its score and failure label, for people who read with SQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from memreplay.recording.bodies import reporting_damage
from memreplay.recording.connection import connect_read_only, leave_wal, open_exclusively
from memreplay.recording.run_rows import reporting_write_errors
from memreplay.scoring.question_row import QuestionRow


def store_scores(path: Path, run_id: str, rows: Sequence[QuestionRow]) -> None:
    """Replace the stored scores of a run in one transaction. The file is not written if they are the same already.

    Raises:
        RecordingError: the file is read-only, in use, or cannot be written.
    """
    scores = [_score(run_id, row) for row in rows]
    with closing(connect_read_only(path)) as db, reporting_damage(path):
        if _stored_scores(db, run_id) == scores:
            return
    with open_exclusively(path) as (db, lock):
        try:
            with reporting_write_errors(path), db.atomic():
                db.execute("delete from scores where run_id = ?", [run_id])
                db.table("scores").insert_all(scores)
            leave_wal(db)
        finally:
            db.close()
            lock.release()


def _stored_scores(db: Database, run_id: str) -> list[dict[str, Any]]:
    rows = db.conn.execute("select * from scores where run_id = ? order by rowid", [run_id])
    names = [name for name, *_ in rows.description]
    return [dict(zip(names, row, strict=True)) for row in rows]


_SAME_NAMES = (
    "dataset",
    "conversation",
    "question_id",
    "backend",
    "model",
    "repeat",
    "kind",
    "type",
    "question",
    "expected",
    "predicted",
    "outcome",
    "score",
    "max_score",
    "recorded_score",
    "failure",
    "failure_loss",
    "failure_detail",
    "closed_book_correct",
    "recall_at_1",
    "recall_at_5",
    "recall_at_10",
    "reciprocal_rank",
    "evidence_in_prompt",
    "exact_match",
    "entity_recall",
    "f1",
    "cost_usd",
    "ms",
    "recall_ms",
    "error",
)
"""Columns that are named and filled as in :class:`~memreplay.scoring.question_row.QuestionRow`."""


def _score(run_id: str, row: QuestionRow) -> dict[str, Any]:
    tokens = row.tokens
    return {
        "run_id": run_id,
        **{name: getattr(row, name) for name in _SAME_NAMES},
        "prompt_tokens": tokens.prompt if tokens else None,
        "completion_tokens": tokens.completion if tokens else None,
        "cached_tokens": tokens.cached if tokens else None,
    }
