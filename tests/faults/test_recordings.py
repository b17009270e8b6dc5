"""Recordings and imported runs that are damaged or contradict themselves: one sentence, never a crash."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.capture.journal import Journal
from memreplay.errors import RecordingError
from memreplay.recording.schema import SCHEMA_VERSION
from memreplay.tui import sources
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.faults.effort import PHASES, examples

FORMATS = sorted((REPOSITORY / "tests" / "fixtures" / "recordings").glob("format-*.sqlite3"))

CONTRADICTIONS = {
    "a score without its question": "delete from events where kind = 'question_asked'",
    "a question without a reply": "delete from events where kind = 'reply_received'",
    "no events": "delete from events",
    "events at turns that no conversation has": "update events set turn = turn + 9000000000000000000",
    "no texts": "delete from texts",
    "no conversations": "delete from conversations",
    "no runs": "delete from runs",
    "no table of conversations": "drop table conversations",
    "conversations without an id": "alter table conversations rename column id to name",
    "a turn before the first": "update events set turn = -7 where kind = 'observed'",
    "a turn far behind the last": "update events set turn = 9000000000000 where kind = 'observed'",
    "a question that does not exist": (
        "update events set body = json_set(body, '$.question_id', 'none') where kind in"
        " ('question_asked', 'reply_received', 'answer_scored')"
    ),
    "another model in the settings": "update runs set settings = json_set(settings, '$.model', json('[\"x\"]'))",
    "another memory in the settings": "update runs set settings = json_set(settings, '$.backend', json('[\"x\"]'))",
    "settings without memories": "update runs set settings = '{}'",
    "settings of another shape": "update runs set settings = '[]'",
    "a status that does not exist": "update runs set status = 'odd'",
    "a number for a memory": "update events set backend = 5",
    "an event of another kind": "update events set kind = 'turn_played'",
    "an event of no kind": "update events set kind = ''",
    "no parts": "delete from parts",
    "a part that is a number": "update parts set body = '5'",
    "a part of another shape": "update parts set body = json_remove(body, '$.id', '$.store')",
    "a part that is no number": "update events set body = replace(body, '\"part\":', '\"part\":null,\"x\":')",
    "ranks of fewer hits": "update events set body = json_set(body, '$.hits.score', json('[]'))",
    "a conversation without turns": "update conversations set body = json_set(body, '$.turns', json('[]'))",
    "a conversation of another name": "update conversations set id = 'other'",
    "a text that is a number": "update texts set body = 5",
    "a text that is null": "pragma writable_schema = on; update texts set body = x'ff'",
    "a change of a place that is not there": (
        "update events set body = replace(body, '\"path\":\"/', '\"path\":\"/none/of/') where changes = 1"
    ),
    "an endless number": "update events set body = replace(body, '\"ms\":', '\"ms\":1e999,\"x\":')",
    "events are a view": (
        "alter table events rename to other; create view events as with recursive n(i) as (select 1 union all"
        " select i + 1 from n) select i as key, 1 as conversation, 'x' as backend, 1 as turn, 'observed' as kind,"
        " 0 as changes, '{}' as body from n"
    ),
}  # fmt: skip


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return Path(shutil.copy(FORMATS[-1], tmp_path / "r.sqlite3"))


def _shown(path: Path) -> None:
    """What the screens read of a recording, each conversation with every panel's events."""
    for each in sources.recorded_conversations(path):
        source = sources.recorded(path, each.id)
        for turn in range(source.timeline.last_turn + 1):
            for backend in source.backends:
                list(source.timeline.events_at(backend, turn))
                source.timeline.snapshot_at(backend, turn)
    run = sources.recorded_run(path)
    for id_ in run.conversations:
        sources.labels_in(path, run.id, id_)


