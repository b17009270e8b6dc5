"""The app in a terminal of its own: leaving it ends the process, whatever a thread is still at."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest

from app.recording.store import Recording

REPOSITORY = Path(__file__).resolve().parents[2]
LONGEST = 60.0

SCRIPT = """
import asyncio, sys, threading
from pathlib import Path
from app.tui import run_tui
from app.tui.launch import Launch
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import conversation

class NeverWarm(StubAssembly):
    async def warm_up(self):
        await asyncio.to_thread(threading.Event().wait)

assembly = NeverWarm(("full_context",), Path(sys.argv[1]))
run_tui(Launch(
    datasets=lambda: [], load=lambda spec: [], recordings=lambda: [], assemble=lambda names, model: assembly,
    backends=("full_context",), all_backends=("full_context",), model="stub/table", conversation=conversation(),
))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_leaving_does_not_wait_for_a_thread_that_never_ends(tmp_path: Path) -> None:
    with _in_a_terminal(SCRIPT, str(tmp_path / "live.sqlite3")) as (master, process):
        _read_until(master, b"tiny-01")
        os.write(master, b"q")
        _read_until(master, b"\x1b[?1049l")
        assert process.wait(timeout=LONGEST) == 0


CRASH = """
from app.tui import run_tui
from app.tui.launch import Launch
from app.tui.screens.start import StartScreen

def broken(self):
    raise RuntimeError("out of order")

StartScreen.on_key = broken
run_tui(Launch(datasets=list, load=lambda spec: [], recordings=list, assemble=None, backends=("rag",),
               all_backends=("rag",), model="stub"))
"""


@contextmanager
def _in_a_terminal(*program: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", *program],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=REPOSITORY,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
    )
    os.close(slave)
    try:
        yield master, process
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            os.close(master)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["terminate", "hang up"])
def test_ended_from_outside_a_run_is_interrupted_in_its_recording(tmp_path: Path, number: signal.Signals) -> None:
    recording = tmp_path / "live.sqlite3"
    with _in_a_terminal(SCRIPT, str(recording)) as (master, process):
        _read_until(master, b"tiny-01")
        os.write(master, b".")
        _read_until(master, b"turn 1/")
        process.send_signal(number)
        _read_until(master, b"\x1b[?1049l")
        assert process.wait(timeout=LONGEST) == 130
    assert Recording.open(recording).run().status == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_that_is_closed_leaves_the_run_interrupted(tmp_path: Path) -> None:
    recording = tmp_path / "live.sqlite3"
    with _in_a_terminal(SCRIPT, str(recording)) as (master, process):
        _read_until(master, b"tiny-01")
        os.write(master, b".")
        _read_until(master, b"turn 1/")
        os.close(master)
        process.send_signal(signal.SIGHUP)
        process.wait(timeout=LONGEST)
    assert Recording.open(recording).run().status == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_after_a_crash_the_terminal_is_as_it_was() -> None:
    with _in_a_terminal(CRASH) as (master, process):
        before = termios.tcgetattr(master)
        _read_until(master, b"memreplay")
        os.write(master, b"z")
        _read_until(master, b"\x1b[?1049l")
        _read_until(master, b"out of order")
        assert process.wait(timeout=LONGEST) == 1
        assert termios.tcgetattr(master) == before


def _read_until(terminal: int, wanted: bytes) -> None:
    seen, deadline = b"", monotonic() + LONGEST
    while wanted not in seen:
        readable, _, _ = select.select([terminal], [], [], max(0.0, deadline - monotonic()))
        assert readable, f"{wanted!r} never came"
        seen += os.read(terminal, 65536)
