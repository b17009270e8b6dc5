"""An agent hears the conversation as a benchmark runner would tell it, and answers the questions by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.conversations.registry import load
from memreplay.engine.events import BackendFailed, QuestionAsked, ReplayEvent, ReplyReceived
from memreplay.engine.remote.addresses import AgentAddress
from memreplay.engine.remote.backend import AgentBackend, RemoteAgent
from memreplay.engine.remote.client import MAX_REPLY_BYTES, AgentClient
from memreplay.engine.remote.openai import agent_client
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.errors import UsageError
from memreplay.grading import RetrievalScore
from memreplay.llm import AGENT_MODEL
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.timeline.timeline import Timeline
from tests.stubs.agent import StubAgent, says, stub_agent
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.openai_server import OpenAIServer, answer


@pytest.fixture
def conversation() -> Conversation:
    return next(iter(load(["identity-01"])))


@pytest.fixture
async def agent() -> AsyncIterator[StubAgent]:
    async with stub_agent() as agent:
        yield agent


class Replay:
    """A conversation before an agent, with all that happens."""

    def __init__(self, conversation: Conversation, line: RemoteAgent, name: str = "agent") -> None:
        self.events: list[ReplayEvent] = []
        self.model = ScriptedAnswerer()
        backend = AgentBackend(name, line)
        plan = ReplayPlan(run_id="run", models=("m", "n"))
        self.session = ReplaySession(conversation, {name: backend}, self.model, plan, self.events.append)
        self.timeline = lambda: Timeline(conversation, self.events)

    async def play(self) -> None:
        await self.session.open()
        await self.session.play()

    async def ask_all(self) -> list[Any]:
        return [await self.session.ask(ask.question, ask.backend, ask.model) for ask in self.session.asks()]

    def replies(self) -> list[Any]:
        return [event.reply for event in self.events if isinstance(event, ReplyReceived)]


def line_to(agent: StubAgent, token: str | None = None, seconds: float = 60) -> RemoteAgent:
    return RemoteAgent(AgentClient(AgentAddress.read(agent.url), token, seconds))


async def test_every_user_turn_is_told_with_the_history_as_the_dataset_has_it(
    conversation: Conversation, agent: StubAgent
) -> None:
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    exchanges = exchanges_of(conversation)
    assert [turn["message"] for turn in agent.turns] == [exchange.messages[0].text for exchange in exchanges]
    said = [exchange.text + "\n" for exchange in exchanges]
    assert [turn["history"] for turn in agent.turns] == ["".join(said[:number]) for number in range(len(said))]
    assert all(set(turn) == {"history", "message"} for turn in agent.turns)
    await replay.session.close("resolved")


async def test_its_own_reply_is_scored_as_a_models_would_be_and_no_model_is_asked(
    conversation: Conversation, agent: StubAgent
) -> None:
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    question = conversation.questions[0]
    agent.behave = says(f"I think it is {question.expected}!")
    scored = await replay.ask_all()
    assert len(scored) == len(conversation.questions)
    assert scored[0].score.outcome == "correct"
    assert {score.model for score in scored} == {AGENT_MODEL}
    assert {score.retrieval for score in scored} == {RetrievalScore()}
    assert replay.model.requests == []
    asked = [event for event in replay.events if isinstance(event, QuestionAsked)]
    assert asked[0].prompt[0].content == agent.turns[-len(scored)]["message"]
    assert question.text in asked[0].prompt[0].content
    assert "Conversation History" not in asked[0].prompt[0].content


async def test_where_there_are_no_sessions_the_row_says_what_was_in_its_memory_already(
    conversation: Conversation, agent: StubAgent
) -> None:
    line = line_to(agent)
    first, second = Replay(conversation, line), Replay(conversation, line)
    for replay in (first, second):
        await replay.play()
        await replay.ask_all()
        await replay.session.close("resolved")
    count = len(conversation.questions)
    assert [reply.earlier_questions for reply in first.replies()] == list(range(count))
    assert [reply.earlier_questions for reply in second.replies()] == list(range(count, 2 * count))
    assert {reply.earlier_conversations for reply in first.replies()} == {0}
    assert {reply.earlier_conversations for reply in second.replies()} == {1}


async def test_conversations_of_an_agent_with_one_memory_wait_for_each_other(
    conversation: Conversation, agent: StubAgent
) -> None:
    line = line_to(agent)
    first, second = Replay(conversation, line), Replay(conversation, line)
    await first.play()
    waiting = asyncio.create_task(second.play())
    heard = len(agent.turns)
    await first.ask_all()
    assert not waiting.done()
    assert len(agent.turns) == heard + len(conversation.questions)
    await first.session.close("resolved")
    await waiting
    assert agent.turns[heard + len(conversation.questions)]["history"] == ""


async def test_the_one_memory_of_an_agent_is_not_used_for_what_is_asked_beside_a_replay(
    conversation: Conversation, agent: StubAgent
) -> None:
    line = line_to(agent)
    replay = Replay(conversation, line)
    await replay.play()
    heard = len(agent.turns)
    beside = Replay(conversation, replace(line, serves_without_sessions=False))
    await beside.play()
    await beside.ask_all()
    assert len(agent.turns) == heard
    assert {"single memory" in reply.error for reply in beside.replies()} == {True}


async def test_whichever_model_is_named_the_agent_answers_under_its_own_name(
    conversation: Conversation, agent: StubAgent
) -> None:
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    scored = await replay.session.ask(conversation.questions[0], "agent", "openai/gpt-4o-mini", by_hand=True)
    assert (scored.model, replay.model.requests) == (AGENT_MODEL, [])


async def test_its_memory_state_is_shown_at_every_turn(conversation: Conversation, agent: StubAgent) -> None:
    agent.state = {"facts": []}
    agent.behave = lambda stub, request, payload: (
        stub.state["facts"].append(payload["message"][:10]),
        web.json_response({"reply": "noted"}),
    )[1]
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    timeline = replay.timeline()
    lengths = [
        len(timeline.state_at("agent", "memory_state", turn)["facts"]) for turn in range(timeline.last_turn + 1)
    ]
    assert lengths == [turn // 2 for turn in range(timeline.last_turn + 1)]


async def test_an_agent_without_a_state_is_asked_for_it_once(conversation: Conversation, agent: StubAgent) -> None:
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    assert agent.seen == [("GET", "/memory_state")]
    assert not [event for event in replay.events if isinstance(event, BackendFailed)]


async def test_a_turn_that_may_have_been_taken_in_is_not_said_again(
    conversation: Conversation, agent: StubAgent
) -> None:
    agent.drops = 1
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    assert len(agent.turns) == 1
    (failed,) = [event for event in replay.events if isinstance(event, BackendFailed)]
    assert "closed the connection" in failed.error and failed.phase == "observe"
    scored = await replay.ask_all()
    assert {score.score.outcome for score in scored} == {"error"}
    assert len(agent.turns) == 1


@pytest.mark.parametrize(
    ("behave", "says_what"),
    [
        (
            lambda agent, request, payload: web.Response(status=500, text="out of memory"),
            "answered 500: out of memory",
        ),
        (lambda agent, request, payload: web.json_response({"reply": 7}), "contains no text"),
        (lambda agent, request, payload: web.json_response(["x"]), "contains no text"),
        (lambda agent, request, payload: web.Response(body=b"x" * (MAX_REPLY_BYTES + 1)), "sent more than"),
        (lambda agent, request, payload: web.Response(status=302, headers={"Location": "/"}), "answered 302"),
    ],
)
async def test_an_agent_that_fails_is_an_error_and_not_a_wrong_answer(
    conversation: Conversation, agent: StubAgent, behave: Any, says_what: str
) -> None:
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    agent.behave = behave
    scored = await replay.session.ask(conversation.questions[0], "agent", AGENT_MODEL)
    assert (scored.score.outcome, scored.score.score) == ("error", None)
    assert says_what in replay.replies()[0].error
    agent.behave = says(conversation.questions[1].expected)
    assert (await replay.session.ask(conversation.questions[1], "agent", AGENT_MODEL)).score.outcome == "correct"


async def test_an_agent_that_refuses_the_token_ends_its_questions(
    conversation: Conversation, agent: StubAgent
) -> None:
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    agent.behave = lambda agent, request, payload: web.Response(status=401)
    with pytest.raises(ModelUnavailableError, match="refuses the token"):
        await replay.session.ask(conversation.questions[0], "agent", AGENT_MODEL)
    assert replay.replies() == []


async def test_a_turn_that_was_certainly_not_processed_is_repeated(
    conversation: Conversation, agent: StubAgent
) -> None:
    replay = Replay(conversation, line_to(agent))
    await replay.play()
    refusals = [503, 429]
    agent.behave = lambda stub, request, payload: (
        web.Response(status=refusals.pop(0)) if refusals else web.json_response({"reply": "at last"})
    )
    await replay.session.ask(conversation.questions[0], "agent", AGENT_MODEL)
    assert [reply.text for reply in replay.replies()] == ["at last"]


async def test_an_agent_that_does_not_answer_is_given_up(conversation: Conversation, agent: StubAgent) -> None:
    agent.hangs = True
    replay = Replay(conversation, line_to(agent, seconds=0.2))
    await replay.session.open()
    await replay.session.step()
    await replay.session.step()
    (failed,) = [event for event in replay.events if isinstance(event, BackendFailed)]
    assert "did not answer within 0.2 s" in failed.error
    assert len(agent.turns) <= 1, "a turn that may have been processed is not repeated"


@pytest.mark.parametrize("name", [None, "reply", "response", "answer", "content", "message", "text"])
async def test_the_words_of_a_reply_are_found(agent: StubAgent, name: str | None) -> None:
    spoken = web.json_response({"role": "assistant", name: "Ann"}) if name else web.Response(text="Ann")
    agent.behave = lambda stub, request, payload: spoken
    assert await line_to(agent).client.run_turn("", "Who?", None) == "Ann"


async def test_the_token_is_sent_and_never_shown(agent: StubAgent) -> None:
    line = line_to(agent, token="s3cret")
    await line.client.run_turn("", "hello", None)
    assert agent.headers[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(line.client.address)


@pytest.mark.parametrize(
    "name",
    [
        "http://", "http:///run_turn", "http://host", "http://host:port/run_turn",
        "http://me:pass@host/run_turn", "http://host/run_turn?key=abc", "http://[::1/run_turn",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_one_or_holds_a_secret_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="expected http://host") as refused:
        AgentAddress.read(name)
    assert "pass@" not in str(refused.value) and "abc" not in str(refused.value)


@pytest.mark.parametrize("header", [None, "X-Session-Id"])
async def test_a_chat_endpoint_gets_the_whole_history_or_every_turn_under_its_session(
    conversation: Conversation, header: str | None
) -> None:
    spoken = [turn.text for turn in conversation.turns]
    users = [turn.text for turn in conversation.turns if turn.role == "user"]
    with OpenAIServer([answer("Nimbus Labs")]) as server:
        name = f"openai:my-agent@{server.url}"
        line = RemoteAgent(agent_client(name, "s3cret", header))
        run = Replay(conversation, line, name)
        await run.play()
        told = len(server.requests)
        await run.ask_all()
        await line.client.aclose()
    asked = server.requests[told:]
    assert {request.body["model"] for request in server.requests} == {"my-agent"}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer s3cret"}
    assert {request.path for request in server.requests} == {"/v1/chat/completions"}
    assert len(asked) == len(conversation.questions) and run.replies()
    if header is None:
        assert told == 0, "it keeps nothing, so it is told nothing"
        for request in asked:
            assert [message["content"] for message in request.body["messages"][:-1]] == spoken
            assert "x-session-id" not in request.headers
    else:
        assert [request.body["messages"][0]["content"] for request in server.requests[:told]] == users
        assert all(len(request.body["messages"]) == 1 for request in server.requests)
        assert len({request.headers["x-session-id"] for request in server.requests}) == 1
    assert [reply.text for reply in run.replies()] == ["Nimbus Labs"] * len(asked)
    earlier = [reply.earlier_questions for reply in run.replies()]
    assert earlier == ([0] * len(asked) if header is None else list(range(len(asked))))


@pytest.mark.parametrize(
    "name", ["openai:", "openai:ftp://host/v1", "openai:http://me:s3cret@host/v1", "openai:http://host"]
)
def test_a_chat_endpoint_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"expected openai:\[MODEL@\]http://host") as raised:
        agent_client(name, None, None)
    assert "s3cret" not in str(raised.value)
