"""What questions cost here and with inspect_ai: the same questions, the same server, whole processes by turns.

Ours reads rows, ingests, asks through LiteLLM, scores, records and writes results; theirs asks, scores and logs.
Theirs is ``inspect eval`` with its OpenAI client and ``multiple_choice()``, without the log's copy for a viewer.
``INSPECT_PYTHON`` names a Python that has inspect_ai (``pip install inspect-ai openai``), which may be another
environment; without it only ours is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from string import ascii_uppercase

import pytest

from memreplay.conversations.registry import load
from memreplay.llm.catalogue import litellm_folder
from tests.benchmarks.processes import Took, memreplay, own_folders, questions_file, slow_server, took
from tests.conftest import REPOSITORY

INSPECT_PYTHON = os.environ.get("INSPECT_PYTHON", sys.executable)
AT_ONCE = 64
QUESTIONS = 845
ROUNDS = int(os.environ.get("MEMREPLAY_BENCH_ROUNDS", "2"))

SHARE_OF_IDEAL = 0.9


def has_inspect() -> bool:
    found = subprocess.run([INSPECT_PYTHON, "-c", "import inspect_ai"], capture_output=True)
    return found.returncode == 0


def prompts_of(rows: Path, to: Path, backend: str) -> Path:
    """Write the questions for inspect_ai: without a history, and also with all of it for ``full_context``.

    ``closed_book`` is asked along with every memory.
    """
    lines = []
    for conversation in load([str(rows)]):
        told = "\n".join(f"{turn.speaker}: {turn.text}" for turn in conversation.turns) + "\n\n"
        for context in (told, "") if backend == "full_context" else ("",):
            for question in conversation.questions:
                assert question.correct_index is not None
                target = ascii_uppercase[question.correct_index]
                asked = {"input": context + question.text, "choices": question.choices, "target": target}
                lines.append(json.dumps(asked) + "\n")
    to.write_text("".join(lines))
    return to


def our_command(folder: Path, rows: Path, backend: str, url: str) -> list[str]:
    options = ["--dataset", str(rows), "--backend", backend, "--model", "openai/stub", "--api-base", url]
    options += ["--concurrency", str(AT_ONCE), "--no-cache", "--context-tokens", "60000"]
    return memreplay(folder, *options)


def their_command(url: str, prompts: Path, folder: Path) -> list[str]:
    # The client would ask OpenAI's other API, which the server does not have.
    model = ["--model", "openai/stub", "--model-base-url", url, "-M", "responses_api=false"]
    at_once = ["--max-connections", str(AT_ONCE), "--max-samples", str(AT_ONCE)]
    options = ["--temperature", "0", "--max-tokens", "10", "--json", "--no-log-realtime"]
    task = Path(__file__).with_name("inspect_task.py").relative_to(REPOSITORY)
    inspect = [INSPECT_PYTHON, "-m", "inspect_ai", "eval", str(task), "-T", f"prompts={prompts}"]
    return [*inspect, *model, *at_once, *options, "--log-dir", str(folder / "logs")]


def their_environment(folder: Path) -> dict[str, str]:
    """It counts tokens with tables that it would fetch from a network."""
    tables = litellm_folder()
    assert tables is not None
    counting = {"TIKTOKEN_CACHE_DIR": str(tables / "litellm_core_utils" / "tokenizers")}
    return {"OPENAI_API_KEY": "none", **counting, **own_folders(folder)}


def by_turns(folder: Path, rows: Path, backend: str, url: str) -> tuple[list[Took], list[Took]]:
    """Ours and theirs, the warm-up runs left out."""
    prompts = prompts_of(rows, folder / "prompts.jsonl", backend)
    ours: list[Took] = []
    theirs: list[Took] = []
    beside = has_inspect()
    for number in range(ROUNDS + 1):
        command = our_command(folder / f"run-{number}", rows, backend, url)
        ours.append(took(command, own_folders(folder), folder / "log"))
        if beside:
            theirs.append(took(their_command(url, prompts, folder), their_environment(folder), folder / "log"))
            assert '"status": "success"' in (folder / "log").read_text()
    return ours[1:], theirs[1:]


def tell(title: str, ours: list[Took], theirs: list[Took]) -> None:
    """Print the medians of both and the ratios, measured pair by pair."""
    print(f"\n{title}; load {os.getloadavg()[0]:.1f}, median of {len(ours)}")
    if not theirs:
        print("  inspect_ai is not installed there; INSPECT_PYTHON names a Python that has it")
    for name, unit in (("cpu", "s"), ("wall", "s"), ("peak", "MB")):
        mine = [getattr(one, name) for one in ours]
        line = f"  {name:4} memreplay {median(mine):7.1f} {unit}"
        if theirs:
            other = [getattr(one, name) for one in theirs]
            ratio = median(a / b for a, b in zip(mine, other, strict=True))
            line += f", inspect_ai {median(other):7.1f} {unit}, ratio {ratio:.2f}"
        print(line)


@pytest.mark.parametrize(
    ("backend", "turns", "questions"), [("closed_book", 600, QUESTIONS), ("full_context", 600, 256)]
)
def test_questions_beside_inspect_ai(tmp_path: Path, backend: str, turns: int, questions: int) -> None:
    rows = questions_file(tmp_path / "many.jsonl", questions, turns)
    with slow_server(0.0, {}) as url:
        ours, theirs = by_turns(tmp_path, rows, backend, url)
    tell(f"{questions} questions to {backend}, {turns} turns, a server without latency", ours, theirs)


def test_a_slow_provider_is_kept_busy(tmp_path: Path) -> None:
    rows = questions_file(tmp_path / "many.jsonl", QUESTIONS)
    counted: dict[str, float] = {}
    with slow_server(1.0, counted) as url:
        ours = took(
            our_command(tmp_path / "run", rows, "closed_book", url), own_folders(tmp_path), tmp_path / "log"
        )
    theirs: list[Took] = []
    if has_inspect():
        prompts = prompts_of(rows, tmp_path / "prompts.jsonl", "closed_book")
        with slow_server(1.0, {}) as url:
            theirs.append(
                took(their_command(url, prompts, tmp_path), their_environment(tmp_path), tmp_path / "log")
            )
    tell(f"{QUESTIONS} calls of one second, {AT_ONCE} at once", [ours], theirs)
    ideal = -(-QUESTIONS // AT_ONCE)
    share = ideal / counted["seconds"]
    print(f"  from the first call to the last reply {counted['seconds']:.1f} s, {share:.0%} of the ideal {ideal} s")
    assert counted["prompts"] == counted["requests"] == QUESTIONS
    assert counted["most_under_way"] == AT_ONCE
    assert share >= SHARE_OF_IDEAL
