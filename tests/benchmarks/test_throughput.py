"""How near a slow provider is kept to what it could do: 64 calls at once, one second each.

The bound is the lower of the ideal (64 a second) and of what LiteLLM alone sustains with as many calls at once.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memreplay.batch.recorded_run import RunPlan
from memreplay.cli.batch import BatchOptions, run_batch
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.settings import read_settings
from tests.conftest import REPOSITORY

CALLS_AT_ONCE = 64
LATENCY = 1.0
CALLS = 640
SHARE = 0.85


@contextmanager
def slow_server(told: dict[str, float]) -> Iterator[str]:
    """Its URL; at the end ``told`` holds what it counted."""
    command = [sys.executable, "-m", "tests.stubs.slow_server", "--latency", str(LATENCY)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        told.update(json.loads(process.communicate("")[0]))


def dataset(folder: Path) -> Path:
    """One conversation of a few turns with as many questions as there are calls."""
    rows = [
        {
            "question_id": f"conv-1_q{number}",
            "question": f"What is number {number}?",
            "question_type": "open_domain",
            "answer": "a0",
            "correct_choice_index": 0,
            "num_choices": 10,
            "choices": [f"a{index}" for index in range(10)],
            "num_sessions": 1,
            "haystack_session_ids": ["session_1"],
            "haystack_session_summaries": [""],
            "haystack_session_datetimes": ["2023-05-08T13:56:00"],
            "haystack_sessions": [[{"role": "user", "content": "[ANN]: My kayak is red."}]],
        }
        for number in range(CALLS)
    ]
    path = folder / "many.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def litellm_alone(url: str) -> None:
    """The same number of calls with nothing around them."""
    litellm, gate = loaded_litellm(), asyncio.Semaphore(CALLS_AT_ONCE)

    async def call(number: int) -> None:
        async with gate:
            await litellm.acompletion(
                model="openai/stub",
                messages=[{"role": "user", "content": f"What is number {number}? " + "x" * 600}],
                api_base=url,
                api_key="none",
                max_tokens=10,
            )

    await asyncio.gather(*map(call, range(CALLS)))


def batch(url: str, folder: Path) -> int:
    """The calls as a run: prompts built, replies parsed, scored, recorded and written."""
    settings = read_settings(
        backend=("closed_book",), model=("openai/stub",), api_base=url, concurrency=CALLS_AT_ONCE
    )
    options = BatchOptions(
        datasets=(str(dataset(folder)),),
        evidence=None,
        recording=folder / "r.sqlite3",
        plan=RunPlan(perceive=False, resume=False, retry_errors=False),
        estimate=False,
        outputs=(str(folder / "r.json"),),
        fail_under=None,
    )
    return run_batch(settings, options)


def test_a_slow_provider_is_kept_busy(tmp_path: Path) -> None:
    alone: dict[str, float] = {}
    ours: dict[str, float] = {}
    with slow_server(alone) as url:
        started = time.process_time()
        asyncio.run(litellm_alone(url))
        alone_cpu = time.process_time() - started
    with slow_server(ours) as url:
        started = time.process_time()
        assert batch(url, tmp_path) == 0
        ours_cpu = time.process_time() - started
    rates = {name: CALLS / told["seconds"] for name, told in (("ours", ours), ("alone", alone))}
    ideal = CALLS_AT_ONCE / LATENCY
    print(
        f"\n{CALLS} calls, {CALLS_AT_ONCE} at once, {LATENCY:g} s each: {rates['ours']:.1f}/s"
        f" ({1000 * ours_cpu / CALLS:.1f} ms of CPU a call, recorded and scored);"
        f" LiteLLM alone {rates['alone']:.1f}/s ({1000 * alone_cpu / CALLS:.1f} ms); ideal {ideal:.1f}/s"
    )
    assert ours["prompts"] == ours["requests"] == CALLS
    assert rates["ours"] >= SHARE * min(rates["alone"], ideal)
