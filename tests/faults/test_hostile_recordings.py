"""Recordings that somebody prepared: what SQLite would run for them is refused, and nothing is written."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import orjson
import pytest

import memreplay
from memreplay.errors import RecordingError
from memreplay.recording.bodies import MOST_JOINED_CHARACTERS
from memreplay.recording.connection import MOST_BYTES_OF_A_VALUE
from memreplay.tui.sources import recorded, recorded_conversations
from tests.cli.conftest import Ran, RunCli
from tests.conftest import REPOSITORY, SMALL_DEMO
from tests.faults.effort import examples

BYTES_A_PAGE = 4096
PAGES_OF_THE_SCHEMA = 32

FORMATS = sorted((REPOSITORY / "tests" / "fixtures" / "recordings").glob("format-*.sqlite3"))

_EDIT_SCHEMA = "pragma writable_schema = on; update sqlite_master set"
_PLACE_OF_RUNS = "(select rootpage from sqlite_master where name = 'runs')"

PREPARED = {
    "a trigger on a table": (
        "create trigger hack after insert on runs begin update runs set status = 'hacked'; end",
        "the trigger 'hack'",
    ),
    "a trigger on a view": (
        "create trigger hack instead of insert on answers begin delete from runs; end",
        "the trigger 'hack'",
    ),
    "a view of its own": ("create view other as select * from runs", "the view 'other'"),
    "a table of its own": ("create table other (a)", "the table 'other'"),
    "statistics": ("analyze", "the table 'sqlite_stat1'"),
    "a view in place of a table": (
        "alter table events rename to moved; create view events as select * from moved",
        "the table 'moved'",
    ),
    "a view of ours that computes": (
        "drop view answers; create view answers as select randomblob(100000000) as id from runs",
        "the view 'answers'",
    ),
    "a virtual column": (
        "alter table runs add column more text generated always as (hex(zeroblob(1000000))) virtual",
        "the table 'runs'",
    ),
    "a stored column": (
        "drop table watches; create table watches (key integer primary key, conversation integer, text text,"
        " backend text, enabled integer, more text generated always as (hex(text)) stored)",
        "the table 'watches'",
    ),
    "a default that calls a function": (
        "drop table scores;"
        " create table scores (run_id text, dataset text default (hex(randomblob(1000000))))",
        "the table 'scores'",
    ),
    "a check that calls a function": (
        "drop table parts; create table parts (key integer primary key, body text not null check (length(body)))",
        "the table 'parts'",
    ),
    "an index of an expression": (
        "create index other on events (hex(body))",
        "the index 'other'",
    ),
    "an index of ours over something else": (
        "drop index idx_events_conversation_kind;"
        " create index idx_events_conversation_kind on events (conversation, hex(kind))",
        "the index 'idx_events_conversation_kind'",
    ),
    "a virtual table": ("create virtual table other using fts5 (body)", "the table 'other"),
    "a virtual table in place of a table": (
        "drop table texts; create virtual table texts using fts5 (hash, body)",
        "the table 'texts",
    ),
    "a table without row ids": (
        "drop table texts; create table texts (hash text primary key, body text not null) without rowid",
        "the table 'texts'",
    ),
    "a table of other types": (
        "drop table texts; create table texts (hash blob primary key, body blob not null)",
        "the table 'texts'",
    ),
    "a table whose collation differs": (
        "drop table texts; create table texts (hash text primary key collate nocase, body text not null)",
        "the table 'texts'",
    ),
    "a definition that was edited": (
        f"{_EDIT_SCHEMA} sql = replace(sql, 'TEXT NOT NULL', 'TEXT DEFAULT (hex(1))') where name = 'texts'",
        "the table 'texts'",
    ),
    "a comment in a definition": (
        f"{_EDIT_SCHEMA} sql = sql || ' /* more */' where name = 'answers'",
        "the view 'answers'",
    ),
    "two tables in one place": (
        f"{_EDIT_SCHEMA} rootpage = {_PLACE_OF_RUNS} where name = 'watches'",
        "the table 'watches' lies where 'runs' lies",
    ),
    "a name with a terminal's escape sequence": (
        'create view "\x1b[2J" as select 1',
        "the view '\\x1b[2J'",
    ),
}  # fmt: skip
"""SQL that changes a recording, and what is named."""


def _prepared(path: Path, change: str) -> Path:
    shutil.copy(FORMATS[-1], path)
    with sqlite3.connect(path) as db:
        db.executescript(change)
    db.close()
    return path


@pytest.mark.parametrize(("change", "says"), PREPARED.values(), ids=PREPARED)
def test_what_memreplay_does_not_write_is_named_and_refused(
    run_cli: RunCli, tmp_path: Path, change: str, says: str
) -> None:
    path = _prepared(tmp_path / "r.sqlite3", change)
    before = path.read_bytes()
    for command in (
        ("recordings", "show", path),
        ("report", path, "--output", tmp_path / "out.json"),
        ("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--recording", path),
        ("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--recording", path, "--resume"),
    ):
        ran = run_cli(*command)
        assert ran.code == 2 and ran.err.startswith(f"memreplay: {path}: refused: "), (command, ran)
        assert says in ran.err and len(ran.err.splitlines()) == 1, ran.err
        assert path.read_bytes() == before
    with pytest.raises(RecordingError, match="refused"):
        memreplay.open(path)


def test_a_trigger_runs_with_no_run_that_is_appended(run_cli: RunCli, tmp_path: Path) -> None:
    """Also where the schema is that of an earlier format, which an appended run brings to this one."""
    for number, kept in enumerate(FORMATS):
        path = Path(shutil.copy(kept, tmp_path / f"{number}.sqlite3"))
        with sqlite3.connect(path) as db:
            db.execute("create trigger t after insert on runs begin update runs set status = 'hacked'; end")
        ran = run_cli("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--recording", path)
        assert ran.code == 2 and "the trigger 't'" in ran.err
        assert ("hacked",) not in db.execute("select status from runs").fetchall()
        db.close()


@pytest.mark.parametrize("kept", FORMATS, ids=lambda path: path.stem)
def test_a_run_is_appended_to_a_recording_of_every_format(run_cli: RunCli, tmp_path: Path, kept: Path) -> None:
    path = Path(shutil.copy(kept, tmp_path / "r.sqlite3"))
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", "closed_book", "--recording", path,
        "--output", tmp_path / "out.json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    with memreplay.open(path) as run:
        assert run.conversations


def _first(db: sqlite3.Connection, kind: str) -> tuple[int, dict[str, object]]:
    key, body = db.execute("select key, body from events where kind = ? order by key", [kind]).fetchone()
    return key, orjson.loads(body)


def _a_prompt_of_the_same_text_for_ever(db: sqlite3.Connection) -> None:
    db.execute("insert or replace into texts values ('long', ?)", ["x" * 2**20])
    key, body = _first(db, "question_asked")
    pieces = [{"$": "long"}] * (2 * MOST_JOINED_CHARACTERS // 2**20)
    body["prompt"] = [{"role": "user", "segments": [{"$": pieces}]}]
    db.execute("update events set body = ? where key = ?", [orjson.dumps(body).decode(), key])


def _thousands_of_hits_of_a_thousand_fields(db: sqlite3.Connection) -> None:
    part = orjson.dumps({f"field {number}": 1 for number in range(1000)}).decode()
    db.execute("insert or replace into parts values (999999, ?)", [part])
    key, body = _first(db, "question_asked")
    body["hits"] = {"part": [999999] * 5_000, "first": 1}
    db.execute("update events set body = ? where key = ?", [orjson.dumps(body).decode(), key])


def _a_text_of_more_than_can_be_written(db: sqlite3.Connection) -> None:
    db.execute("update conversations set body = body || ?", [" " * (MOST_BYTES_OF_A_VALUE + 1)])


def _nested(levels: int) -> Callable[[sqlite3.Connection], None]:
    def nest(db: sqlite3.Connection) -> None:
        deep = "[" * levels + "]" * levels
        for table in ("events", "parts", "conversations"):
            db.execute(f"""update {table} set body = '{{"turns":{deep},"question_id":' || ? || '}}'""", [deep])
        db.execute("update runs set settings = ?, datasets = ?", [deep, deep])

    return nest


def _a_state_of_many_levels(db: sqlite3.Connection) -> None:
    deep = orjson.loads('{"in":' * 900 + "1" + "}" * 900)
    for key, text in db.execute("select key, body from events where kind = 'store_operated' and changes = 1"):
        body = orjson.loads(text)
        if body["operation"]["change"]["kind"] == "write":
            body["operation"]["change"]["value"] = deep
            db.execute("update events set body = ? where key = ?", [json.dumps(body), key])


OVERSIZED = {
    "a prompt that repeats a long text": (_a_prompt_of_the_same_text_for_ever, "characters"),
    "hits that repeat a part of many fields": (_thousands_of_hits_of_a_thousand_fields, "4,000,000 fields"),
    "a conversation too long to be written": (_a_text_of_more_than_can_be_written, "too big"),
    "a state 900 levels deep": (_a_state_of_many_levels, "more than 250 values inside each other"),
    "values 500 levels deep": (_nested(500), "expected what memreplay writes"),
    "values 1,000 levels deep": (_nested(1_000), "expected what memreplay writes"),
    "values 100,000 levels deep": (_nested(100_000), "expected what memreplay writes"),
}


@pytest.mark.parametrize(("change", "says"), OVERSIZED.values(), ids=OVERSIZED)
def test_a_short_recording_that_grows_without_end_is_a_sentence(
    run_cli: RunCli, tmp_path: Path, change: Callable[[sqlite3.Connection], None], says: str
) -> None:
    path = Path(shutil.copy(FORMATS[-1], tmp_path / "r.sqlite3"))
    with sqlite3.connect(path) as db:
        change(db)
    db.close()
    said = ""
    for command in (
        ("recordings", "show", path),
        ("report", path, "--output", tmp_path / "out.json"),
        ("export", path, "--html", tmp_path / "out.html"),
    ):
        ran = run_cli(*command)
        _is_done_or_a_sentence(ran, path)
        said += ran.err
    assert says in said


def _is_done_or_a_sentence(ran: Ran, path: Path, about: object = None) -> None:
    """A command succeeds, or says in one sentence what is wrong with the file."""
    assert "Traceback" not in ran.err and ran.code in (0, 2), (about, ran)
    assert not ran.code or (ran.err.startswith(f"memreplay: {path}") and ran.err.count("\n") == 1), (about, ran)


@pytest.mark.parametrize("byte", [b"\xff", b"\xc3", b"\x00", b"'"])
@pytest.mark.parametrize(
    "place", [b'TABLE "events"', b'"events" (', b'VIEW "answers"', b"tableruns", b"CREATE TABLE"]
)
def test_a_schema_that_is_not_text_is_a_sentence(
    run_cli: RunCli, tmp_path: Path, place: bytes, byte: bytes
) -> None:
    """SQLite's own message then quotes what is no UTF-8."""
    path, whole = tmp_path / "r.sqlite3", FORMATS[-1].read_bytes()
    assert place in whole
    path.write_bytes(whole.replace(place, place[:-2] + byte + place[-1:]))
    for command in (
        ("recordings", "show", path),
        ("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--recording", path),
    ):
        ran = run_cli(*command)
        assert ran.code == 2, ran
        _is_done_or_a_sentence(ran, path)


