"""Equal requests share one paid reply."""

from __future__ import annotations

import asyncio

import pytest

from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.caching import CachedModel, request_key
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply, TokenUsage


def request(**changes: object) -> AnswerRequest:
    fields: dict[str, object] = {
        "model": "m",
        "api_base": None,
        "messages": (PromptMessage(role="user", segments=("a", "b")),),
        "parameters": {"temperature": 0, "max_tokens": 10},
    }
    return AnswerRequest.model_validate(fields | changes)


class MemoryCache:
    """Keeps replies in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[str, Reply] = {}

    def get(self, key: str) -> Reply | None:
        return self.kept.get(key)

    def put(self, key: str, reply: Reply) -> None:
        self.kept[key] = reply


class ScriptedModel:
    """Gives the replies of a list, one a call, letting others run before each."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.calls = 0

    async def answer(self, request: AnswerRequest) -> Reply:
        self.calls += 1
        await asyncio.sleep(0)
        return self.replies.pop(0)


PAID = Reply(text="3", usage=TokenUsage(prompt=100, completion=1, cached=40), cost_usd=0.25, ms=321.0)


async def test_a_cache_hit_keeps_the_original_usage_cost_and_time() -> None:
    inner = ScriptedModel(PAID)
    model = CachedModel(inner, MemoryCache())
    assert await model.answer(request()) == PAID
    assert await model.answer(request()) == PAID.model_copy(update={"reused": True})
    assert inner.calls == 1


async def test_simultaneous_equal_requests_are_paid_once() -> None:
    inner = ScriptedModel(PAID)
    model = CachedModel(inner, MemoryCache())
    replies = await asyncio.gather(*(model.answer(request()) for _ in range(5)))
    assert {reply.text for reply in replies} == {"3"}
    assert inner.calls == 1


async def test_an_error_is_not_cached() -> None:
    cache = MemoryCache()
    model = CachedModel(ScriptedModel(Reply(text=None, error="down"), PAID), cache)
    assert (await model.answer(request())).error == "down"
    assert cache.kept == {}
    assert await model.answer(request()) == PAID


async def test_the_embedded_reader_is_always_asked() -> None:
    cache, inner = MemoryCache(), ScriptedModel(Reply(text="of one version"), Reply(text="of the next"))
    model = CachedModel(inner, cache)
    asked = request().model_copy(update={"model": EXTRACTIVE_MODEL})
    assert [(await model.answer(asked)).text for _ in range(2)] == ["of one version", "of the next"]
    assert cache.kept == {}


async def test_a_refusal_is_asked_again_since_filters_differ_from_one_call_to_the_next() -> None:
    inner = ScriptedModel(Reply(text="", refused=True), Reply(text="Lisbon"))
    model = CachedModel(inner, MemoryCache())
    assert (await model.answer(request())).refused
    assert (await model.answer(request())).text == "Lisbon"
    assert (await model.answer(request())).reused
    assert inner.calls == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "n"},
        {"api_base": "http://127.0.0.1/v1"},
        {"messages": (PromptMessage(role="user", segments=("a", "c")),)},
        {"messages": (PromptMessage(role="system", segments=("a", "b")),)},
        {"parameters": {"temperature": 0, "max_tokens": 11}},
        {"repeat": 1},
    ],
)
def test_the_key_depends_on_everything_that_a_reply_depends_on(changes: dict[str, object]) -> None:
    assert request_key(request(**changes)) != request_key(request())


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": (PromptMessage(role="user", segments=("ab",)),)},
        {"parameters": {"max_tokens": 10, "temperature": 0}},
    ],
)
def test_the_key_does_not_depend_on_what_the_model_never_sees(changes: dict[str, object]) -> None:
    assert request_key(request(**changes)) == request_key(request())


def test_the_key_is_stable_for_any_text() -> None:
    lone = request(messages=(PromptMessage(role="user", segments=("\ud800 ñ",)),))
    assert len(request_key(lone)) == 64
    assert request_key(request()) == "3c257bc59548f0f4ace995b762542d6f8cbc6a299d1ece5c9a2105a126db60f6"
