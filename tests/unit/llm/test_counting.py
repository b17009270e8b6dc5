"""What an estimate counts in a request, and the replies that stand in for those of a model."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from memreplay.llm.counting import CountingModel, Estimate, emptiest_reply, prompt_tokens
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply
from memreplay.llm.tokens import token_counter

MODEL = "openai/gpt-4o-mini"


def request(text: str = "hello", **parameters: Any) -> AnswerRequest:
    message = PromptMessage(role="user", segments=(text,))
    return AnswerRequest(model=MODEL, api_base=None, messages=(message,), parameters=parameters)


class Place(BaseModel):
    name: str
    kind: Literal["city", "river"]


class Found(BaseModel):
    people: list[str]
    place: Place
    other: Place | None
    number: int
    certain: bool
    size: float
    note: str = "optional"


@pytest.mark.parametrize("made", [Found, Place, list[Place], dict[str, int], str | int])
def test_the_emptiest_reply_is_valid_by_the_schema_that_was_asked_for(made: Any) -> None:
    adapter = TypeAdapter(made)
    schema = {"type": "json_schema", "json_schema": {"name": "it", "schema": adapter.json_schema()}}
    reply = emptiest_reply(request(response_format=schema), "key")
    value = adapter.validate_python(json.loads(reply.text or ""))
    if isinstance(value, Found):
        assert (value.people, value.other, value.place.name) == ([], None, "")


def test_without_a_schema_it_is_an_empty_object_or_no_text() -> None:
    assert emptiest_reply(request(response_format={"type": "json_object"}), "key").text == "{}"
    assert emptiest_reply(request(), "key").text == ""


def test_what_a_library_sends_is_counted_with_its_tools() -> None:
    count = token_counter(MODEL)
    tool = {"type": "function", "function": {"name": "remember", "description": "Write something down. " * 20}}
    raw = ({"role": "user", "content": "Arnau lives in Barcelona. " * 50},)
    sent = AnswerRequest(model=MODEL, api_base=None, messages=(), parameters={}, raw_messages=raw)
    plain = prompt_tokens(sent)
    with_tools = prompt_tokens(sent.model_copy(update={"parameters": {"tools": [tool]}}))
    assert plain == pytest.approx(count(raw[0]["content"]), abs=5)
    assert with_tools - plain >= count(tool["function"]["description"])


def test_equal_requests_count_once_unless_they_are_guesses_of_different_parts() -> None:
    parts = iter(["", "", "mem0", "mem0", "other"])
    model = CountingModel(None, set(), lambda asked, key: Reply(text=key), guessing=lambda: next(parts))

    async def ask_all() -> list[str | None]:
        return [(await model.answer(request(max_tokens=7))).text for _ in range(5)]

    texts = asyncio.run(ask_all())
    assert (model.row.calls, model.row.reused, model.row.reply_tokens) == (3, 2, 21)
    assert len(set(texts)) == 3


@pytest.mark.parametrize(
    ("estimate", "model", "price"),
    [
        (Estimate(calls=2, prompt_tokens=10**6, reply_tokens=10**6), "openai/gpt-4o-mini", 0.75),
        (Estimate(calls=2, prompt_tokens=10**6), "openai/text-embedding-3-small", 0.02),
        (Estimate(calls=10, prompt_tokens=500), "cohere/rerank-v3.5", 0.02),
        (Estimate(calls=1, prompt_tokens=10), "openai/never-heard-of", None),
        (Estimate(reused=3), "openai/never-heard-of", 0.0),
        (Estimate(calls=1, certainty="tokens unknown"), "openai/gpt-4o-mini", None),
        (Estimate(certainty="cannot be estimated"), "openai/gpt-4o-mini", None),
        (Estimate(calls=5, prompt_tokens=10**6), "memreplay/extractive", 0.0),
    ],
)
def test_an_unknown_price_is_never_nothing(estimate: Estimate, model: str, price: float | None) -> None:
    assert estimate.price(model) == (None if price is None else pytest.approx(price))
