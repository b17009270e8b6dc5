"""Commands as whole processes, with what the system says they took; a stub server in one of its own; questions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import REPOSITORY

OPTIONS = 10


@dataclass(frozen=True)
class Took:
    """``cpu`` is user and system time and ``wall`` the time from start to end, in seconds; ``peak`` is in MB."""

    cpu: float
    wall: float
    peak: float


_MEASURE = """
import json, resource, subprocess, sys
ended = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([ended, used.ru_utime + used.ru_stime, used.ru_maxrss], file)
"""
"""Runs a command from a small process: its peak counts what the process held that started it."""


def took(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Took:
    """Run a command to its end. Its output goes to ``log``, which is in the error if it fails."""
    figures = log.with_suffix(".used")
    started = time.perf_counter()
    with log.open("w") as output:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MEASURE, str(figures), *command],
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=True,
        )
    wall = time.perf_counter() - started
    ended, cpu, peak = json.loads(figures.read_text())
    assert ended == 0, log.read_text()[-2000:]
    return Took(cpu, wall, peak * (1 if sys.platform == "darwin" else 1024) / 1_000_000)


def memreplay(folder: Path, *options: str) -> list[str]:
    """A batch run that records and writes its results into a new folder."""
    folder.mkdir(parents=True)
    outputs = ["--recording", str(folder / "r.sqlite3"), "--output", str(folder / "r.json")]
    return [sys.executable, "-m", "memreplay", "--batch", *options, *outputs]


_BY_WORDS = """
import sys
from memory_backends.contract.trial import WordEmbedder
from memory_backends.retrieval import embedding
WordEmbedder.dimension = embedding.MiniLMEmbedder.dimension
embedding.MiniLMEmbedder = WordEmbedder
from memreplay.__main__ import main
sys.argv[0] = "memreplay"
main()
"""


def embedding_by_words(command: Sequence[str]) -> list[str]:
    """The same command with vectors that are made of a text's words, which takes no time beside the model."""
    python, _, _, *options = command
    return [python, "-c", _BY_WORDS, *options]


def own_folders(folder: Path) -> dict[str, str]:
    """An environment with caches and settings of its own, kept from one run to the next; compiled code is kept."""
    names = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
    return {name: str(folder / name) for name in names} | {"PYTHONDONTWRITEBYTECODE": ""}


@contextmanager
def slow_server(latency: float, told: dict[str, float]) -> Iterator[str]:
    """Its URL; at the end ``told`` holds what it counted."""
    command = [sys.executable, "-m", "tests.stubs.slow_server", "--latency", str(latency)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        told.update(json.loads(process.communicate("")[0]))


def questions_file(path: Path, questions: int, turns: int = 1) -> Path:
    """Rows of LoCoMo-MC10: one conversation with so many questions, each with ten options."""
    said = "My kayak is red, and the river was high on the day on which we took it to the lake again."
    session = [
        {"role": ("user", "assistant")[number % 2], "content": f"[{('ANN', 'BEN')[number % 2]}]: {said} {number}"}
        for number in range(turns)
    ]
    rows = (
        {
            "question_id": f"conv-1_q{number}",
            "question": f"What is number {number}?",
            "question_type": "open_domain",
            "answer": f"a{number % OPTIONS}",
            "correct_choice_index": number % OPTIONS,
            "num_choices": OPTIONS,
            "choices": [f"a{index}" for index in range(OPTIONS)],
            "num_sessions": 1,
            "haystack_session_ids": ["session_1"],
            "haystack_session_summaries": [""],
            "haystack_session_datetimes": ["2023-05-08T13:56:00"],
            "haystack_sessions": [session],
        }
        for number in range(questions)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
