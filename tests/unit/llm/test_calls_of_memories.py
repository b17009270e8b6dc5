"""Calls that memories make of a model: their text, how the reply can be read, and repeated requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from memory_backends.metering import MeteredChat
from memory_backends.stores.trace import MemoryTrace, ModelCall
from memreplay.llm.caching import CachedModel, RunReplies
from memreplay.llm.client import LiteLLMModel
from memreplay.llm.ports import MemoryChatModel
from memreplay.recording.reply_store import SqliteReplyCache
from tests.stubs.openai_server import Answer, OpenAIServer, answer

PROMPT = [{"role": "system", "content": "Keep facts. " * 30}, {"role": "user", "content": "I sail."}]
JSON = {"response_format": {"type": "json_object"}}
FACTS = json.dumps({"memory": [{"text": "The user sails"}]})


async def calls(
    answers: Sequence[Answer], operations: Sequence[int], cache: Path | None = None
) -> tuple[list[ModelCall], int]:
    """Return the calls of a memory that asks the same thing, so many times in each operation, and how many were
    sent.
    """
    trace = MemoryTrace()
    with OpenAIServer(list(answers)) as server:
        model = LiteLLMModel(attempts=1)
        asked = model if cache is None else CachedModel(model, RunReplies(SqliteReplyCache(cache), lambda: "run"))
        chat = MeteredChat(MemoryChatModel(asked, "openai/stub", server.url), trace)
        for number, times in enumerate(operations):
            with trace.caused_by("observe", "backend", (str(number),)):
                for _ in range(times):
                    await chat.complete(PROMPT, temperature=0, **JSON)
    return [entry for entry in trace.drain() if isinstance(entry, ModelCall)], len(server.requests)


@pytest.mark.parametrize(
    ("text", "read", "finish"),
    [
        (FACTS, "parsed", "stop"),
        (f"```json\n{FACTS}\n```", "repaired", "stop"),
        (f"[THINK]What {{of}} it?[/THINK]Here it is: {FACTS}", "repaired", "stop"),
        ("Sure! I noticed that the user sails.", "rejected", "stop"),
        (FACTS[:20], "rejected", "length"),
    ],
)
async def test_a_call_has_its_text_and_how_its_reply_can_be_read(text: str, read: str, finish: str) -> None:
    [call], _ = await calls([answer(text, finish_reason=finish, completion_tokens=7)], [1])
    assert [(message.role, message.text) for message in call.messages] == [
        (message["role"], message["content"]) for message in PROMPT
    ]
    assert (call.reply, call.read, call.finish_reason) == (text, read, finish)
    assert json.loads(call.parameters or "")["max_tokens"] == 4000
    assert (call.cut_at, call.phase, call.turns) == (4000 if finish == "length" else None, "observe", ("0",))
    assert (call.rejected is None) == (read != "rejected")
    assert finish == "stop" or "cut by its limit of 4,000 tokens" in (call.rejected or "")


async def test_an_equal_request_of_one_operation_is_a_new_one_with_the_cache_too(tmp_path: Path) -> None:
    cache = tmp_path / "replies.sqlite3"
    answers = [answer("no JSON"), answer(FACTS), answer("nobody asks for this")]
    made, sent = await calls(answers, [2, 1], cache)
    assert [(call.repeat, call.reply, call.reused) for call in made] == [
        (0, "no JSON", False),
        (1, FACTS, False),
        (0, "no JSON", True),
    ]
    assert sent == 2


async def test_a_resumed_run_gets_the_replies_of_each_repetition_again(tmp_path: Path) -> None:
    def key_of(request: int) -> Answer:
        return answer(f"reply {request}")

    cache = SqliteReplyCache(tmp_path / "replies.sqlite3")
    said = []
    with OpenAIServer([key_of(number) for number in range(3)]) as server:
        for _ in range(2):
            trace = MemoryTrace()
            asked = CachedModel(LiteLLMModel(attempts=1), RunReplies(cache, lambda: "run"))
            chat = MeteredChat(MemoryChatModel(asked, "openai/stub", server.url), trace)
            with trace.caused_by("observe", "backend", ("1",)):
                said.append([(await chat.complete(PROMPT, **JSON)).text for _ in range(3)])
    assert said[0] == said[1] == ["reply 0", "reply 1", "reply 2"]
