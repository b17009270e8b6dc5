"""Recordings of long conversations: the shipped one, one of LoCoMo's where it is at hand, and one of any length."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.llm.model import Reply
from memreplay.recording.writer import RunRecorder
from tests.benchmarks import synthetic
from tests.conftest import SHARED_DATA
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words


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
    files = sorted((SHARED_DATA / "locomo").glob("*.json"))
    if not files:
        pytest.skip("no LoCoMo conversation is beside the project")
    return first_of([str(files[0])])


def edge_long() -> Conversation:
    return first_of(["edge-long"])


def made(turns: int, path: Path, questions: int | None = None) -> Path:
    """A run of a synthetic conversation; with ``questions`` its own are repeated until there are so many."""
    known = synthetic.conversation(turns)
    if questions is not None:
        own = known.questions
        asked = (own[place % len(own)].model_copy(update={"id": f"r{place}"}) for place in range(questions))
        known = known.model_copy(update={"questions": tuple(asked)})
    recorder = RunRecorder.start(path, {"model": ["stub"], "top_k": 10}, ["synthetic"], "bench")
    recorder.add_conversation(known)
    for event in synthetic.events(known):
        recorder.record(event)
    recorder.finish("finished")
    return path
