"""Recordings in folders that may be read and not written, as another user's are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import SMALL_DEMO

_MAY_READ_ALONE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""Takes from root what lets it write everywhere."""

pytestmark = pytest.mark.skipif(
    bool(_MAY_READ_ALONE) and shutil.which("setpriv") is None, reason="root may write everywhere"
)


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Path]:
    """The demo, without its stored scores, in a folder that a test makes read-only."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    path = Path(shutil.copy(SMALL_DEMO, folder / "r.sqlite3"))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("delete from scores")
    yield path
    folder.chmod(0o755)


def _memreplay(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*_MAY_READ_ALONE, sys.executable, "-m", "memreplay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_results_go_elsewhere_and_what_cannot_be_kept_is_said(recording: Path, tmp_path: Path) -> None:
    recording.parent.chmod(0o555)
    refused = _memreplay("report", recording)
    assert (
        refused.returncode == 2 and "the results cannot stand beside the recording; use --output" in refused.stderr
    )
    written = _memreplay("report", recording, "--output", tmp_path / "results.json")
    assert written.returncode == 0 and "full_context" in written.stdout and (tmp_path / "results.json").exists()
    assert "the scores are not stored in the recording" in written.stderr


def test_what_stands_in_a_log_that_cannot_be_read_is_not_left_out(recording: Path) -> None:
    with closing(sqlite3.connect(recording, isolation_level=None)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("update runs set finished_at = null")
        copy = recording.with_name("copy.sqlite3")
        for ending in ("", "-wal"):
            shutil.copy(f"{recording}{ending}", f"{copy}{ending}")
    recording.parent.chmod(0o555)
    refused = _memreplay("recordings", "show", copy)
    assert refused.returncode == 2 and not refused.stdout
    assert "what was recorded last is in copy.sqlite3-wal" in refused.stderr


def test_a_folder_that_may_not_be_entered_is_one_sentence(recording: Path) -> None:
    recording.parent.chmod(0o444)
    refused = _memreplay("recordings", "show", recording)
    assert (refused.returncode, refused.stderr) == (2, f"memreplay: {recording}: Permission denied\n")
