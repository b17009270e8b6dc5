"""The screen needs a terminal, and says so where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from memreplay.paths import demo_recording


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memreplay", *arguments],
        cwd=Path(__file__).resolve().parent.parent.parent,
        capture_output=True,
        text=True,
        env={"PATH": "", "HOME": "/nonexistent", **environment},
        stdin=subprocess.DEVNULL,
    )


def test_without_a_terminal_it_says_so_and_does_not_stay() -> None:
    done = run("--recording", str(demo_recording()))
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_against_needs_a_recording_to_hold_it_against() -> None:
    assert "--batch" in run("--batch", "--against", "x.sqlite3").stderr
