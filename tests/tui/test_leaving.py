"""The app in a terminal of its own: leaving it ends the process, whatever a thread is still at."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest

from memreplay.recording.reader import Recording

REPOSITORY = Path(__file__).resolve().parents[2]
LONGEST = 120.0
"""Seconds that a program in a terminal of its own is waited for."""

_PAUSE = 0.01

HOST = """
import json, os, sys
import memreplay.tui.app, memreplay.tui.screens.regression, memreplay.tui.screens.replay
import tests.stubs.live_assembly, tests.tui.builder

for line in sys.stdin:
    terminal, program, *arguments = json.loads(line)
    opened = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
    if (pid := os.fork()) == 0:
        break
    os.close(opened)
    print(pid, flush=True)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    sys.exit()
for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
    os.dup2(opened, number)
    stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)
os.close(opened)
sys.argv = ["-c", *arguments]
exec(program, {"__name__": "__main__"})
"""
"""Imports what is slow to import, then forks a child for each program. A child ends as any Python does."""

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


class _Process:
    """A child of the host."""

    def __init__(self, host: subprocess.Popen[str]) -> None:
        assert host.stdout is not None
        self._ends = host.stdout
        self._pid = int(self._ends.readline())
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None and select.select([self._ends], [], [], 0)[0]:
            self._code = int(self._ends.readline())
        return self._code

    def wait(self) -> int:
        """The exit code; minus the signal where one ended it."""
        if self._code is None:
            assert select.select([self._ends], [], [], LONGEST)[0], "it did not end"
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self._pid, number)


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

    def code_of(self, process: _Process) -> int:
        """The exit code. Until then all is read: who writes to a terminal that nobody reads never ends."""
        deadline = monotonic() + LONGEST
        while process.poll() is None:
            assert monotonic() < deadline, f"it did not end after {self._written!r}"
            if select.select([self.side], [], [], _PAUSE)[0]:
                with suppress(OSError):
                    self._written += os.read(self.side, 65536)
        return process.wait()

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.side)


InATerminal = Callable[..., AbstractContextManager[tuple[_Terminal, _Process]]]


@pytest.fixture(scope="module")
def in_a_terminal() -> Iterator[InATerminal]:
    """Starts one program at a time in a terminal of its own."""
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    host = subprocess.Popen(
        [sys.executable, "-c", HOST],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment,
    )  # fmt: skip
    assert host.stdin is not None
    orders = host.stdin

    @contextmanager
    def started(*program: str) -> Iterator[tuple[_Terminal, _Process]]:
        ours, theirs = pty.openpty()
        terminal = _Terminal(ours)
        orders.write(json.dumps([os.ttyname(theirs), *program]) + "\n")
        orders.flush()
        process = _Process(host)
        os.close(theirs)
        try:
            yield terminal, process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            terminal.close()

    yield started
    host.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_leaving_does_not_wait_for_a_thread_that_never_ends(in_a_terminal: InATerminal, tmp_path: Path) -> None:
    with in_a_terminal(SCRIPT, str(tmp_path / "live.sqlite3")) as (terminal, process):
        terminal.wait_for(b"tiny-01")
        terminal.type(b"q")
        terminal.wait_for(b"\x1b[?1049l")
        assert terminal.code_of(process) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT],
    ids=["terminate", "hang up", "interrupt", "quit"],
)
def test_ended_from_outside_a_run_is_interrupted_in_its_recording(
    in_a_terminal: InATerminal, tmp_path: Path, number: signal.Signals
) -> None:
    recording = tmp_path / "live.sqlite3"
    with in_a_terminal(SCRIPT, str(recording)) as (terminal, process):
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
    in_a_terminal: InATerminal, tmp_path: Path, signals: list[signal.Signals]
) -> None:
    recording = tmp_path / "live.sqlite3"
    with in_a_terminal(SCRIPT, str(recording)) as (terminal, process):
        terminal.wait_for(b"tiny-01")
        terminal.type(b".")
        terminal.wait_for(b"turn 1/")
        terminal.close()
        assert process.wait() == 130
    assert Recording.open(recording).run().status == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_after_a_crash_the_terminal_is_as_it_was(in_a_terminal: InATerminal) -> None:
    with in_a_terminal(CRASH) as (terminal, process):
        terminal.wait_for(b"memreplay")
        terminal.type(b"z")
        terminal.wait_for(b"\x1b[?1049l")
        terminal.wait_for(b"out of order")
        assert b"locals" not in terminal._written and b"StartScreen(" not in terminal._written
        assert terminal.code_of(process) == 1
        assert termios.tcgetattr(terminal.side) == terminal.at_first
