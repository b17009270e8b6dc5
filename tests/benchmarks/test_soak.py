"""Thousands of short conversations in one batch: memory does not grow with their number."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from statistics import linear_regression

import pytest

from memory_backends.retrieval.embedding import CachedEmbedder
from memreplay.batch.recorded_run import RunPlan
from memreplay.cli.batch import BatchOptions, run_batch
from memreplay.llm.client import LiteLLMModel
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.recording import run_rows
from memreplay.settings import read_settings
from tests.benchmarks.look import memory

CONVERSATIONS = int(os.environ.get("MEMREPLAY_BENCH_SOAK", "2000"))
TEXTS = 50
"""Conversations repeat after so many: it is not the embedder that is tried here."""

BACKENDS = ("hybrid", "rag", "full_context")
ASKS_A_CONVERSATION = len(BACKENDS) + 1
"""Closed book is asked along."""

WARM = CONVERSATIONS // 4
"""Caches of limited size are full by then: they are made small."""

LEAST_FOR_A_SLOPE = 500
"""Fewer conversations do not fill the caches: they show only that the soak runs."""

MOST_KB_A_CONVERSATION = 4.0
"""What a run may keep of each conversation until its end, such as its name and the key of its row."""


def many(folder: Path, number: int = CONVERSATIONS) -> Path:
    """Conversations of four turns with a question each, as rows of LoCoMo-MC10."""
    path = folder / "many.jsonl"
    with path.open("w") as file:
        for place in range(number):
            about = place % TEXTS
            said = [
                ("user", f"[ANN]: My boat number {about} is called Petrel, and I live in Vic."),
                ("assistant", "[BEN]: A fine name. Where does it lie?"),
                ("user", f"[ANN]: In the harbour, at berth {about}. I moved there from Olot in May."),
                ("assistant", "[BEN]: I will come and see it on Sunday."),
            ]
            row = {
                "question_id": f"conv-{place}_q0",
                "question": f"Visitor {place} asks: at which berth does the boat number {about} lie?",
                "question_type": "single_hop",
                "answer": str(about),
                "correct_choice_index": 0,
                "num_choices": 10,
                "choices": [str(about + index) for index in range(10)],
                "num_sessions": 1,
                "haystack_session_ids": ["session_1"],
                "haystack_session_summaries": [""],
                "haystack_session_datetimes": ["2023-05-08T13:56:00"],
                "haystack_sessions": [[{"role": role, "content": text} for role, text in said]],
            }
            file.write(json.dumps(row) + "\n")
    return path


def test_memory_does_not_grow_with_the_number_of_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    resident: list[tuple[float, float]] = []

    async def at_once(self: LiteLLMModel, request: AnswerRequest) -> Reply:
        nonlocal asked
        asked += 1
        if asked % (CONVERSATIONS // 10) == 0:
            gc.collect()
            resident.append((asked / ASKS_A_CONVERSATION, memory()))
        return Reply(text="0")

    monkeypatch.setattr(LiteLLMModel, "answer", at_once)
    monkeypatch.setattr(run_rows, "_MOST_REMEMBERED", 500)
    monkeypatch.setattr(CachedEmbedder.__init__, "__defaults__", (1000,))
    settings = read_settings(
        backend=BACKENDS,
        model=("openai/stub",),
        api_base="http://127.0.0.1:1/v1",
        fresh=True,
        cache=False,
        # The memories are in the process that is measured.
        workers=1,
    )
    options = BatchOptions(
        datasets=(str(many(tmp_path)),),
        evidence=None,
        recording=tmp_path / "r.sqlite3",
        plan=RunPlan(perceive=False, resume=False, retry_errors=False),
        estimate=False,
        outputs=(),
        fail_under=None,
    )
    assert run_batch(settings, options) == 0
    assert asked == CONVERSATIONS * ASKS_A_CONVERSATION
    warm = [(number, megabytes) for number, megabytes in resident if number >= WARM]
    slope = 1000 * linear_regression(*zip(*warm, strict=True)).slope
    size = (tmp_path / "r.sqlite3").stat().st_size / CONVERSATIONS / 1000
    print(
        f"\n{CONVERSATIONS} conversations, {len(BACKENDS)} memories: {warm[0][1]:.0f} MB after {warm[0][0]:.0f},"
        f" {warm[-1][1]:.0f} MB at the end, {slope:.2f} KB a conversation; {size:.1f} KB of recording each"
    )
    assert slope <= MOST_KB_A_CONVERSATION or CONVERSATIONS < LEAST_FOR_A_SLOPE