def _survives(run_cli: RunCli, path: Path) -> None:
    """Every command and screen succeeds, or says in one sentence what is wrong with the file."""
    output = path.with_name("out.json")
    for command in (
        ("report", path, "--output", output),
        ("compare", path, path),
        ("recordings", "show", path),
        ("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--recording", path, "--resume"),
    ):
        ran = run_cli(*command)
        assert "Traceback" not in ran.err, ran.err
        assert ran.code == 0 or (ran.code in (2, 3, 5) and ran.err.startswith("memreplay: ")), (command, ran)
    try:
        _shown(path)
    except RecordingError as error:
        assert "Traceback" not in str(error)


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_recording_that_contradicts_itself_is_a_sentence(run_cli: RunCli, recording: Path, change: str) -> None:
    with sqlite3.connect(recording) as db:
        db.executescript(change)
    db.close()
    _survives(run_cli, recording)


@pytest.mark.parametrize("number", range(1, SCHEMA_VERSION + 1))
def test_every_format_that_was_ever_written_is_opened_stepped_and_reported(
    run_cli: RunCli, tmp_path: Path, number: int
) -> None:
    kept = next((path for path in FORMATS if path.stem == f"format-{number}"), None)
    assert kept is not None, f"tests/fixtures/recordings has no recording of format {number}: add a small one"
    copy, output = Path(shutil.copy(kept, tmp_path / "old.sqlite3")), tmp_path / "out.json"
    before = copy.read_bytes()
    _shown(copy)
    assert copy.read_bytes() == before, "looking changes nothing"
    assert run_cli("report", copy, "--output", output).code == 0
    rows = json.loads(output.read_text())["questions"]
    assert {row["backend"] for row in rows} == {"hybrid", "full_context"}
    assert {row["outcome"] for row in rows} == {"correct"}


_FUZZED = settings(
    max_examples=examples(8),
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def _alone(folder: Path) -> Path:
    """The name of a recording in an empty folder."""
    shutil.rmtree(folder / "recordings", ignore_errors=True)
    (folder / "recordings").mkdir()
    return folder / "recordings" / "r.sqlite3"


@_FUZZED
@given(data=st.data())
def test_a_recording_with_flipped_bits_or_cut_short_is_a_sentence(
    run_cli: RunCli, tmp_path: Path, data: st.DataObject
) -> None:
    whole = bytearray(FORMATS[-1].read_bytes())
    for _ in range(data.draw(st.integers(0, 8), label="flips")):
        place = data.draw(st.integers(0, len(whole) - 1), label="byte")
        whole[place] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    end = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))), label="length")
    path = _alone(tmp_path)
    path.write_bytes(whole[:end])
    _survives(run_cli, path)


@_FUZZED
@given(seed=st.integers(0, 2**32))
def test_a_journal_with_flipped_bytes_is_a_sentence(run_cli: RunCli, tmp_path: Path, seed: int) -> None:
    path = _alone(tmp_path)
    journal = Journal(path)
    for number in range(40):
        journal.note("message", 1.7e9 + number, {"role": "user", "text": f"I live in town {number}. " * 4})
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("pragma journal_mode = delete")
    random, whole = Random(seed), bytearray(path.read_bytes())
    for _ in range(random.randint(1, 12)):
        whole[random.randrange(len(whole))] = random.randrange(256)
    path.write_bytes(whole)
    _survives(run_cli, path)


@_FUZZED
@given(data=st.data())
def test_a_recording_without_some_rows_is_a_sentence(run_cli: RunCli, tmp_path: Path, data: st.DataObject) -> None:
    path = _alone(tmp_path)
    shutil.copy(FORMATS[-1], path)
    with sqlite3.connect(path) as db:
        for table, key in (
            ("events", "key"),
            ("texts", "rowid"),
            ("parts", "key"),
            ("conversations", "key"),
            ("scores", "rowid"),
        ):
            keys = [row[0] for row in db.execute(f"select {key} from {table}")]
            gone = data.draw(st.lists(st.sampled_from(keys), max_size=4) if keys else st.just([]), label=table)
            db.executemany(f"delete from {table} where {key} = ?", [(each,) for each in gone])
    db.close()
    _survives(run_cli, path)


_COLUMN_VALUES = ("null", "-1", "9223372036854775807", "1e999", "x'00ff'", "''", "'{}'", "'[1]'", "'\u202e'")
_TABLES = ("runs", "conversations", "events", "texts", "scores")


