"""A memory of somebody else's make lives on the screen as ours do."""

from __future__ import annotations

from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.registry import load
from memreplay.engine.events import ReplayEvent
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.timeline.timeline import Timeline
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words
from tests.unit.views.test_panels import panel_text

NOTEBOOK = "memory_backends.examples.notebook:NotebookMemory"
BARE = "tests.stubs.plugins:Bare"


async def test_its_state_and_what_it_retrieves_are_shown_turn_by_turn() -> None:
    conversation = next(iter(load(["identity-01"])))
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
    )
    memories = {name: create_backend(name, resources, {}) for name in (NOTEBOOK, BARE)}
    events: list[ReplayEvent] = []
    plan = ReplayPlan(run_id="run", models=("m",))
    session = ReplaySession(conversation, memories, ScriptedAnswerer(), plan, events.append)
    await session.open()
    await session.play()
    known = Timeline(conversation, events)
    first, third = conversation.turns[0].text[:30], conversation.turns[2].text[:30]
    assert first not in panel_text(known, NOTEBOOK, "stores", 1)
    assert first in panel_text(known, NOTEBOOK, "stores", 2)
    assert third not in panel_text(known, NOTEBOOK, "stores", 3)
    assert "+" in panel_text(known, NOTEBOOK, "stores", 4)
    assert first in panel_text(known, NOTEBOOK, "retrievals", 3)
    assert "2 turns so far" in panel_text(known, BARE, "stores", 2)
    assert "2 turns so far" not in panel_text(known, BARE, "stores", 4)
    assert "4 turns so far" in panel_text(known, BARE, "stores", 4)