def test_a_change_that_fits_nothing_is_a_sentence_in_python(tmp_path: Path) -> None:
    path = Path(shutil.copy(FORMATS[-1], tmp_path / "r.sqlite3"))
    with sqlite3.connect(path) as db:
        db.execute("""update events set body = replace(body, '"path":"/', '"path":"/none/of/') where changes = 1""")
    db.close()
    with pytest.raises(RecordingError, match="does not fit the value that it changes") as raised:
        _look_at(path)
    assert str(raised.value).startswith(f"{path}: ")


FILES_A_BLOCK = 8


def _look_at(path: Path) -> None:
    """What the Python API reads: results, and each memory at the end of each conversation."""
    with memreplay.open(path) as run:
        assert len(run.results.questions) == len(list(run.questions))
        for id_ in run.conversations:
            for memory in run.conversation(id_).at().values():
                assert memory.snapshot
                assert memory.questions is not None


@pytest.mark.parametrize("block", range(examples(4)))
def test_a_demo_with_bytes_overwritten_is_shown_or_a_sentence(run_cli: RunCli, tmp_path: Path, block: int) -> None:
    """Half of the bytes are in the first pages, where the schema and the short tables are."""
    whole, path = SMALL_DEMO.read_bytes(), tmp_path / "r.sqlite3"
    for seed in range(block * FILES_A_BLOCK, (block + 1) * FILES_A_BLOCK):
        drawn = Random(seed)
        damaged = bytearray(whole)
        for _ in range(drawn.choice((1, 5, 25, 125))):
            reach = drawn.choice((len(whole), PAGES_OF_THE_SCHEMA * BYTES_A_PAGE))
            damaged[drawn.randrange(reach)] = drawn.randrange(256)
        path.write_bytes(damaged)
        for command in (("recordings", "show", path), ("report", path, "--output", tmp_path / "out.json")):
            _is_done_or_a_sentence(run_cli(*command), path, seed)
        try:
            _look_at(path)
        except RecordingError as error:
            assert str(error).startswith(str(path)), (seed, error)


