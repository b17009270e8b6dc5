"""A cast of a replay takes no longer, and shows no less, when the conversation's id fills the heading."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from memreplay.paths import demo_recording
from memreplay.recording.reader import Recording
from memreplay.tui.cast import cast_of

MOST_SECONDS_A_TURN = 5.0


@pytest.mark.parametrize("length", [None, 172])
def test_a_turn_is_drawn_in_a_moment_whatever_the_length_of_the_id(tmp_path: Path, length: int | None) -> None:
    path = tmp_path / "r.sqlite3"
    shutil.copy(demo_recording(), path)
    with closing(Recording.open(path)) as recording:
        run = recording.run().id
        conversation = recording.conversation_ids(run)[0]
    if length is not None:
        longer = conversation.ljust(length, "x")
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("update conversations set id = ? where id = ?", [longer, conversation])
        conversation = longer
    began = monotonic()
    written = cast_of(path, run, conversation, 1, 3)
    assert monotonic() - began < 4 * MOST_SECONDS_A_TURN
    frames = [text for _, code, text in map(json.loads, written.splitlines()[1:]) if code == "o"]
    assert len(frames) == 4 and all(frames)
    assert "38;2;" in frames[0] and "memories" not in frames[0]
    assert length is not None or all(f"turn {turn}/" in frame for turn, frame in enumerate(frames[:3], start=1))
