"""Bookmarks, watches and labels are saved with the recording, or beside one that cannot be written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.conversations.models import Conversation
from memreplay.engine.events import ReplayEvent
from memreplay.errors import RecordingError
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording
from memreplay.recording.writer import RunRecorder
from memreplay.timeline.annotations import Annotations, Bookmark, SavedBreakpoint
from memreplay.timeline.timeline import AskKey

NOTE = Bookmark(mark="a", turn=2, note="[bold]lost[/] here \x1b[31m")
ANSWER = AskKey(backend="rag", model="m", question_id="[q]", repeat=0, turn=2, by_hand=False)
WATCHES = (
    SavedBreakpoint(text='text contains "x"'),
    SavedBreakpoint(text="a changed", backend="rag", enabled=False),
)


@pytest.fixture
def recorder(tmp_path: Path, conversation: Conversation, events: list[ReplayEvent]) -> RunRecorder:
    recorder = RunRecorder.start(tmp_path / "r.sqlite3", {}, ["tiny"], "f")
    recorder.add_conversation(conversation)
    for event in events:
        recorder.record(event)
    return recorder


def annotate(annotations: Annotations) -> None:
    annotations.set_bookmark(Bookmark(mark="a", turn=1))
    annotations.set_bookmark(NOTE)
    annotations.set_bookmark(Bookmark(mark="b", turn=1))
    annotations.set_bookmark(Bookmark(mark="c", turn=1))
    annotations.remove_bookmark("c")
    annotations.remove_bookmark("never set")
    annotations.set_breakpoints(WATCHES[:1])
    annotations.set_breakpoints(WATCHES)
    annotations.set_label(ANSWER, "right")
    annotations.set_label(ANSWER, "wrong")
    annotations.set_label(replace(ANSWER, repeat=1), "right")
    annotations.set_label(replace(ANSWER, repeat=1), None)
    annotations.set_label(replace(ANSWER, repeat=2), None)


def is_annotated(annotations: Annotations) -> bool:
    return (tuple(annotations.bookmarks()), tuple(annotations.breakpoints()), annotations.labels()) == (
        (Bookmark(mark="b", turn=1), NOTE),
        WATCHES,
        {ANSWER: "wrong"},
    )


def test_a_live_session_saves_into_its_recording(recorder: RunRecorder) -> None:
    live = recorder.annotations("tiny-01")
    annotate(live)
    assert is_annotated(live)
    recorder.finish("interrupted")
    assert is_annotated(annotations_of(recorder.path, recorder.run_id, "tiny-01"))


def test_a_finished_recording_keeps_them_and_its_events(recorder: RunRecorder) -> None:
    recorder.finish("finished")
    before = list(Recording.open(recorder.path).events(recorder.run_id, "tiny-01"))
    watching = Recording.open(recorder.path)
    annotate(annotations_of(recorder.path, recorder.run_id, "tiny-01"))
    assert is_annotated(annotations_of(recorder.path, recorder.run_id, "tiny-01"))
    assert list(watching.events(recorder.run_id, "tiny-01")) == before


def test_looking_at_annotations_does_not_touch_the_file(recorder: RunRecorder) -> None:
    recorder.finish("finished")
    before = recorder.path.read_bytes()
    assert not annotations_of(recorder.path, recorder.run_id, "tiny-01").bookmarks()
    assert recorder.path.read_bytes() == before


def test_what_is_shipped_stays_as_it_is_and_notes_on_it_are_saved_elsewhere(recorder: RunRecorder) -> None:
    recorder.annotations("tiny-01").set_bookmark(Bookmark(mark="shipped", turn=1))
    recorder.finish("finished")
    before = recorder.path.read_bytes()

    def kept() -> Annotations:
        return annotations_of(recorder.path, recorder.run_id, "tiny-01", shipped=[recorder.path])

    assert [bookmark.mark for bookmark in kept().bookmarks()] == ["shipped"]
    kept().remove_bookmark("shipped")
    annotate(kept())
    assert is_annotated(kept())
    assert recorder.path.read_bytes() == before
    assert not list(recorder.path.parent.glob("*.json"))


def test_notes_on_a_recording_that_cannot_be_written_are_saved_beside_it(
    recorder: RunRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.finish("finished")
    # Root may write everywhere, so permissions cannot say it.
    may = os.access
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != recorder.path and may(path, mode))
    annotate(annotations_of(recorder.path, recorder.run_id, "tiny-01"))
    assert is_annotated(annotations_of(recorder.path, recorder.run_id, "tiny-01"))
    beside = recorder.path.with_name(f"{recorder.path.name}.notes.json")
    assert beside.is_file()
    beside.write_text("{")
    with pytest.raises(RecordingError, match="these bookmarks cannot be read"):
        annotations_of(recorder.path, recorder.run_id, "tiny-01")


def test_a_conversation_that_is_not_there_is_refused(recorder: RunRecorder) -> None:
    recorder.finish("finished")
    with pytest.raises(RecordingError, match="no conversation nobody"):
        annotations_of(recorder.path, recorder.run_id, "nobody")
