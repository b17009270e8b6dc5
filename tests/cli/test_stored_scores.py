"""A batch run and ``report`` leave every answer's score and failure label in the recording."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from memreplay.recording.connection import WriterLock
from tests.cli.conftest import RunCli


def answers(recording: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(recording)) as db:
        return db.execute("select question_id, outcome, failure from answers").fetchall()


def test_they_are_stored_with_the_results_and_stored_again_by_report(run_cli: RunCli, tmp_path: Path) -> None:
    recording, output = tmp_path / "r.sqlite3", tmp_path / "r.json"
    run_cli("--batch", "--dataset", "identity-01", "--backend", "rag", "--recording", recording, "--output", output)
    rows = json.loads(output.read_text())["questions"]
    expected = [(row["question_id"], row["outcome"], row["failure"]) for row in rows]
    assert answers(recording) == expected != []
    with closing(sqlite3.connect(recording)) as db, db:
        db.execute("delete from scores")
    in_use = WriterLock.take(recording)
    refused = run_cli("report", recording, "--output", output)
    in_use.release()
    assert refused.code == 0 and answers(recording) == []
    assert refused.err.startswith("the scores are not stored in the recording: ")
    assert run_cli("report", recording, "--output", output).err == ""
    assert answers(recording) == expected
