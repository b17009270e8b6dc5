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

from memreplay.recording.reader import Recording

REPOSITORY = Path(__file__).resolve().parents[2]
LONGEST = 120.0
"""Seconds that a program in a terminal of its own is waited for."""

_PAUSE = 0.01

SCRIPT = """
import asyncio, sys, threading
from pathlib import Path
from memreplay.tui import run_tui
from memreplay.tui.launch import Launch
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import conversation

class NeverWarm(StubAssembly):
    async def warm_up(self):
        await asyncio.to_thread(threading.Event().wait)

assembly = NeverWarm(("full_context",), Path(sys.argv[1]))
run_tui(Launch(
    datasets=lambda: [], load=lambda *_: [], recordings=lambda: [], assemble=lambda names, model: assembly,
    backends=("full_context",), all_backends=("full_context",), model="stub/table", conversation=conversation(),
))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_leaving_does_not_wait_for_a_thread_that_never_ends(tmp_path: Path) -> None:
    with _in_a_terminal(SCRIPT, str(tmp_path / "live.sqlite3")) as (terminal, process):
        terminal.wait_for(b"tiny-01")
        terminal.type(b"q")
        terminal.wait_for(b"\x1b[?1049l")
        assert terminal.code_of(process) == 0


CRASH = """
from memreplay.tui import run_tui
from memreplay.tui.launch import Launch
from memreplay.tui.screens.start import StartScreen

def broken(self):
    raise RuntimeError("out of order")

StartScreen.on_key = broken
run_tui(Launch(datasets=list, load=lambda specs, catalog: [], recordings=list, assemble=None, backends=("rag",),
               all_backends=("rag",), model="stub"))
"""


class _Terminal:
    """The side of a pseudo-terminal that a person sits at."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.at_first = termios.tcgetattr(side)
        self._written = b""

    def type(self, keys: bytes) -> None:
        os.write(self.side, keys)

    def wait_for(self, wanted: bytes) -> None:
        """Until the program has written this since what was last waited for; one reading may bring much at once."""
        deadline = monotonic() + LONGEST
        while wanted not in self._written:
            readable, _, _ = select.select([self.side], [], [], max(0.0, deadline - monotonic()))
            assert readable, f"{wanted!r} never came after {self._written!r}"
            self._written += self._read()
        self._written = self._written.partition(wanted)[2]

    def _read(self) -> bytes:
        # Linux says EIO, others nothing more, once the program has closed its side.
        with suppress(OSError):
            if read := os.read(self.side, 65536):
                return read
        raise AssertionError(f"the program closed the terminal after {self._written!r}")

    def code_of(self, process: subprocess.Popen[bytes]) -> int:
        """The exit code. Until then all is read: who writes to a terminal that nobody reads never ends."""
        deadline = monotonic() + LONGEST
        while process.poll() is None:
            assert monotonic() < deadline, f"it did not end after {self._written!r}"
            if select.select([self.side], [], [], _PAUSE)[0]:
                with suppress(OSError):
                    self._written += os.read(self.side, 65536)
        return process.returncode

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.side)


@contextmanager
def _in_a_terminal(*program: str) -> Iterator[tuple[_Terminal, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    terminal = _Terminal(ours)
    process = subprocess.Popen(
        [sys.executable, "-c", *program],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=REPOSITORY,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
    )
    os.close(theirs)
    try:
        yield terminal, process
    finally:
        process.kill()
        process.wait()
        terminal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT],
    ids=["terminate", "hang up", "interrupt", "quit"],
)
def test_ended_from_outside_a_run_is_interrupted_in_its_recording(tmp_path: Path, number: signal.Signals) -> None:
    recording = tmp_path / "live.sqlite3"
    with _in_a_terminal(SCRIPT, str(recording)) as (terminal, process):
        terminal.wait_for(b"tiny-01")
        terminal.type(b".")
        terminal.wait_for(b"turn 1/")
        process.send_signal(number)
        terminal.wait_for(b"\x1b[?1049l")
        terminal.wait_for(b"The interrupted run is saved:")
        assert terminal.code_of(process) == 130
    assert Recording.open(recording).run().status == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("signals", [[], [signal.SIGHUP]], ids=["no signal", "hang up"])
def test_a_terminal_that_is_closed_leaves_the_run_interrupted(
    tmp_path: Path, signals: list[signal.Signals]
) -> None:
    recording = tmp_path / "live.sqlite3"
    with _in_a_terminal(SCRIPT, str(recording)) as (terminal, process):
        terminal.wait_for(b"tiny-01")
        terminal.type(b".")
        terminal.wait_for(b"turn 1/")
        terminal.close()
        assert process.wait(timeout=LONGEST) == 130
    assert Recording.open(recording).run().status == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_after_a_crash_the_terminal_is_as_it_was() -> None:
    with _in_a_terminal(CRASH) as (terminal, process):
        terminal.wait_for(b"memreplay")
        terminal.type(b"z")
        terminal.wait_for(b"\x1b[?1049l")
        terminal.wait_for(b"out of order")
        assert b"locals" not in terminal._written and b"StartScreen(" not in terminal._written
        assert terminal.code_of(process) == 1
        assert termios.tcgetattr(terminal.side) == terminal.at_first
