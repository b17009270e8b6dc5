"""Files that are not what they should be: one clear sentence, and nothing of the user's is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, RunCli
from tests.conftest import REPOSITORY, SMALL_DEMO
from tests.stubs.launcher import Launcher

_BATCH = ("--batch", "--dataset", "identity-01", "--backend", "closed_book")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return Path(shutil.copy(SMALL_DEMO, tmp_path / "run.json"))


def refused(ran: Ran, *words: str) -> None:
    assert ran.code == 2, ran
    assert ran.out == ""
    assert ran.err.count("\n") == 1 and all(word in ran.err for word in words), ran.err


def test_results_never_overwrite_the_recording_that_they_are_of(run_cli: RunCli, recording: Path) -> None:
    before = recording.read_bytes()
    link = recording.with_name("link.json")
    link.symlink_to(recording)
    for output in (recording, link, recording.parent / "." / "run.json"):
        refused(run_cli("report", recording, "--output", output), str(recording), "overwrite")
    assert recording.read_bytes() == before


def test_results_never_overwrite_a_recording_that_is_still_to_be_made(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    refused(run_cli(*_BATCH, "--recording", path, "--output", path), "overwrite")
    assert not path.exists()


def test_results_never_overwrite_what_is_asked_about(run_cli: RunCli, tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    assert run_cli("datasets", "export", "identity-01", "--output", own).code == 0
    before = own.read_bytes()
    recording = tmp_path / "r.sqlite3"
    refused(run_cli("--batch", "--dataset", own, "--recording", recording, "--output", own), "overwrite")
    assert own.read_bytes() == before and not recording.exists()


def test_a_comparison_never_overwrites_what_it_compares(run_cli: RunCli, recording: Path) -> None:
    refused(run_cli("compare", recording, recording, "--output", recording), "overwrite")


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _circle(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("make", [Path.mkdir, _fifo, _circle])
def test_an_output_that_is_no_file_is_refused_and_left_alone(
    run_cli: RunCli, recording: Path, make: Callable[[Path], None]
) -> None:
    output = recording.with_name("out.json")
    make(output)
    kind = output.lstat().st_mode
    refused(run_cli("report", recording, "--output", output), str(output), "not a file")
    assert output.lstat().st_mode == kind


def test_a_name_that_is_too_long_is_refused(run_cli: RunCli, recording: Path) -> None:
    refused(run_cli("report", recording, "--output", recording.with_name("x" * 250 + ".json")), "too long")


def test_a_link_is_written_through(run_cli: RunCli, recording: Path) -> None:
    link, real = recording.with_name("latest.json"), recording.with_name("real.json")
    link.symlink_to(real)
    assert run_cli("report", recording, "--output", link).code == 0
    assert link.is_symlink() and real.read_text().startswith("{")


@pytest.mark.parametrize("make", [Path.mkdir, _fifo])
def test_a_recording_that_is_no_file_is_refused(
    run_cli: RunCli, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "r.sqlite3"
    make(path)
    refused(run_cli("report", path), str(path), "not a file")
    refused(run_cli(*_BATCH, "--recording", path), str(path), "not a file")
    refused(run_cli(*_BATCH, "--recording", ""), "not a file")


def _without_a_table(db: sqlite3.Connection) -> None:
    db.execute("drop table events")


def _with_settings_cut_short(db: sqlite3.Connection) -> None:
    db.execute("update runs set settings = '{'")


def _with_a_score_of_another_shape(db: sqlite3.Connection) -> None:
    db.execute("update events set body = '{}' where kind = 'answer_scored'")


def _with_a_conversation_of_another_shape(db: sqlite3.Connection) -> None:
    db.execute("update conversations set body = '[]'")


@pytest.mark.parametrize(
    "damage",
    [
        _without_a_table,
        _with_settings_cut_short,
        _with_a_score_of_another_shape,
        _with_a_conversation_of_another_shape,
    ],
)
def test_a_damaged_recording_is_reported_in_one_sentence(
    run_cli: RunCli, recording: Path, damage: Callable[[sqlite3.Connection], None]
) -> None:
    db = sqlite3.connect(recording)
    damage(db)
    db.commit()
    db.close()
    for command in (
        ("report", recording, "--output", recording.with_name("out.json")),
        ("compare", recording, recording),
    ):
        refused(run_cli(*command), str(recording), "damaged")
    assert run_cli("recordings", "show", recording).code == 2
    assert not recording.with_name("out.json").exists()


def test_a_recording_with_bad_pages_is_reported_in_one_sentence(run_cli: RunCli, recording: Path) -> None:
    data = bytearray(recording.read_bytes())
    for start in range(8192, len(data), 4096):
        data[start : start + 64] = b"\xa5" * 64
    recording.write_bytes(data)
    refused(run_cli("report", recording), str(recording), "damaged")


@pytest.mark.parametrize("limit", ["2", "-0.1", "nan"])
def test_an_accuracy_that_nothing_can_be_below_is_refused(run_cli: RunCli, tmp_path: Path, limit: str) -> None:
    refused(run_cli(*_BATCH, "--recording", tmp_path / "r.sqlite3", "--fail-under", limit), "--fail-under")


def test_a_disk_that_is_full_leaves_no_half_written_results(recording: Path, launcher: Launcher) -> None:
    output = recording.with_name("out.json")
    output.write_text("of an earlier run")
    log = recording.with_name("log")
    assert launcher.run(log, "report", recording, "--output", output, largest_file=4096) == 5
    assert log.read_text() == f"memreplay: {output}: cannot be written: File too large\n"
    assert output.read_text() == "of an earlier run"
    assert sorted(path.name for path in recording.parent.iterdir()) == [
        "log",
        "out.json",
        "run.json",
    ]


@pytest.mark.parametrize("make", [_fifo, _circle])
def test_a_dataset_that_is_no_file_is_refused(
    run_cli: RunCli, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "talk.json"
    make(path)
    refused(run_cli(*_BATCH, "--dataset", path, "--recording", tmp_path / "r.sqlite3"), str(path), "neither a file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_standard_output_is_reported_in_one_sentence(tmp_path: Path, launcher: Launcher) -> None:
    log = tmp_path / "log"
    assert launcher.run(log, "datasets", "schema", streams={1: Path("/dev/full")}) == 5
    assert log.read_text() == "memreplay: standard output: No space left on device\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_read_enough_is_no_error(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "memreplay", "datasets", "schema"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_name_that_would_write_to_the_terminal_is_shown_escaped(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "a\n\x1b[31mb.json"
    path.write_text("{")
    refused(run_cli(*_BATCH, "--dataset", path, "--recording", tmp_path / "r.sqlite3"), "a\\n\\u001b[31mb.json")


def test_a_dataset_of_an_impossible_name_is_refused(run_cli: RunCli) -> None:
    refused(run_cli("validate", "x" * 300 + ".json"), "too long")


def test_what_the_encoding_of_the_terminal_lacks_is_shown_escaped(recording: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "memreplay", "report", recording, "--output", recording.with_name("out.md")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\\u2013" in ran.stdout
