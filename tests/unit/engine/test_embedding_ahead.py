"""Texts are embedded before they are needed: each once, and those of the next conversations in the meantime."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

import pytest

from memory_backends.registry import texts_to_embed
from memreplay.conversations.models import Conversation, Question, Session, Turn
from memreplay.engine.play import TURNS_PER_STRETCH, EmbeddingAhead, play, stretches_of
from memreplay.engine.session import ReplayPlan, ReplaySession
from tests.stubs.answering import ScriptedAnswerer

BACKENDS = ("hybrid", "rag")


def conversation(name: str, turns: int = 4, said: str = "") -> Conversation:
    return Conversation(
        id=name,
        dataset=name,
        sessions=(Session(number=1, id="1"),),
        turns=tuple(
            Turn(
                id=str(number),
                number=number,
                session=1,
                role="user" if number % 2 else "assistant",
                speaker=None,
                text=f"{said or name} says {number}." + " And more." * (number % 3),
            )
            for number in range(1, turns + 1)
        ),
        questions=(Question(id=f"{name}-q", kind="recall", type="t", text=f"What of {name}?", expected="x"),),
    )


def texts_of(conversation: Conversation) -> list[str]:
    said = (texts_to_embed(BACKENDS, stretch) for stretch in stretches_of(conversation))
    return [*chain.from_iterable(said), *(question.text for question in conversation.questions)]


class Embedder:
    """Notes what it embeds, and lets the caller decide when a call returns."""

    def __init__(self) -> None:
        self.calls: list[Sequence[str]] = []
        self.called = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def embed(self, texts: Sequence[str]) -> None:
        self.calls.append(texts)
        self.called.set()
        await self.may_go_on.wait()

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]


async def test_the_next_conversations_are_embedded_while_the_first_is_used() -> None:
    known = [conversation("ana"), conversation("ben"), conversation("cleo")]
    embedder = Embedder()
    ahead = EmbeddingAhead(known, BACKENDS, embedder.embed)
    await ahead.of(known[0])
    assert sorted(embedder.texts) == sorted(texts_of(known[0])), "the first waits for nothing else"
    for _ in range(10):
        await asyncio.sleep(0)
    assert {*embedder.texts} == {text for each in known for text in texts_of(each)}
    before = len(embedder.calls)
    await ahead.of(known[1])
    await ahead.of(known[2])
    assert len(embedder.calls) == before


async def test_each_text_of_a_pool_is_embedded_once_and_short_ones_first() -> None:
    known = [conversation("first"), conversation("a", 40, "same"), conversation("b", 40, "same")]
    embedder = Embedder()
    ahead = EmbeddingAhead(known, BACKENDS, embedder.embed)
    for each in known:
        await ahead.of(each)
    pooled = [text for call in embedder.calls[1:] for text in call]
    assert len(pooled) == len({*pooled}) and [*map(len, pooled)] == sorted(map(len, pooled))


async def test_what_will_not_be_ingested_is_not_embedded() -> None:
    known = [conversation("ana"), conversation("ben"), conversation("cleo")]
    embedder = Embedder()
    ahead = EmbeddingAhead(known, BACKENDS, embedder.embed, lambda each: each.id != "ben")
    for each in known:
        await ahead.of(each)
    assert any("cleo" in text for text in embedder.texts)
    assert not any("ben" in text for text in embedder.texts)


async def test_what_an_earlier_run_filled_is_not_embedded_again() -> None:
    known = [conversation("ana"), conversation("ben")]
    embedder = Embedder()
    ahead = EmbeddingAhead(
        known, BACKENDS, embedder.embed, filled=lambda each: BACKENDS if each.id == "ana" else BACKENDS[:1]
    )
    for each in known:
        await ahead.of(each)
    assert any("ben" in text for text in embedder.texts)
    assert not any("ana" in text for text in embedder.texts)


async def test_no_call_begins_once_the_run_stops() -> None:
    known = [conversation("ana", TURNS_PER_STRETCH)]
    embedder = Embedder()
    embedder.may_go_on.clear()
    ahead = EmbeddingAhead(known, BACKENDS, embedder.embed)
    waiting = asyncio.create_task(ahead.of(known[0]))
    await embedder.called.wait()
    ahead.stop()
    embedder.may_go_on.set()
    await waiting
    await ahead.end()
    assert len(embedder.calls) == 1


async def test_an_error_of_the_embedder_is_raised_to_whoever_needs_the_texts() -> None:
    async def refuse(texts: Sequence[str]) -> None:
        raise ValueError("refused")

    known = [conversation("ana"), conversation("ben")]
    ahead = EmbeddingAhead(known, BACKENDS, refuse)
    for each in known:
        with pytest.raises(ValueError, match="refused"):
            await ahead.of(each)
    await ahead.end()


async def test_of_a_long_conversation_one_stretch_is_embedded_ahead_of_the_one_that_is_used() -> None:
    known = [conversation("ana", 3 * TURNS_PER_STRETCH), conversation("ben")]
    embedder = Embedder()
    ahead = EmbeddingAhead(known, BACKENDS, embedder.embed)
    await ahead.of(known[0])
    assert not any(f"says {2 * TURNS_PER_STRETCH + 1}." in text for text in embedder.texts)
    for number in range(1, 3):
        await ahead.of(known[0], number)
        assert any(f"says {(number + 1) * TURNS_PER_STRETCH}." in text for text in embedder.texts)
    await ahead.of(known[1])
    assert {*embedder.texts} == {text for each in known for text in texts_of(each)}


def test_each_stretch_is_embedded_when_the_one_before_it_was_played():
    long = conversation("long", turns=2 * TURNS_PER_STRETCH + 2)
    plan = ReplayPlan(run_id="run", models=("scripted",), perceive=False)
    session = ReplaySession(long, {}, ScriptedAnswerer(), plan, lambda event: None)
    begun: list[tuple[int, int]] = []

    async def embed_ahead(number: int) -> None:
        begun.append((number, session.position))

    asyncio.run(play(session, embed_ahead, lambda: False))
    assert begun == [(0, 0), (1, TURNS_PER_STRETCH), (2, 2 * TURNS_PER_STRETCH)]
