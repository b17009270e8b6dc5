"""What a worker returns of a conversation is recorded as if memories here had done it."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.engine.events import ConversationClosed, ReplayEvent
from memreplay.engine.play import Played, play
from memreplay.engine.session import ReplaySession
from memreplay.runtime.elsewhere import Assignment, play_elsewhere, settings_for_workers, versions
from memreplay.runtime.run import Run
from memreplay.settings import Settings

MEMORIES = ("hybrid", "full_context")
SETTINGS = Settings(backend=MEMORIES, fresh=True)


@pytest.fixture
def conversation() -> Conversation:
    return next(iter(load(["identity-01"])))


def session_of(
    conversation: Conversation, emit: Callable[[ReplayEvent], None], played: Played | None, *, perceive: bool
) -> ReplaySession:
    run = Run(SETTINGS, Path(), run_id="run")
    memories = run.backends_for(conversation, MEMORIES)
    plan = run.plan("run", memories, perceive=perceive)
    elsewhere = played.memories if played is not None else None
    return ReplaySession(conversation, memories, run.answerer(run.answer_model), plan, emit, played=elsewhere)


async def events_of(conversation: Conversation, played: Played | None, *, perceive: bool) -> list[dict[str, Any]]:
    """The events of a session, without times and what depends on them."""
    events: list[ReplayEvent] = []
    session = session_of(conversation, events.append, played, perceive=perceive)

    async def embed_ahead(stretch: int) -> None:
        """Memories embed as they go."""

    await play(session, embed_ahead, lambda: False)
    for ask in session.asks():
        await session.ask(ask.question, ask.backend, ask.model)
    await session.close("resolved")
    return [event.model_dump(include={"kind", "turn", "backend", "hits", "prompt", "score"}) for event in events]


def played_elsewhere(conversation: Conversation, *, perceive: bool) -> Played:
    asks = session_of(conversation, lambda event: None, None, perceive=perceive).asks()
    known = versions(MEMORIES)
    work = Assignment(conversation, MEMORIES, tuple(asks), settings_for_workers(SETTINGS), "run", perceive, known)
    played: Played = pickle.loads(pickle.dumps(play_elsewhere(pickle.loads(pickle.dumps(work)))))
    return played


@pytest.mark.parametrize("perceive", [True, False])
def test_events_are_those_of_memories_here_and_in_their_order(conversation: Conversation, perceive: bool) -> None:
    here = asyncio.run(events_of(conversation, None, perceive=perceive))
    played = played_elsewhere(conversation, perceive=perceive)
    assert asyncio.run(events_of(conversation, played, perceive=perceive)) == here


def test_a_conversation_that_is_abandoned_is_closed_as_such(conversation: Conversation) -> None:
    played = played_elsewhere(conversation, perceive=False)
    events: list[ReplayEvent] = []
    session = session_of(conversation, events.append, played, perceive=False)
    asyncio.run(session.close("cancelled"))
    assert [(type(event), event.status) for event in events if isinstance(event, ConversationClosed)] == [
        (ConversationClosed, "cancelled")
    ] * 2


def test_memories_whose_workers_were_lost_have_failed(conversation: Conversation) -> None:
    lost = Played.failed(conversation, MEMORIES, "lost")
    found = asyncio.run(events_of(conversation, lost, perceive=False))
    kinds = [event["kind"] for event in found if event["turn"] == 0]
    assert kinds == ["backend_failed", "conversation_opened"] * 2
    outcomes = {event["score"]["outcome"] for event in found if event["kind"] == "answer_scored"}
    assert outcomes == {"error"}
