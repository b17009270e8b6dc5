"""What a run costs before it does anything, and what it costs a turn: linear in the turns."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median

import pytest

from memreplay.conversations.export import as_test_conversation
from tests.benchmarks import synthetic
from tests.benchmarks.processes import embedding_by_words, memreplay, own_folders, took

STARTS = 3
QUESTIONS = 4
ONCE = 1000
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


@pytest.mark.parametrize("backend", ["hybrid", "rag", "rag:keyword", "full_context"])
def test_the_cost_is_linear_in_the_turns(tmp_path: Path, backend: str) -> None:
    """Vectors of the texts are made of their words: what the model takes for a text depends on no other text."""
    environment = own_folders(tmp_path)
    cpu = {}
    for turns in (2, ONCE, 4 * ONCE, 16 * ONCE):
        path = conversation_file(tmp_path / f"turns-{turns}.json", turns)
        command = memreplay(tmp_path / f"run-{turns}", "--dataset", str(path), "--backend", backend, "--fresh")
        cpu[turns] = took(embedding_by_words(command), environment, tmp_path / "log").cpu
    start, *rest = cpu.values()
    each = [1000 * (total - start) / turns for turns, total in zip(list(cpu)[1:], rest, strict=True)]
    print(
        f"\n{backend}: {start:.1f} s to start, then a turn of {ONCE}, {4 * ONCE} and {16 * ONCE}"
        f" {each[0]:.2f}, {each[1]:.2f} and {each[2]:.2f} ms of CPU; load {os.getloadavg()[0]:.1f}"
    )
    assert each[2] <= MOST_GROWTH * each[1]
