"""The bounds of the replay screen that depend on no screen: loading, seeking, memory and the size of a recording.

Three conversations: the shipped one of 400 turns, one of LoCoMo's where it is at hand, a synthetic one of 20,000.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.answering.model import Reply
from app.conversations.models import Conversation
from app.conversations.registry import load
from app.recording.recorder import RunRecorder
from app.replay.session import ReplayPlan, ReplaySession
from memory_backends.knowledge_store import QdrantConnection
from memory_backends.operating_memory import RedisConnection
from memory_backends.registry import Resources, create_backend
from tests.benchmarks import synthetic
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words

MOST_MEGABYTES_OF_MEMORY = 400
MOST_MEGABYTES_ON_DISK = 300
MOST_MS_A_SEEK = 33
MOST_MS_A_SEEK_AT_WORST = 80
MOST_RATIO_OF_FAR_TO_NEAR = 1.5

REPOSITORY = Path(__file__).resolve().parent.parent.parent
LOCOMO = REPOSITORY.parent / "shared" / "data" / "locomo"


def figures_of(path: Path, conversation_id: str) -> dict[str, float]:
    """What :mod:`tests.benchmarks.look` measures in a fresh process, printed as well."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.look", str(path), conversation_id],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    print(f"\n{conversation_id}: " + " · ".join(f"{name} {value:g}" for name, value in figures.items()))
    return figures


def check(figures: dict[str, float]) -> None:
    assert figures["size_mb"] < MOST_MEGABYTES_ON_DISK
    assert figures["all_mb"] < MOST_MEGABYTES_OF_MEMORY
    assert figures["ratio"] <= MOST_RATIO_OF_FAR_TO_NEAR
    for median in ("near_median_ms", "far_median_ms", "step_median_ms"):
        assert figures[median] <= MOST_MS_A_SEEK
    for worst in ("seek_p95_ms", "step_p95_ms"):
        assert figures[worst] <= MOST_MS_A_SEEK_AT_WORST


async def lived_through(conversation: Conversation, path: Path) -> Path:
    """A run by the real engine and the real memories, with the stub embedder."""
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
    )
    backends = {name: create_backend(name, resources, {}) for name in synthetic.BACKENDS}
    recorder = RunRecorder.start(path, {}, [conversation.dataset], "bench")
    recorder.add_conversation(conversation)
    answerer = ScriptedAnswerer(lambda prompt: Reply(text=prompt.split()[-1]), 4000)
    session = ReplaySession(conversation, backends, answerer, ReplayPlan("bench", ("m",)), recorder.record)
    await session.open()
    await session.play()
    for ask in session.asks():
        await session.ask(ask.question, ask.backend, ask.model)
    await session.close("resolved")
    recorder.finish("finished")
    return path


def first_of(names: list[str]) -> Conversation:
    return next(iter(load(names)))


def locomo() -> Conversation:
    files = sorted(LOCOMO.glob("*.json"))
    if not files:
        pytest.skip("no LoCoMo conversation is beside the project")
    return first_of([str(files[0])])


@pytest.mark.parametrize("conversation", [lambda: first_of(["edge-long"]), locomo], ids=["edge-long", "locomo"])
async def test_a_long_conversation_is_looked_at_within_the_bounds(
    conversation: Callable[[], Conversation], tmp_path: Path
) -> None:
    known = conversation()
    check(figures_of(await lived_through(known, tmp_path / "r.sqlite3"), known.id))


def test_twenty_thousand_turns_are_looked_at_within_the_bounds(tmp_path: Path) -> None:
    known = synthetic.conversation(20_000)
    recorder = RunRecorder.start(tmp_path / "r.sqlite3", {}, ["synthetic"], "bench")
    recorder.add_conversation(known)
    for event in synthetic.events(known):
        recorder.record(event)
    recorder.finish("finished")
    check(figures_of(recorder.path, known.id))
