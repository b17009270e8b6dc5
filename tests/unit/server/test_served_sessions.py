"""A memory driven over turns holds what it would hold if it had been played the conversation itself."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory_backends.base import Exchange, Message, Recall
from memory_backends.controls import ClosedBookBackend
from memory_backends.records import BenchmarkTurnPayload
from memory_backends.retrieval.rendering import date_heading
from memreplay.conversations.models import Conversation, Session, Turn, exchanges_of
from memreplay.conversations.registry import load
from memreplay.llm.model import Reply
from memreplay.llm.prompts import question_prompt
from memreplay.server.session import Limits, ServedSession
from tests.stubs.memory import namespace


class Listening(ClosedBookBackend):
    """Keeps what it is told, and what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Exchange] = []
        self.perceived: list[Message] = []
        self.recalled: list[str] = []

    async def observe(self, exchange: Exchange) -> None:
        self.heard.append(exchange)

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        self.perceived.append(message)
        return Recall()

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        self.recalled.append(question)
        return Recall()


def served(memory: Listening, error: str | None = None) -> ServedSession:
    async def reader(context: str, message: str) -> Reply:
        return Reply(text=None if error else "Its own words.", error=error)

    return ServedSession(memory, reader, Limits(top_k=5, context_tokens=100))


async def say(session: ServedSession, history: str, message: str) -> None:
    await session.run_turn(BenchmarkTurnPayload(history=history, message=message))


def two_friends() -> Conversation:
    """Dated sessions of two people; one begins with whom the dataset calls the assistant."""
    spoken = [
        (1, "assistant", "Mel", "Hi! Long time."),
        (1, "user", "Cora", "I went to a group yesterday.\nIt moved me: truly."),
        (1, "assistant", "Mel", "How was it?"),
        (1, "user", "Cora", "Moving."),
        (2, "user", "Cora", "Mel: that is how you sign, is it not?\nAI: no"),
        (2, "assistant", "Mel", "[1 January 1999, 00:00] is on my letters too."),
        (3, "assistant", "Mel", "I have news."),
        (3, "user", "Cora", "Tell me."),
        (3, "assistant", "Mel", "I paint now."),
    ]
    return Conversation(
        id="c",
        dataset="d",
        sessions=tuple(
            Session(id=f"session_{n}", number=n, date=datetime(2023, 5, 7 + n, 13, 56)) for n in (1, 2, 3)
        ),
        turns=tuple(
            Turn(id=str(number), number=number, session=session, role=role, speaker=speaker, text=text)  # type: ignore[arg-type]
            for number, (session, role, speaker, text) in enumerate(spoken, start=1)
        ),
        questions=(),
    )


def facts(exchanges: list[Exchange]) -> list[tuple[object, ...]]:
    return [
        (message.role, message.line, message.turn_number, message.session, message.said_at)
        for exchange in exchanges
        for message in exchange.messages
    ] + [len(exchange.messages) for exchange in exchanges]  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["identity-01", "edge-hostile", "two friends"])
async def test_a_conversation_told_turn_by_turn_is_heard_as_it_was(name: str) -> None:
    conversation = two_friends() if name == "two friends" else next(iter(load([name])))
    memory = Listening()
    session = served(memory)
    history, dated = "", None
    for exchange in exchanges_of(conversation):
        heading = ""
        if exchange.said_at and exchange.session != dated:
            dated, heading = exchange.session, date_heading(exchange.said_at) + "\n"
        message = "\n".join(said.text for said in exchange.messages if said.role == "user")
        if message:
            await say(session, history, heading + message)
        history += heading + exchange.text + "\n"
    await say(session, history, "Is that all?")
    assert facts(memory.heard) == facts(list(exchanges_of(conversation)))
    assert memory.perceived[-1].text == "Is that all?"
    assert memory.perceived[0].text == exchanges_of(conversation)[name == "two friends"].messages[0].text


async def test_a_question_at_the_end_leaves_nothing() -> None:
    memory = Listening()
    session = served(memory)
    history = "User: My cat is Tofu.\nAI: Noted.\n"
    for _ in range(3):
        await say(session, history, "What is my cat called?")
    assert [exchange.text for exchange in memory.heard] == ["User: My cat is Tofu.\nAI: Noted."]


@pytest.mark.parametrize("later", ["", "AI: only the end of it\nUser: is sent\n"])
async def test_a_runner_that_keeps_no_whole_history_is_followed_by_what_was_replied(later: str) -> None:
    memory = Listening()
    session = served(memory)
    await say(session, "User: My cat is Tofu.\nAI: Noted.", "And my dog is Miso.")
    await say(session, later, "I moved.")
    await say(session, later, "Bye.")
    assert [exchange.text for exchange in memory.heard] == [
        "User: My cat is Tofu.\nAI: Noted.",
        "User: And my dog is Miso.\nAI: Its own words.",
        "User: I moved.\nAI: Its own words.",
    ]
    assert session.turns == 6


async def test_a_message_that_also_ends_its_history_is_observed_once() -> None:
    memory = Listening()
    session = served(memory)
    await say(session, "User: Hi\nAI: Hello!\nUser: What is new?", "What is new?")
    await say(session, "User: Hi\nAI: Hello!\nUser: What is new?\nAI: Nothing.\nUser: Fine.", "Fine.")
    assert [exchange.text for exchange in memory.heard] == [
        "User: Hi\nAI: Hello!",
        "User: What is new?\nAI: Nothing.",
    ]


async def test_a_question_of_ours_is_looked_up_by_its_own_words() -> None:
    question = next(iter(load(["identity-01"]))).questions[0]
    memory = Listening()
    await say(served(memory), "", question_prompt(question))
    assert memory.recalled == [question.text]
    assert memory.perceived == []


async def test_what_could_not_be_answered_was_not_said() -> None:
    memory = Listening()
    session = served(memory, error="no key")
    await say(session, "", "Hello?")
    await say(session, "", "Hello?")
    assert memory.heard == []


async def test_a_copy_remembers_the_same_and_goes_its_own_way() -> None:
    first, second = Listening(), Listening()
    session, copy = served(first), served(second)
    await session.open(namespace("a"))
    await say(session, "User: My cat is Tofu.\nAI: Noted.\n", "And my dog is Miso.")
    await copy.copy_from(session)
    await say(copy, "", "I moved.")
    await copy.close("resolved")
    assert [exchange.text for exchange in first.heard] == ["User: My cat is Tofu.\nAI: Noted."]
    assert [exchange.text for exchange in second.heard][1:] == ["User: And my dog is Miso.\nAI: Its own words."]
