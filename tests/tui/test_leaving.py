"""The app in a terminal of its own: leaving it ends the process, whatever a thread is still at."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

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
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "live.sqlite3")],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=REPOSITORY,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
    )
    os.close(slave)
    try:
        _read_until(master, b"tiny-01")
        os.write(master, b"q")
        _read_until(master, b"\x1b[?1049l")
        assert process.wait(timeout=LONGEST) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _read_until(terminal: int, wanted: bytes) -> None:
    seen, deadline = b"", monotonic() + LONGEST
    while wanted not in seen:
        readable, _, _ = select.select([terminal], [], [], max(0.0, deadline - monotonic()))
        assert readable, f"{wanted!r} never came"
        seen += os.read(terminal, 65536)
