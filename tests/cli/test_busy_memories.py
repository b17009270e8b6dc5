"""A request to end is followed within a second, also while a memory keeps the process busy."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals
from threading import Thread
from urllib.request import Request, urlopen

import pytest

from memreplay.recording.reader import Recording
from tests.cli.conftest import RunCli
from tests.stubs.busy_memory import BUSY_WHILE, busy_marker
from tests.stubs.launcher import TIMEOUT_S, Launcher

MOST_SECONDS = 5.0
"""Of a machine under load; unloaded it is one."""

BUSY = "tests.stubs.busy_memory:Busy"


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "busy-while"
    path.touch()
    monkeypatch.setenv(BUSY_WHILE, str(path))
    yield path
    path.unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("signals", [(SIGTERM,), (SIGHUP,), (SIGINT, SIGINT)])
def test_a_signal_ends_a_run_whose_memory_is_busy_and_it_can_be_resumed(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path, busy: Path, signals: Sequence[Signals], workers: int
) -> None:
    recording = tmp_path / "r.sqlite3"
    options = ("--batch", "--dataset", "identity-01", "--backend", BUSY, "--recording", recording)
    run = launcher.start(tmp_path / "log", *options, "--workers", workers)
    run.wait_until(busy_marker(busy).exists)
    run.wait_until(busy_marker(busy).read_text)
    began = time.monotonic()
    for number in signals:
        run.signal(number)
        time.sleep(0.1)
    assert run.wait() == 130
    assert time.monotonic() - began < MOST_SECONDS
    assert "--resume" in run.said and "Traceback" not in run.said
    pid = int(busy_marker(busy).read_text())
    run.wait_until(lambda: not is_running(pid))
    busy.unlink()
    assert run_cli(*options, "--resume").code == 0
    assert Recording.open(recording).run().status == "finished"


@pytest.mark.parametrize("signals", [(SIGTERM,), (SIGTERM, SIGTERM), (SIGINT, SIGINT)])
def test_signals_end_a_server_whose_memory_is_busy(
    launcher: Launcher, tmp_path: Path, busy: Path, signals: Sequence[Signals]
) -> None:
    run = launcher.start(tmp_path / "log", "serve-backend", BUSY, "--port", 0)
    run.wait_until(lambda: "answers at " in run.said)
    address = run.said.split("answers at ")[1].split()[0]
    body = json.dumps({"history": "User: Hello.\nAI: Hello.\n", "message": "How are you?"}).encode()
    turn = Request(address, body, {"Content-Type": "application/json"})
    Thread(target=_ask, args=(turn,), daemon=True).start()
    run.wait_until(busy_marker(busy).exists)
    began = time.monotonic()
    for number in signals:
        run.signal(number)
        time.sleep(0.1)
    assert run.wait() == 130
    assert time.monotonic() - began < MOST_SECONDS
    assert "Traceback" not in run.said


def _ask(turn: Request) -> None:
    try:
        urlopen(turn, timeout=TIMEOUT_S).close()
    except OSError:
        return  # the server is ended in the middle of it
