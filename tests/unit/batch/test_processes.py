"""Processes that hold memories: how many by default, and what they do with what they are asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.errors import MissingServerOrKeyError
from memreplay.runtime.clusters import number_of_workers
from memreplay.runtime.processes import Processes
from memreplay.runtime.run import Run
from memreplay.settings import Settings
from tests.stubs.in_processes import fail_in_two_parts
from tests.stubs.launcher import TIMEOUT_S


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8), raising=False)
    return 8


@pytest.fixture
def long_ones() -> list[Conversation]:
    """Five conversations of 1,000 turns."""
    (made,) = load(["identity-01"])
    turns = (made.turns * (1000 // len(made.turns) + 1))[:1000]
    return [made.model_copy(update={"id": str(number), "turns": turns}) for number in range(5)]


@pytest.mark.parametrize(
    ("change", "number"),
    [
        ({}, 4),
        ({"backend": ("rag",)}, 4),
        ({"backend": ("full_context",)}, 1),
        ({"workers": 7}, 7),
        ({"workers": 1}, 1),
        ({"embedder": "litellm:openai/text-embedding-3-small"}, 1),
        ({"reranker": "litellm:cohere/rerank-v3"}, 1),
        ({"backend": ("rag", "tests.stubs.noting_memory:Noting")}, 1),
        ({"backend": ("rag", "mem0")}, 1),
        ({"backend": ("graphiti",)}, 1),
    ],
)
def test_by_default_there_are_as_many_workers_as_memories_keep_busy(
    cores: int, long_ones: list[Conversation], change: dict[str, object], number: int
) -> None:
    assert number_of_workers(replace(Settings(), **change), long_ones) == number  # type: ignore[arg-type]


def test_by_default_there_are_no_more_workers_than_turns_and_cores_need(
    cores: int, long_ones: list[Conversation], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert number_of_workers(Settings(), long_ones[:1]) == 1
    assert number_of_workers(Settings(), list(load(["identity-*"]))) == 1
    assert number_of_workers(Settings(), ()) == 1
    thirty = list(load(["identity-*", "technical-*", "multi-*"]))
    assert number_of_workers(Settings(), thirty) == 2
    assert number_of_workers(replace(Settings(), backend=("rag",)), thirty) == 1
    for few, number in ((1, 1), (2, 2), (3, 3)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, few=few: range(few))
        assert number_of_workers(Settings(), long_ones) == number


async def test_a_process_that_ended_is_replaced_and_says_so_to_those_who_wait() -> None:
    processes = Processes(2, {"MARK": "of this test"})
    try:
        first, second = await processes.ncores()
        pids = await processes.run(os.getpid, workers=[first, second])
        assert len({os.getpid(), *pids.values()}) == 3
        assert (await processes.run(os.getenv, "MARK", workers=[first]))[first] == "of this test"
        with pytest.raises(OSError, match="the process has ended"):
            await processes.run(partial(os.kill, pids[first], signal.SIGKILL), workers=[first])
        replaced = await processes.ncores()
        assert second in replaced and first not in replaced and len(replaced) == 2
    finally:
        await processes.close()


async def test_what_is_printed_or_raised_in_a_process_disturbs_no_reply(capfd: pytest.CaptureFixture[str]) -> None:
    processes = Processes(1, {})
    try:
        (name,) = await processes.ncores()
        await processes.run(print, "printed there", workers=[name])
        with pytest.raises(ValueError, match="invalid literal"):
            await processes.run(int, "no number", workers=[name])
        with pytest.raises(TypeError, match="no other process can have the result"):
            await processes.run(threading.Lock, workers=[name])
        with pytest.raises(TypeError, match="no other process can have the result: one, two"):
            await processes.run(fail_in_two_parts, workers=[name])
        assert (await processes.run(signal.getsignal, signal.SIGINT, workers=[name]))[name] == signal.SIG_IGN
        assert (await processes.run(len, "x" * 3_000_000, workers=[name]))[name] == 3_000_000
    finally:
        await processes.close()
    printed = capfd.readouterr()
    assert "printed there" in printed.err and not printed.out


_RUN = """
import asyncio, os, signal
from memreplay.runtime.processes import Processes
from tests.stubs.in_processes import start_a_thread_that_waits

async def run():
    processes = Processes(1, {})
    (name,) = await processes.ncores()
    (pid,) = (await processes.run(start_a_thread_that_waits, workers=[name])).values()
    print(pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(run())
"""


def test_a_process_ends_with_a_run_that_is_killed_even_if_a_memory_waits_in_a_thread() -> None:
    path = os.pathsep.join(sys.path)
    killed = subprocess.run(
        [sys.executable, "-c", _RUN], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    pid = int(killed.stdout)
    given_up = time.monotonic() + TIMEOUT_S
    while Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < given_up, "it is still there"
        time.sleep(0.05)


async def test_processes_that_cannot_be_started_stop_only_a_run_that_named_a_number(
    cores: int, long_ones: list[Conversation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    warned: list[str] = []
    run = Run(Settings(backend=("rag",)), tmp_path / "r.sqlite3", warn=warned.append)
    async with run.with_workers(long_ones):
        assert not run.has_workers
    assert "no process can be started" in warned[0]
    named = Run(Settings(backend=("rag",), workers=2), tmp_path / "r.sqlite3")
    with pytest.raises(MissingServerOrKeyError, match="no process can be started for --workers"):
        async with named.with_workers(long_ones):
            pass