ODD = ["-1", "1e308", "-1e308", '"text"', "null", "true", "[]"]

NUMBERS = {
    "$.recall_ms": "question_asked",
    "$.context_tokens": "question_asked",
    "$.reply.ms": "reply_received",
    "$.reply.cost_usd": "reply_received",
    "$.reply.usage.prompt_tokens": "reply_received",
    "$.score.score": "answer_scored",
    "$.score.f1": "answer_scored",
    "$.operation.ms": "store_operated",
    "$.ms": "observed",
}


@pytest.mark.parametrize("odd", [*ODD, "NaN", "Infinity", None])
@pytest.mark.parametrize("place", NUMBERS)
def test_a_number_that_cannot_be_one_is_unknown_or_a_sentence(
    run_cli: RunCli, tmp_path: Path, place: str, odd: str | None
) -> None:
    path = tmp_path / "odd.sqlite3"
    shutil.copy(FORMATS[-1], path)
    with sqlite3.connect(path) as db:
        change = "json_remove(body, ?)" if odd is None else "json_set(body, ?, json(?))"
        literal = odd in ("NaN", "Infinity")
        given = [place] if odd is None else [place, '"<odd>"' if literal else odd]
        db.execute(f"update events set body = {change} where kind = ?", [*given, NUMBERS[place]])
        if literal:
            db.execute("update events set body = replace(body, '\"<odd>\"', ?)", [odd])
    db.close()
    ran = run_cli("report", path)
    assert "Traceback" not in ran.err and ran.code in (0, 2), ran
    if odd in ("-1e308", '"text"', "true", "[]") and ran.code == 0 and NUMBERS[place] == "question_asked":
        assert "were read as unknown" in ran.err


def test_numbers_that_cannot_be_any_are_said_on_the_screen_and_in_python(tmp_path: Path) -> None:
    path = tmp_path / "odd.sqlite3"
    shutil.copy(SMALL_DEMO, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("update events set body = json_set(body, '$.recall_ms', 'soon') where kind = 'question_asked'")
        db.commit()
    listed = recorded_conversations(path)
    source = recorded(path, listed[0].id)
    assert "were read as unknown: recall_ms" in source.not_shown
    # In a process of its own: a command of an earlier test has this said on stderr.
    code = "import sys, memreplay\nwith memreplay.open(sys.argv[1]) as opened: assert opened.results.questions"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "RuntimeWarning" in done.stderr and "were read as unknown" in done.stderr, done
