"""Scores and failure labels are in the recording as they are in the results."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memreplay.batch.report import results_of_run
from memreplay.conversations.models import Conversation
from memreplay.engine.events import ReplayEvent
from memreplay.errors import RecordingError
from memreplay.paths import demo_recording
from memreplay.recording.reader import Recording
from memreplay.recording.run_rows import store_scores
from memreplay.recording.writer import RunRecorder
from memreplay.scoring.results import Results


def results_of(path: Path) -> Results:
    with closing(Recording.open(path)) as recording:
        return results_of_run(recording, recording.run())


def stored(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        query = (
            "select question_id, backend, outcome, failure, recall_at_10, prompt_tokens from scores order by rowid"
        )
        return db.execute(query).fetchall()


def expected(results: Results) -> list[tuple[object, ...]]:
    return [
        (row.question_id, row.backend, row.outcome, row.failure, row.recall_at_10, row.tokens and row.tokens.prompt)
        for row in results.questions
    ]


@pytest.fixture
def recorder(tmp_path: Path, conversation: Conversation, events: list[ReplayEvent]) -> RunRecorder:
    settings = {"backend": ["full_context"], "model": ["m"]}
    recorder = RunRecorder.start(tmp_path / "r.sqlite3", settings, ["tiny"], "f")
    recorder.add_conversation(conversation)
    for event in events:
        recorder.record(event)
    return recorder


def test_what_is_stored_is_what_the_results_say(recorder: RunRecorder) -> None:
    recorder.finish("finished")
    results = results_of(recorder.path)
    store_scores(recorder.path, recorder.run_id, results.questions)
    assert stored(recorder.path) == expected(results) != []
    assert [path.name for path in recorder.path.parent.iterdir()] == ["r.sqlite3"]


def test_the_shipped_recording_has_its_scores_and_storing_them_again_does_not_touch_it(tmp_path: Path) -> None:
    path = Path(shutil.copy(demo_recording(), tmp_path / "demo.sqlite3"))
    before, results = path.read_bytes(), results_of(path)
    assert stored(path) == expected(results)
    store_scores(path, results.run.id, results.questions)
    assert path.read_bytes() == before


def test_other_scores_of_a_run_replace_its_old_ones(recorder: RunRecorder) -> None:
    recorder.finish("finished")
    results = results_of(recorder.path)
    store_scores(recorder.path, recorder.run_id, results.questions)
    doubted = [row.model_copy(update={"failure": "key_suspect"}) for row in results.questions]
    store_scores(recorder.path, recorder.run_id, doubted)
    assert [row[3] for row in stored(recorder.path)] == ["key_suspect"] * len(doubted)


def test_a_resumed_run_has_no_scores_until_it_is_over(recorder: RunRecorder) -> None:
    recorder.finish("interrupted")
    store_scores(recorder.path, recorder.run_id, results_of(recorder.path).questions)
    RunRecorder.resume(recorder.path, "f").finish("interrupted")
    assert stored(recorder.path) == []


def test_nothing_is_stored_while_the_file_is_recorded_into(recorder: RunRecorder) -> None:
    recorder.flush()
    with pytest.raises(RecordingError, match="another memreplay is writing"):
        store_scores(recorder.path, recorder.run_id, results_of(recorder.path).questions)
    recorder.finish("finished")
    assert stored(recorder.path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_stays_as_it_is(recorder: RunRecorder) -> None:
    recorder.finish("finished")
    before = recorder.path.read_bytes()
    recorder.path.chmod(0o444)
    with pytest.raises(RecordingError):
        store_scores(recorder.path, recorder.run_id, results_of(recorder.path).questions)
    assert recorder.path.read_bytes() == before