@_FUZZED
@given(data=st.data())
def test_a_recording_of_a_foreign_schema_is_a_sentence(
    run_cli: RunCli, tmp_path: Path, data: st.DataObject
) -> None:
    path = _alone(tmp_path)
    shutil.copy(FORMATS[-1], path)
    db = sqlite3.connect(path)
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        table = data.draw(st.sampled_from(_TABLES), label="table")
        columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
        column = data.draw(st.sampled_from(columns or ["id"]), label="column")
        change = data.draw(
            st.sampled_from(
                (
                    f"drop table {table}",
                    f"alter table {table} rename to other_{table}",
                    f"alter table {table} rename column {column} to other_{column}",
                    f"alter table {table} drop column {column}",
                    f"alter table {table} add column extra",
                    f"create table {table} (a, b, c)",
                    *(f"update {table} set {column} = {value}" for value in _COLUMN_VALUES),
                )
            ),
            label="change",
        )
        with suppress(sqlite3.Error), db:
            db.execute(change)
    db.execute(f"pragma user_version = {data.draw(st.integers(0, SCHEMA_VERSION), label='format')}")
    db.close()
    _survives(run_cli, path)


# ---- imported runs ---------------------------------------------------------------------------------------------


def _line(kind: int, test: str = "", seconds: float = 0.0, **data: Any) -> str:
    return json.dumps({"type": kind, "timestamp": 1_716_376_551.0 + seconds, "test_id": test, "data": data})


_TEST = "Colours - 0"
LOGS = {
    "a wait for ever": [_line(1, _TEST), _line(6, _TEST, time=1e300)],
    "a wait of letters": [_line(1, _TEST), _line(6, _TEST, time="abc")],
    "a wait that is not a number": [_line(1, _TEST), _line(6, _TEST, time=float("nan"))],
    "a negative wait": [_line(1, _TEST), _line(6, _TEST, time=-5)],
    "a wait of a list of tokens": [_line(1, _TEST), _line(6, _TEST, tokens=[1])],
    "a message without text": [_line(1, _TEST), _line(0, _TEST)],
    "a message that is a number": [_line(1, _TEST), _line(0, _TEST, message=5)],
    "a time after all calendars": [_line(1, _TEST, 1e14)],
    "a test in a folder above": [_line(1, ".. - secret"), _line(2, ".. - secret")],
    "a test in a folder above that": [_line(1, "../.. - secret"), _line(2, "../.. - secret")],
    "a test without a result": [_line(1, _TEST), _line(2, _TEST)],
    "an event of no type": ['{"type": 99, "timestamp": 0, "test_id": "", "data": {}}'],
    "data that is a list": ['{"type": 0, "timestamp": 0, "test_id": "", "data": [1]}'],
    "no JSON": ["{"],
}


@pytest.mark.parametrize("lines", LOGS.values(), ids=LOGS)
def test_a_run_that_cannot_be_imported_is_a_sentence(run_cli: RunCli, tmp_path: Path, lines: list[str]) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    secret = '{"score": 1, "max_score": 1, "reasoning": ["hidden"], "tokens": 1, "expected_responses": ["hidden"]}'
    (tmp_path / "secret_0.json").write_text(secret)
    (folder / "master_log.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "runstats.json").write_text("{}")
    ran = run_cli("recordings", "import", folder, "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 2 and ran.err.startswith(f"memreplay: {folder}"), ran
    assert "Traceback" not in ran.err and not (tmp_path / "r.sqlite3").exists()


def goodai_run(folder: Path, message: str = "Hello") -> Path:
    """A run of one test, as another program leaves it."""
    folder.mkdir()
    (folder / "master_log.jsonl").write_text(_line(1, _TEST) + "\n" + _line(0, _TEST, message=message) + "\n")
    (folder / "runstats.json").write_text("{}")
    return folder


def test_a_message_with_half_a_surrogate_pair_is_imported(run_cli: RunCli, tmp_path: Path) -> None:
    folder, recording = goodai_run(tmp_path / "run\udcff", "a\ud83d"), tmp_path / "r.sqlite3"
    ran = run_cli("recordings", "import", folder, "--recording", recording)
    assert ran.code == 0, ran.err
    assert run_cli("recordings", "show", recording).code == 0
