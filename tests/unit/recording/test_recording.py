"""A recording shows again, from the file alone, everything that happened."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_backends.stores.trace import ReadChange
from memreplay.conversations.models import Conversation
from memreplay.engine.events import QuestionAsked, ReplayEvent, ReplyReceived, StoreOperated
from memreplay.errors import RecordingError
from memreplay.llm.model import Reply
from memreplay.recording.reader import Recording
from memreplay.recording.reply_store import SqliteReplyCache
from memreplay.recording.schema import APPLICATION_ID, SCHEMA_VERSION
from memreplay.recording.writer import RunRecorder, fingerprint
from tests.conftest import REPOSITORY

SETTINGS = {"backend": ["full_context"], "model": ["m"]}


def start(path: Path) -> RunRecorder:
    return RunRecorder.start(path, SETTINGS, ["tiny-01"], fingerprint(SETTINGS))


def test_events_and_conversation_come_back_as_they_were(
    tmp_path: Path, conversation: Conversation, events: list[ReplayEvent]
) -> None:
    recorder = start(tmp_path / "r.sqlite3")
    recorder.add_conversation(conversation)
    for event in events:
        recorder.record(event)
    recorder.finish("finished")
    recording = Recording.open(tmp_path / "r.sqlite3")
    run = recording.run()
    assert (run.status, run.settings, run.datasets) == ("finished", SETTINGS, ("tiny-01",))
    assert recording.conversation_ids(run.id) == ["tiny-01"]
    assert recording.conversation(run.id, "tiny-01") == conversation
    assert list(recording.events(run.id, "tiny-01")) == events


def test_what_was_only_read_from_a_store_can_be_left_out(
    tmp_path: Path, conversation: Conversation, events: list[ReplayEvent]
) -> None:
    (written,) = (event for event in events if isinstance(event, StoreOperated))
    looked = written.operation.model_copy(update={"command": "GET", "change": ReadChange(found=True, size=9)})
    recorder = start(tmp_path / "r.sqlite3")
    recorder.add_conversation(conversation)
    for event in (*events, written.model_copy(update={"operation": looked})):
        recorder.record(event)
    recorder.finish("finished")
    recording = Recording.open(tmp_path / "r.sqlite3")
    assert list(recording.writes_and(recorder.run_id, "tiny-01", ("conversation_opened",))) == [events[0], written]


def test_a_reply_is_on_disk_when_record_returns(
    tmp_path: Path, conversation: Conversation, events: list[ReplayEvent]
) -> None:
    recorder = start(tmp_path / "r.sqlite3")
    recorder.add_conversation(conversation)
    for event in events:
        recorder.record(event)
        if isinstance(event, ReplyReceived):
            break
    seen = Recording.open(tmp_path / "r.sqlite3")
    assert list(seen.events(recorder.run_id, "tiny-01"))[-1] == event
    assert seen.run().status == "running"


def test_an_existing_file_gains_a_run(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite3"
    first = start(path)
    first.finish("finished")
    second = start(path)
    second.finish("finished")
    assert [run.id for run in Recording.open(path).runs()] == [first.run_id, second.run_id]


def test_a_long_text_lies_in_the_file_once(
    tmp_path: Path, conversation: Conversation, events: list[ReplayEvent]
) -> None:
    recorder = start(tmp_path / "r.sqlite3")
    recorder.add_conversation(conversation)
    for event in events:
        recorder.record(event)
    recorder.finish("finished")
    with sqlite3.connect(tmp_path / "r.sqlite3") as db:
        assert db.execute("select count(*) from texts where body like '%Brisa%'").fetchone() == (1,)
        assert db.execute("select count(*) from events where body like '%Brisa[/]%'").fetchone() == (0,)


def test_resuming_takes_up_the_newest_unfinished_run_of_equal_settings(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite3"
    start(path).finish("interrupted")
    newest = start(path)
    newest.finish("interrupted")
    start(path).finish("finished")
    resumed = RunRecorder.resume(path, fingerprint(SETTINGS))
    assert resumed.run_id == newest.run_id
    assert resumed.reader().run(resumed.run_id).status == "running"
    resumed.finish("interrupted")
    with pytest.raises(RecordingError, match=r"no unfinished run of these settings to resume$"):
        RunRecorder.resume(path, fingerprint(SETTINGS | {"top_k": 3}))


def test_resuming_a_finished_run_says_so_and_what_can_be_retried(tmp_path: Path) -> None:
    start(tmp_path / "r.sqlite3").finish("finished")
    with pytest.raises(RecordingError, match="it is finished, and --retry-errors asks again"):
        RunRecorder.resume(tmp_path / "r.sqlite3", fingerprint(SETTINGS))


def test_what_a_half_done_attempt_left_is_taken_back_and_replies_stay(
    tmp_path: Path, conversation: Conversation, events: list[ReplayEvent]
) -> None:
    recorder = start(tmp_path / "r.sqlite3")
    recorder.add_conversation(conversation)
    for event in events:
        recorder.record(event)
    unanswered = next(event for event in events if isinstance(event, QuestionAsked)).model_copy(
        update={"question_id": "tiny-01-q2"}
    )
    recorder.record(unanswered)
    recorder.flush()
    recorder.forget_ingestion("tiny-01", ["full_context"])
    recorder.forget_asks("tiny-01", [unanswered])
    kinds = [event.kind for event in recorder.reader().events(recorder.run_id, "tiny-01")]
    assert kinds == ["question_asked", "reply_received", "answer_scored"]


def test_a_file_of_something_else_or_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    other, newer, older, text = (tmp_path / f"{name}.sqlite3" for name in ("other", "newer", "older", "text"))
    with sqlite3.connect(other) as db:
        db.execute("create table t (x)")
    for path, version in ((newer, SCHEMA_VERSION + 1), (older, -3)):
        with sqlite3.connect(path) as db:
            db.execute(f"pragma application_id = {APPLICATION_ID}")
            db.execute(f"pragma user_version = {version}")
    text.write_text("not a database, but long enough to be looked at as if it were one" * 20)
    for path, why in (
        (other, "another program"),
        (newer, "newer memreplay"),
        (older, "there is no format -3"),
        (text, "not a database"),
    ):
        before = path.read_bytes()
        for use in (Recording.open, start):
            with pytest.raises(RecordingError, match=why) as refused:
                use(path)
            assert str(path) in str(refused.value)
        assert path.read_bytes() == before
    with pytest.raises(RecordingError, match="no such recording"):
        Recording.open(tmp_path / "absent.sqlite3")
    assert not (tmp_path / "absent.sqlite3").exists()


_READ_BY_VIEWS = {
    "retrievals": "select count(*) from retrievals where run_id = ? and missed = 0"
    " and min(length(id), length(store), length(place), length(text)) > 0 and rank > 0 and in_prompt is not null",
    "memory_writes": "select count(*) from memory_writes where run_id = ?"
    " and min(length(store), length(command), length(place), length(phase), length(actor), length(written)) > 0",
}


@pytest.mark.parametrize("number", range(1, SCHEMA_VERSION + 1))
def test_a_recording_of_any_format_takes_another_run_and_its_views_read_both(
    tmp_path: Path, conversation: Conversation, events: list[ReplayEvent], number: int
) -> None:
    older = REPOSITORY / "tests" / "fixtures" / "recordings" / f"format-{number}.sqlite3"
    path = Path(shutil.copy(older, tmp_path / "r.sqlite3"))
    before = Recording.open(path).run()
    known = [list(Recording.open(path).events(before.id, id_)) for id_ in before.datasets]
    recorder = start(path)
    recorder.add_conversation(conversation)
    for event in events:
        recorder.record(event)
    recorder.finish("finished")
    recording = Recording.open(path)
    assert [list(recording.events(before.id, id_)) for id_ in before.datasets] == known
    assert list(recording.events(recorder.run_id, "tiny-01")) == events
    with closing(sqlite3.connect(path)) as db:
        for query in _READ_BY_VIEWS.values():
            assert db.execute(query, [before.id]).fetchone()[0] > 1
            assert db.execute(query, [recorder.run_id]).fetchone() == (1,)


def test_a_recording_in_a_folder_that_cannot_be_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "locked" / "r.sqlite3"
    start(path).finish("finished")
    path.parent.chmod(0o555)
    try:
        assert Recording.open(path).run().status == "finished"
    finally:
        path.parent.chmod(0o755)


def test_the_reply_cache_keeps_replies_across_processes(tmp_path: Path) -> None:
    reply = Reply(text="3", cost_usd=0.25, ms=12.5)
    cache = SqliteReplyCache(tmp_path / "cache" / "replies.sqlite3")
    assert cache.get("k") is None
    cache.put("k", reply)
    cache.close()
    assert SqliteReplyCache(tmp_path / "cache" / "replies.sqlite3").get("k") == reply


def test_the_view_of_calls_has_the_text_of_what_memories_asked(tmp_path: Path) -> None:
    kept = REPOSITORY / "tests" / "fixtures" / "recordings"
    query = "select turn, purpose, prompt, reply, read, finish_reason, repeat from model_calls order by event"
    with closing(sqlite3.connect(kept / "format-6.sqlite3")) as db:
        first, second = db.execute(query).fetchall()
    assert [first[0], *first[4:]] == [2, "parsed", "stop", 0] and first[1] == "extraction"
    assert first[2].endswith("Said on 2023-05-08.\n[D1:1] Ana: My boat is called Petrel and lies in the harbour of"
                             " Cadaqués.\n[D1:2] Ben: Nice name. When do you sail again?")  # fmt: skip
    assert "Ana's boat is called Petrel." in first[3] and second[3] == '{"facts": []}'
    older = Path(shutil.copy(kept / "format-5.sqlite3", tmp_path / "r.sqlite3"))
    start(older).finish("finished")
    with closing(sqlite3.connect(older)) as db:
        assert db.execute(query).fetchall() == [], "an older recording gets the view"
