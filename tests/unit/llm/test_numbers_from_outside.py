"""A number that a provider states is used within its bounds, and is none outside them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from memory_backends.base import BackendError
from memreplay.llm.embeddings import LiteLLMEmbedder, LiteLLMReranker
from memreplay.llm.model import MOST_DOLLARS, MOST_TOKENS
from memreplay.numbers import finite, finite_count
from tests.stubs.openai_server import Answer, OpenAIServer, answer, embeddings, failure, rerankings
from tests.unit.llm.test_client import Sleeper, ask

ODD = (math.nan, math.inf, -math.inf, -1, -1e308, 1e308, 10**400, "7", "nan", "", True, None, [], {})
NO_NUMBERS = tuple(each for each in ODD if each not in (-1, "7", True))
"""LiteLLM reads a text of digits and a truth value as numbers."""


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:10])
def test_a_number_is_finite_and_within_its_bounds_or_none(value: Any) -> None:
    assert finite(value, 0, 1e9) is None
    assert finite_count(value, 10**9) is None
    assert finite(1, 0, 1) == 1.0 and finite_count(3, 3) == 3 and finite_count(1.5, 3) is None


@pytest.mark.parametrize(
    "stated", ["nan", "inf", "-inf", "-5", "1e308", "1" * 400, "soon", "", "Thu, 99 Foo 2099", "0x10"]
)
async def test_a_retry_after_that_is_no_time_is_as_good_as_none(stated: str) -> None:
    sleeper = Sleeper()
    with OpenAIServer([failure(429, "slow down", retry_after=stated), answer("1")]) as server:
        assert (await ask(server, sleeper=sleeper)).text == "1"
    assert len(sleeper.waits) == 1 and 0 <= sleeper.waits[0] < 2


@pytest.mark.parametrize("stated", ["Wed, 01 Jan 2020 00:00:00 GMT", "Wed, 01 Jan 2020 00:00:00", "0"])
async def test_a_retry_after_in_the_past_is_now(stated: str) -> None:
    sleeper = Sleeper()
    with OpenAIServer([failure(429, "slow down", retry_after=stated), answer("1")]) as server:
        assert (await ask(server, sleeper=sleeper)).text == "1"
    assert sleeper.waits[0] < 1


async def test_a_date_beyond_the_longest_wait_is_an_error_that_names_it() -> None:
    sleeper = Sleeper()
    sent = failure(429, "come back", retry_after="Thu, 01 Jan 2099 00:00:00 GMT")
    with OpenAIServer([sent]) as server:
        reply = await ask(server, sleeper=sleeper)
    assert reply.error is not None and "until 209" in reply.error and "UTC" in reply.error
    assert len(server.requests) == 1 and sleeper.waits == []


@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens"])
@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:10])
async def test_any_usage_costs_at_most_its_own_answer(name: str, value: Any) -> None:
    sent = answer("1")
    body = json.loads(sent["body"])
    usage = body["usage"]
    (usage["prompt_tokens_details"] if name == "cached_tokens" else usage)[name] = value
    with OpenAIServer([{**sent, "body": json.dumps(body)}]) as server:
        reply = await ask(server, "openai/gpt-4o-mini")
    assert reply.text == "1" or reply.error
    assert all(0 <= count <= MOST_TOKENS for count in reply.usage.model_dump().values())
    assert reply.cost_usd is None or 0 <= reply.cost_usd <= MOST_DOLLARS
    assert 0 <= reply.ms < 1e6


def _vector(number: Any) -> Answer:
    return embeddings([[1.0, number]])


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:10])
def test_a_vector_holds_numbers_or_is_an_error(value: Any) -> None:
    with OpenAIServer([_vector(value)]) as server, pytest.raises(BackendError, match="returned no vectors"):
        LiteLLMEmbedder("openai/text-embedding-stub", server.url, first_wait=0.0).embed(["a"])


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:10])
def test_a_score_is_a_number_or_an_error(value: Any) -> None:
    sent = rerankings([0.0])
    body = json.loads(sent["body"])
    body["results"][0]["relevance_score"] = value
    with (
        OpenAIServer([{**sent, "body": json.dumps(body)}]) as server,
        pytest.raises(BackendError, match="returned no scores"),
    ):
        LiteLLMReranker("cohere/rerank-v3.5", server.url, first_wait=0.0).score("who?", ["a"])
