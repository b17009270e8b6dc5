"""What a reply costs, at the prices of LiteLLM's table."""

from __future__ import annotations

import json

import pytest

from memreplay.conversations.models import Question
from memreplay.llm.catalogue import table_entry
from memreplay.llm.client import LiteLLMModel
from memreplay.llm.model import Reply
from memreplay.llm.prompts import build_request
from tests.stubs.openai_server import Answer, OpenAIServer, answer

MODELS = ("openai/gpt-4o-mini", "openai/gpt-4.1", "openai/gpt-5", "mistral/mistral-small-latest")
USAGES = [(1200, 30, 0), (5000, 10, 4000), (150_000, 40, 0), (290_000, 500, 1000)]
QUESTION = Question(id="q", kind="recall", type="t", text="Where from?", expected="Norway")


async def ask(model: str, replied: Answer) -> Reply:
    with OpenAIServer([replied]) as server:
        return await LiteLLMModel().answer(build_request(QUESTION, "", model, server.url))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("prompt", "completion", "cached"), USAGES)
async def test_tokens_cost_what_the_table_says(model: str, prompt: int, completion: int, cached: int) -> None:
    prices = table_entry(model)
    assert prices is not None
    expected = (
        (prompt - cached) * prices["input_cost_per_token"]
        + cached * prices["cache_read_input_token_cost"]
        + completion * prices["output_cost_per_token"]
    )
    replied = answer("1", prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached)
    assert (await ask(model, replied)).cost_usd == pytest.approx(expected)


async def test_a_reply_that_was_served_with_priority_costs_more() -> None:
    served = answer("1", prompt_tokens=1000)
    at_once = {**served, "body": json.dumps({**json.loads(served["body"]), "service_tier": "priority"})}
    plain, urgent = [(await ask("openai/gpt-5", replied)).cost_usd for replied in (served, at_once)]
    assert plain is not None and urgent is not None and urgent > plain


@pytest.mark.parametrize("model", ["openai/nobody-priced-this", "hosted_vllm/gpt-4o"])
async def test_an_unknown_price_is_null(model: str) -> None:
    assert (await ask(model, answer("1", prompt_tokens=1000))).cost_usd is None
