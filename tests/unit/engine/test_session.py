"""The engine plays every turn to every memory, and everything it emits folds to what the stores hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest

from memory_backends.base import BackendError, Exchange, MemoryBackend, Recall, Snapshot
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import MemoryTrace
from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.conversations.registry import load
from memreplay.engine.events import (
    AnswerScored,
    BackendFailed,
    ConversationClosed,
    Observed,
    Perceived,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
)
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.timeline.timeline import Timeline
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words

NAMES = ("hybrid", "rag", "full_context")


@pytest.fixture
def conversation() -> Conversation:
    return next(iter(load(["identity-01"])))


def memories(*names: str) -> dict[str, MemoryBackend]:
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
    )
    return {name: create_backend(name, resources, {}) for name in names}


def session(
    conversation: Conversation,
    backends: dict[str, MemoryBackend],
    events: list[ReplayEvent],
    answerer: ScriptedAnswerer | None = None,
    perceive: bool = True,
) -> ReplaySession:
    plan = ReplayPlan(run_id="run", models=("m",), top_k=3, perceive=perceive)
    return ReplaySession(conversation, backends, answerer or ScriptedAnswerer(), plan, events.append)


async def test_the_events_fold_to_what_the_stores_hold_after_every_turn(conversation: Conversation) -> None:
    events: list[ReplayEvent] = []
    backends = memories(*NAMES)
    replay = session(conversation, backends, events)
    await replay.open()
    held: dict[tuple[str, int], Snapshot] = {}
    while await replay.step():
        for name, backend in backends.items():
            held[name, replay.position] = await backend.snapshot()
    timeline = Timeline(conversation, events)
    for (name, turn), snapshot in held.items():
        assert timeline.snapshot_at(name, turn) == snapshot, (name, turn)
    assert all(held[name, replay.position] != held[name, 1] for name in NAMES)


@pytest.mark.parametrize("status", ["resolved", "cancelled"])
async def test_closing_ends_the_event_in_the_shared_workspace(
    conversation: Conversation, status: Literal["resolved", "cancelled"]
) -> None:
    events: list[ReplayEvent] = []
    replay = session(conversation, memories("hybrid"), events)
    await replay.open()
    await replay.play()
    await replay.close(status)
    timeline = Timeline(conversation, events)
    end = len(conversation.turns) + 1
    (key,) = (key for key in timeline.state_keys("hybrid") if key.startswith("shared_state:"))
    assert timeline.state_at("hybrid", key, end - 1)["status"] == "active"
    assert timeline.state_at("hybrid", key, end)["status"] == status


async def test_a_user_turn_is_perceived_and_a_completed_exchange_observed(conversation: Conversation) -> None:
    events: list[ReplayEvent] = []
    replay = session(conversation, memories("rag"), events)
    await replay.open()
    while await replay.step():
        pass
    perceived = [event.turn for event in events if isinstance(event, Perceived)]
    observed = {event.turn: event.turns for event in events if isinstance(event, Observed)}
    assert perceived == [turn.number for turn in conversation.turns if turn.role == "user"]
    assert observed == {exchange.turn_number: exchange.turn_ids for exchange in exchanges_of(conversation)}


async def test_what_memory_gives_at_a_turn_was_said_before_it(conversation: Conversation) -> None:
    events: list[ReplayEvent] = []
    replay = session(conversation, memories(*NAMES), events)
    await replay.open()
    while await replay.step():
        pass
    perceived = [event for event in events if isinstance(event, Perceived)]
    assert any(event.hits for event in perceived)
    for event in perceived:
        for hit in event.hits:
            assert all(int(turn) < event.turn for turn in (*hit.turns, *hit.sources))


async def test_skipping_the_read_path_changes_no_answer(conversation: Conversation) -> None:
    asked: list[list[QuestionAsked]] = []
    for perceive in (True, False):
        events: list[ReplayEvent] = []
        replay = session(conversation, memories(*NAMES), events, perceive=perceive)
        await replay.open()
        while await replay.step():
            pass
        for ask in replay.asks():
            await replay.ask(ask.question, ask.backend, ask.model)
        asked.append([e.model_copy(update={"recall_ms": 0.0}) for e in events if isinstance(e, QuestionAsked)])
    assert asked[0] == asked[1]
    assert len(asked[0]) == len(NAMES) * len(conversation.questions)


async def test_asking_changes_no_memory_and_the_reply_comes_before_its_score(conversation: Conversation) -> None:
    events: list[ReplayEvent] = []
    backends = memories(*NAMES)
    replay = session(conversation, backends, events)
    await replay.open()
    await replay.play()
    before = {name: await backend.snapshot() for name, backend in backends.items()}
    for ask in replay.asks():
        start = len(events)
        scored = await replay.ask(ask.question, ask.backend, ask.model)
        kinds = [type(event) for event in events[start:] if event.kind != "store_operated"]
        assert kinds == [QuestionAsked, ReplyReceived, AnswerScored]
        assert scored is events[-1]
    assert before == {name: await backend.snapshot() for name, backend in backends.items()}


class Faltering(MemoryBackend):
    """A plugged-in memory that fails as it is told."""

    name = "faltering"

    def __init__(self, fails: Callable[[str], Exception | None]) -> None:
        self.trace = MemoryTrace()
        self._fails = fails
        self.observed = 0

    async def open(self, namespace: object) -> None:
        self._maybe("open")

    async def observe(self, exchange: Exchange) -> None:
        self._maybe("observe")
        self.observed += 1

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        self._maybe("recall")
        return Recall()

    async def snapshot(self) -> Snapshot:
        return Snapshot()

    def _maybe(self, phase: str) -> None:
        error = self._fails(phase)
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [BackendError("the disk is full"), ZeroDivisionError("by nothing")])
async def test_a_memory_that_fails_to_observe_is_out_and_the_others_go_on(
    conversation: Conversation, error: Exception
) -> None:
    events: list[ReplayEvent] = []
    answerer = ScriptedAnswerer()
    broken = Faltering(lambda phase: error if phase == "observe" else None)
    replay = session(conversation, {"faltering": broken, **memories("rag")}, events, answerer)
    await replay.open()
    await replay.play()
    failed = [event for event in events if isinstance(event, BackendFailed)]
    assert [(event.turn, event.phase) for event in failed] == [(2, "observe")]
    question = conversation.questions[0]
    lost = await replay.ask(question, "faltering", "m")
    found = await replay.ask(question, "rag", "m")
    assert (lost.score.outcome, lost.score.score) == ("error", None)
    assert found.score.outcome != "error"
    assert len(answerer.requests) == 1
    await replay.close("resolved")
    assert {event.backend for event in events if isinstance(event, ConversationClosed)} == {"faltering", "rag"}


async def test_a_recall_that_fails_is_an_error_of_that_question_alone(conversation: Conversation) -> None:
    events: list[ReplayEvent] = []
    failures = iter([BackendError("the server went away"), None])
    faltering = Faltering(lambda phase: next(failures) if phase == "recall" else None)
    replay = session(conversation, {"faltering": faltering}, events)
    await replay.open()
    await replay.play()
    first = await replay.ask(conversation.questions[0], "faltering", "m")
    second = await replay.ask(conversation.questions[0], "faltering", "m", repeat=1)
    assert first.score.outcome == "error"
    assert second.score.outcome != "error"
    assert faltering.observed == len(exchanges_of(conversation))


@pytest.mark.parametrize("name", NAMES)
async def test_each_model_is_given_what_it_would_be_given_if_it_were_asked_alone(
    conversation: Conversation, name: str
) -> None:
    counters: dict[str, Callable[[str], int]] = {"by words": count_words, "by letters": len}

    async def asked(*models: str) -> dict[tuple[str, str], QuestionAsked]:
        events: list[ReplayEvent] = []
        plan = ReplayPlan(run_id="run", models=models, perceive=False, counter_of=counters.__getitem__)
        played = ReplaySession(conversation, memories(name), ScriptedAnswerer(budget=400), plan, events.append)
        await played.open()
        await played.play()
        for question in conversation.questions[:3]:
            for model in models:
                await played.ask(question, name, model)
        await played.close("resolved")
        return {(e.model, e.question_id): e for e in events if isinstance(e, QuestionAsked)}

    together = await asked("by words", "by letters")
    for model, count in counters.items():
        alone = await asked(model)
        assert {key for key in together if key[0] == model} == set(alone)
        for key, event in alone.items():
            assert together[key].prompt == event.prompt
            assert together[key].context_tokens == event.context_tokens == count(context_of(event)) <= 400


def context_of(event: QuestionAsked) -> str:
    return event.prompt[0].segments[0]
