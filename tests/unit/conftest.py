"""A real run of a shipped conversation, played once: three memories that hold little, and every question asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory_backends.base import MemoryBackend
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.engine.events import ReplayEvent
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.llm.model import Reply
from memreplay.recording.reader import Recording
from memreplay.recording.writer import RunRecorder
from memreplay.timeline.timeline import Timeline
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words

NAMES = ("hybrid", "rag", "full_context")
PLAN = ReplayPlan(run_id="run", models=("m",), top_k=3)
BUDGET = 300


def memory(name: str) -> MemoryBackend:
    """A memory of its own stores."""
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
    )
    return create_backend(name, resources, {})


def answerer() -> ScriptedAnswerer:
    """Answers with the question's last word, whatever it is: most answers are wrong."""
    return ScriptedAnswerer(lambda prompt: Reply(text=prompt.split()[-1]), BUDGET)


@dataclass(frozen=True)
class Played:
    """A conversation and everything that happened in its replay."""

    conversation: Conversation
    events: tuple[ReplayEvent, ...]

    def timeline(self) -> Timeline:
        """All of it, in memory."""
        return Timeline(self.conversation, self.events)

    def recorded(self, path: Path) -> Timeline:
        """All of it, read back from a recording."""
        recorder = RunRecorder.start(path, {}, ["identity-01"], "fixed")
        recorder.add_conversation(self.conversation)
        for event in self.events:
            recorder.record(event)
        recorder.finish("finished")
        return Recording.open(path).timeline(recorder.run_id, self.conversation.id)


async def play(conversation: Conversation, emit: list[ReplayEvent], names: Sequence[str] = NAMES) -> None:
    """Everything a run does."""
    session = ReplaySession(conversation, {name: memory(name) for name in names}, answerer(), PLAN, emit.append)
    await session.open()
    await session.play()
    for ask in session.asks():
        await session.ask(ask.question, ask.backend, ask.model)
    await session.close("resolved")


@pytest.fixture(scope="session")
def played() -> Played:
    events: list[ReplayEvent] = []
    conversation = next(iter(load(["identity-01"])))
    asyncio.run(play(conversation, events))
    return Played(conversation, tuple(events))


@pytest.fixture(scope="session")
def timeline(played: Played) -> Timeline:
    """The run in memory. Nothing may be appended to it."""
    return played.timeline()
