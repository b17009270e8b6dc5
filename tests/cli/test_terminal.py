"""The screen needs a terminal, and says so where there is none."""

from __future__ import annotations

import subprocess
import sys

from memreplay.paths import demo_recording
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY


def test_without_a_terminal_it_says_so_and_does_not_stay() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memreplay", "--recording", str(demo_recording())],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env={"PATH": "", "HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_against_needs_a_recording_to_hold_it_against(run_cli: RunCli) -> None:
    assert "--batch" in run_cli("--batch", "--against", "x.sqlite3").err
