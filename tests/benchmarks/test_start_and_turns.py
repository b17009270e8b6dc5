"""What a run costs before it does anything, and what it costs a turn: linear in the turns."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median

import pytest

from memreplay.conversations.export import as_test_conversation
from tests.benchmarks import synthetic
from tests.benchmarks.processes import memreplay, own_folders, took

STARTS = 3
QUESTIONS = 4
MOST_GROWTH = 1.3
"""Of the cost of a turn, from 4 to 16 times as many turns."""


def test_one_short_conversation_takes_little_beyond_its_start(tmp_path: Path) -> None:
    environment = own_folders(tmp_path)
    for backends in ((), ("full_context",), ("closed_book",)):
        options = ["--dataset", "identity-01", *(part for name in backends for part in ("--backend", name))]
        name = backends[0] if backends else "the three"
        runs = [
            took(memreplay(tmp_path / f"{name}-{number}", *options), environment, tmp_path / "log")
            for number in range(STARTS + 1)
        ][1:]
        cpu, wall = median(run.cpu for run in runs), median(run.wall for run in runs)
        load = os.getloadavg()[0]
        print(f"\n--batch of identity-01, warm, {name}: {cpu:.2f} s of CPU, {wall:.2f} s; load {load:.1f}")


def conversation_file(path: Path, turns: int) -> Path:
    """A synthetic conversation as a file of our own format."""
    made = synthetic.conversation(turns, QUESTIONS)
    path.write_text(json.dumps(as_test_conversation(made)))
    return path


@pytest.mark.parametrize(("backend", "once"), [("hybrid", 100), ("rag", 100), ("full_context", 1000)])
def test_the_cost_is_linear_in_the_turns(tmp_path: Path, backend: str, once: int) -> None:
    environment = own_folders(tmp_path)
    cpu = {}
    for turns in (2, once, 4 * once, 16 * once):
        path = conversation_file(tmp_path / f"turns-{turns}.json", turns)
        command = memreplay(tmp_path / f"run-{turns}", "--dataset", str(path), "--backend", backend, "--fresh")
        cpu[turns] = took(command, environment, tmp_path / "log").cpu
    start, *rest = cpu.values()
    each = [1000 * (total - start) / turns for turns, total in zip(list(cpu)[1:], rest, strict=True)]
    print(
        f"\n{backend}: {start:.1f} s to start, then a turn of {once}, {4 * once} and {16 * once}"
        f" {each[0]:.1f}, {each[1]:.1f} and {each[2]:.1f} ms of CPU; load {os.getloadavg()[0]:.1f}"
    )
    assert each[2] <= MOST_GROWTH * each[1]
