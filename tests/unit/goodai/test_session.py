"""Where the agent really answers: memory is read, the model replies, memory hears, and every step is an event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from memory_backends.base import BackendError, Exchange, MemoryBackend, Namespace, Recall, Snapshot
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import MemoryTrace
from memreplay.conversations.models import Conversation, Session
from memreplay.engine.events import (
    AgentReplied,
    BackendFailed,
    ClockSet,
    ConversationClosed,
    MessageSaid,
    Observed,
    Perceived,
    ReplayEvent,
    TestBegan,
    TestScored,
    TestWaited,
)
from memreplay.engine.session import AskableSession
from memreplay.errors import UsageError
from memreplay.goodai.dataset import SIMULATED_START, RunConfig
from memreplay.goodai.interface import TestExample
from memreplay.goodai.session import AgentPlan, AgentSession, KnownReplies
from memreplay.goodai.sources import Benchmark
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.prompts import build_agent_request
from memreplay.timeline.timeline import Timeline
from tests.stubs.memory import TickingClock, WordEmbedder, count_words
from tests.unit.goodai.driving import Lines

CODE = ("The code is 7.", "What is the code?")


@dataclass
class ScriptedAgent:
    """A model that says what it is told to; it keeps what it was asked."""

    says: Callable[[str, str], Reply] = lambda context, message: Reply(text=f"ok: {message}")
    name: str = "stub"
    asked: list[tuple[str, str, datetime]] = field(default_factory=list)

    def request(self, message: str, context: str, now: datetime) -> AnswerRequest:
        self.asked.append((message, context, now))
        return build_agent_request(message, context, now, self.name, None)

    async def answer(self, request: AnswerRequest) -> Reply:
        message, context, _ = self.asked[-1]
        return self.says(context, message)

    def context_budget(self, message: str, limited_by_top_k: bool = True) -> int:
        return 2000


def from_memory(context: str, message: str) -> Reply:
    """Knows the code only where memory gives it."""
    return Reply(text="7" if message.startswith("What") and "code is 7" in context else "Noted.")


def memory(name: str) -> MemoryBackend:
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
    )
    return create_backend(name, resources, {})


def making(*datasets: Lines) -> Callable[[], Benchmark]:
    """Makes one test of each dataset, fresh every time."""

    def make() -> Benchmark:
        tests: list[TestExample] = []
        for dataset in datasets:
            tests += dataset.generate_examples(1)
        return Benchmark(RunConfig(), tuple(tests))

    return make


def session(
    events: list[ReplayEvent],
    backend: MemoryBackend,
    agent: ScriptedAgent,
    made: Callable[[], Benchmark],
    known: Sequence[ReplayEvent] = (),
) -> AgentSession:
    conversation = empty()
    plan = AgentPlan(run_id="run", benchmark=made, top_k=3)
    return AgentSession(conversation, {"memory": backend}, agent, plan, events.append, KnownReplies(known))


def empty() -> Conversation:
    first = Session(number=1, id="1", date=SIMULATED_START)
    return Conversation(id="run-of-tests", dataset="d", sessions=(first,), turns=(), questions=(), conversing=True)


async def played(name: str, agent: ScriptedAgent, *datasets: Lines) -> list[ReplayEvent]:
    events: list[ReplayEvent] = []
    one = session(events, memory(name), agent, making(*datasets))
    await one.open()
    await one.play()
    await one.close("resolved")
    return events


def of(events: Sequence[ReplayEvent], kind: type) -> list:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("name", ["hybrid", "rag", "full_context"])
async def test_what_memory_gives_decides_what_the_agent_says(name: str) -> None:
    events = await played(name, ScriptedAgent(from_memory), Lines(lines=CODE))
    (scored,) = of(events, TestScored)
    assert (scored.score, scored.max_score, scored.ungraded) == (1.0, 1, None)
    assert scored.responses == ("7",)
    assert (scored.backend, scored.model) == ("memory", "stub")


async def test_without_memory_the_same_agent_does_not_know() -> None:
    events = await played("closed_book", ScriptedAgent(from_memory), Lines(lines=CODE))
    assert of(events, TestScored)[0].score == 0.0


async def test_a_message_is_read_for_then_replied_to_then_heard() -> None:
    events = await played("rag", ScriptedAgent(), Lines(lines=CODE, waits=((0, 0, 0), (0, 0, 0))))
    kinds = [event.kind for event in events if event.kind not in ("store_operated", "background_work_settled")]
    exchange = ["message_said", "perceived", "agent_replied", "message_said", "observed"]
    begins = ["conversation_opened", "test_began"]
    assert kinds == [*begins, *exchange, *exchange, "test_scored", "conversation_closed"]
    assert [event.turn for event in of(events, MessageSaid)] == [1, 2, 3, 4]
    assert [event.part for event in of(events, MessageSaid)] == ["script", "reply", "question", "reply"]
    assert of(events, Observed)[0].turns == ("1", "2")
    assert of(events, ConversationClosed)[0].turn == 5


async def test_filler_is_heard_and_the_agent_is_not_asked() -> None:
    agent = ScriptedAgent()
    events = await played("rag", agent, Lines(lines=CODE, waits=((300, 0, 0), (0, 0, 0))))
    filler = [event for event in of(events, MessageSaid) if event.part == "filler"]
    supplied = [event for event in of(events, MessageSaid) if event.part == "supplied"]
    assert filler and len(filler) == len(supplied)
    assert not {event.turn for event in filler} & {event.turn for event in of(events, Perceived)}
    assert {event.turn for event in supplied} <= {event.turn for event in of(events, Observed)}
    assert [message for message, _, _ in agent.asked] == list(CODE)
    (waited,) = of(events, TestWaited)
    assert waited.tokens == 300


async def test_a_clock_jump_starts_a_session_and_the_agent_gets_the_time() -> None:
    agent = ScriptedAgent()
    events = await played("full_context", agent, Lines(lines=CODE, waits=((0, 7200, 0), (0, 0, 0))))
    (jump,) = of(events, ClockSet)
    assert (jump.after - jump.before).total_seconds() <= 7200 and jump.session == 2
    timeline = Timeline(empty(), events)
    assert [session.number for session in timeline.conversation.sessions] == [1, 2]
    assert [turn.session for turn in timeline.conversation.turns] == [1, 1, 2, 2]
    (_, _, first), (_, context, second) = agent.asked
    assert (second - first).total_seconds() >= 7200
    assert "1 January 2024, 09:00" in context


async def test_the_timeline_grows_into_the_conversation_and_folds_to_what_the_store_held() -> None:
    events: list[ReplayEvent] = []
    backend = memory("full_context")
    one = session(events, backend, ScriptedAgent(from_memory), making(Lines(lines=CODE)))
    await one.open()
    timeline, taken = Timeline(empty()), 0
    while await one.step():
        for event in events[taken:]:
            timeline.append(event)
        taken = len(events)
        assert timeline.conversation == one.conversation
        assert timeline.snapshot_at("memory", one.position) == await backend.snapshot()
    assert [turn.text for turn in timeline.conversation.turns][:1] == [CODE[0]]
    assert len(timeline.conversation.turns_by_id) == one.position == timeline.last_turn
    assert [event.kind for event in timeline.tests] == ["test_began", "test_scored"]


async def test_events_after_a_message_are_emitted_before_the_step_ends() -> None:
    events: list[ReplayEvent] = []
    one = session(events, memory("rag"), ScriptedAgent(), making(Lines(lines=CODE, waits=((0, 0, 0), (0, 0, 0)))))
    await one.open()
    assert isinstance(events[-1], TestBegan) and events[-1].turn == 0
    for _ in range(4):
        assert not one.finished
        await one.step()
    assert isinstance(events[-1], TestScored) and events[-1].turn == 4
    assert one.finished and not await one.step()


async def test_a_provider_that_fails_leaves_the_test_without_a_score_and_the_others_go_on() -> None:
    def failing(context: str, message: str) -> Reply:
        return Reply(text=None, error="down") if "7" in message else Reply(text="8")

    datasets = (Lines(lines=CODE), Lines(name="Other", lines=("It is 8.", "What is it?"), expected="8"))
    events = await played("rag", ScriptedAgent(failing), *datasets)
    scores = {event.dataset: event for event in of(events, TestScored)}
    assert scores["Other"].score == 1.0
    assert scores["Lines"].score is None and "down" in scores["Lines"].ungraded
    failed = [event for event in of(events, MessageSaid) if event.error]
    assert [(event.error, event.message.text) for event in failed] == [("down", "")]
    assert (str(failed[0].turn - 1),) in [event.turns for event in of(events, Observed)]


class Forgetful(MemoryBackend):
    """Recalls and has no read path of its own; it fails at its second exchange."""

    name = "forgetful"

    def __init__(self) -> None:
        self.trace = MemoryTrace()
        self.heard = 0

    async def open(self, namespace: Namespace) -> None:
        return

    async def observe(self, exchange: Exchange) -> None:
        self.heard += 1
        if self.heard > 1:
            raise BackendError("the disk is full")

    async def recall(self, question: str, limit: int, budget: int) -> Recall:
        return Recall(context="recalled", tokens=1)

    async def snapshot(self) -> Snapshot:
        return Snapshot()


async def test_a_memory_that_only_recalls_is_asked_for_that_and_one_that_failed_gives_nothing_more() -> None:
    events: list[ReplayEvent] = []
    agent = ScriptedAgent()
    lines = Lines(lines=("One 7.", "Two.", "Three?"), waits=((0, 0, 0),) * 3)
    one = session(events, Forgetful(), agent, making(lines))
    await one.open()
    await one.play()
    assert [(message, context) for message, context, _ in agent.asked] == [
        ("One 7.", "recalled"),
        ("Two.", "recalled"),
    ]
    (failure,) = of(events, BackendFailed)
    assert (failure.phase, failure.turn) == ("observe", 4)
    last = of(events, AgentReplied)[-1]
    assert last.prompt == () and last.reply.error == "memory failed at turn 4 (observe): the disk is full"
    assert of(events, TestScored)[0].score is None


async def test_what_was_paid_for_is_not_asked_again_and_the_rest_comes_out_the_same() -> None:
    first, second = ScriptedAgent(from_memory), ScriptedAgent(from_memory)
    whole = await played("rag", first, Lines(lines=CODE), Lines(name="More", lines=CODE))
    replies = of(whole, AgentReplied)
    events: list[ReplayEvent] = []
    made = making(Lines(lines=CODE), Lines(name="More", lines=CODE))
    one = session(events, memory("rag"), second, made, known=replies[:2])
    await one.open()
    await one.play()
    assert [message for message, _, _ in second.asked] == [message for message, _, _ in first.asked][2:]
    again = [event.model_copy(update={"ms": 0}) for event in of(events, MessageSaid) + of(events, TestScored)]
    assert again == of(whole, MessageSaid) + of(whole, TestScored)
    assert of(events, AgentReplied) == replies[2:]


async def test_replies_to_other_tests_are_not_taken_for_those_of_these() -> None:
    known = of(await played("rag", ScriptedAgent(), Lines(lines=("Another 7.", "What?"))), AgentReplied)
    one = session([], memory("rag"), ScriptedAgent(), making(Lines(lines=CODE)), known=known)
    await one.open()
    with pytest.raises(UsageError, match="another message at turn 2"):
        await one.play()


async def test_the_log_that_full_context_gives_is_not_recorded_again_in_every_prompt() -> None:
    agent = ScriptedAgent()
    events = await played("full_context", agent, Lines(lines=CODE, waits=((0, 0, 0), (0, 0, 0))))
    assert "The code is 7." in agent.asked[-1][1]
    prompt = of(events, AgentReplied)[-1].prompt
    assert "" in prompt[0].segments and "The code is 7." not in prompt[0].content
    assert prompt[-1].content == CODE[1]


async def test_nothing_but_the_tests_may_ask() -> None:
    one = session([], memory("rag"), ScriptedAgent(), making(Lines(lines=CODE)))
    assert not isinstance(one, AskableSession)
