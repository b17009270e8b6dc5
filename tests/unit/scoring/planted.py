"""A short conversation with planted failures, played by the real engine to real memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_backends.base import MemoryBackend
from memory_backends.registry import create_backend
from memory_backends.resources import MemoryOptions, Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.models import Conversation, Question, Session, Turn
from memreplay.engine.events import ReplayEvent
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.llm.model import Reply
from memreplay.scoring.attribution import Attribution, Attributor
from memreplay.timeline.timeline import Answer, Timeline
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words

MODEL = "stub/model"
SAID = (
    "My favourite colour is blue.",
    "Noted.",
    "The kayak hangs in the old garage.",
    "A good place for it.",
    "Actually, my favourite colour is green.",
    "Green it is.",
    "It rained all of Tuesday.",
    "A pity.",
)
COLOUR = "What is my favourite colour?"


def question(text: str = COLOUR, **changes: Any) -> Question:
    """The favourite colour is green: turn 5 says so."""
    fields = {
        "id": "q",
        "kind": "recall",
        "type": "t",
        "text": text,
        "expected": "green",
        "evidence": ("5",),
        "evidence_role": "supports",
    }
    return Question.model_validate(fields | changes)


def conversation(*questions: Question) -> Conversation:
    """Eight turns of a user and an assistant, in one session without a date."""
    return talk(*SAID, questions=questions)


def talk(*said: str, questions: Sequence[Question] = ()) -> Conversation:
    """A conversation in which a user says the odd turns and an assistant the even ones."""
    turns = tuple(
        Turn(
            id=str(number),
            number=number,
            session=1,
            role="user" if number % 2 else "assistant",
            speaker=None,
            text=text,
        )
        for number, text in enumerate(said, start=1)
    )
    sessions = (Session(number=1, id="s"),)
    return Conversation(id="c", dataset="d", sessions=sessions, turns=turns, questions=tuple(questions))


def resources(options: MemoryOptions | None = None) -> Resources:
    """Embedded stores, and a clock and an embedder that give the same in every run."""
    return Resources(
        RedisConnection.embedded(),
        QdrantConnection.embedded(),
        WordEmbedder(),
        count_words,
        TickingClock(),
        options=options or MemoryOptions(),
    )


def real(*names: str) -> dict[str, MemoryBackend]:
    """Memories of ours, on embedded stores."""
    shared = resources()
    return {name: create_backend(name, shared, {COLOUR: ("5",)}) for name in names}


async def played(
    asked: Question,
    memories: Mapping[str, MemoryBackend],
    replies: Mapping[str, Reply],
    *,
    top_k: int = 10,
    budget: int = 1000,
    at: int | None = None,
    said: Sequence[str] = SAID,
) -> Timeline:
    """Plays ``at`` turns, or all, then asks every memory.

    Each is answered as ``replies`` says, else that it was not mentioned.
    """
    events: list[ReplayEvent] = []
    answerer = ScriptedAnswerer(budget=budget)
    plan = ReplayPlan(run_id="run", models=(MODEL,), top_k=top_k, perceive=False)
    session = ReplaySession(talk(*said, questions=[asked]), memories, answerer, plan, events.append)
    await session.open()
    for _ in range(len(said) if at is None else at):
        await session.step()
    for name in memories:
        answerer.answers = lambda prompt, name=name: replies.get(name, Reply(text="It was not mentioned."))
        await session.ask(asked, name, MODEL, by_hand=at is not None)
    return Timeline(session.conversation, events)


def answer_of(timeline: Timeline, backend: str) -> Answer:
    return next(answer for answer in timeline.answers() if answer.asked.backend == backend)


def attribution_of(timeline: Timeline, backend: str, suspects: Mapping[str, str] | None = None) -> Attribution:
    found = Attributor(timeline, suspects).attribute(answer_of(timeline, backend))
    assert found is not None
    return found


async def attributed(
    reply: Reply, backend: str, *more: str, asked: Question | None = None, **how: Any
) -> Attribution:
    """One memory of ours, asked and answered; ``more`` memories are played along and find nothing."""
    names: Sequence[str] = (backend, *more)
    timeline = await played(asked or question(), real(*names), {backend: reply}, **how)
    return attribution_of(timeline, backend)
