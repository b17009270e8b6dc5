"""What a reply costs: computed from LiteLLM's table, and equal to what LiteLLM computes itself."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from memreplay.llm.client import CostMeter
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.llm.model import TokenUsage

USAGES = [(1200, 30, 0), (5000, 10, 4000), (150_000, 40, 0), (290_000, 500, 1000)]


class Counting:
    """LiteLLM's calculator, counted."""

    def __init__(self, litellm: ModuleType) -> None:
        self._litellm = litellm
        self.calls = 0

    def completion_cost(self, **given: Any) -> float:
        self.calls += 1
        cost: float = self._litellm.completion_cost(**given)
        return cost


@pytest.fixture
def litellm() -> Counting:
    return Counting(loaded_litellm())


def response(model: str, usage: TokenUsage, **more: Any) -> Any:
    from litellm import ModelResponse, Usage

    counted = Usage(
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        total_tokens=usage.prompt + usage.completion,
        prompt_tokens_details={"cached_tokens": usage.cached},
    )
    return ModelResponse(model=model.rpartition("/")[2], usage=counted, **more)


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-4o-mini",
        "gpt-4o",
        "openai/gpt-4.1",
        "anthropic/claude-haiku-4-5-20251001",
        "gemini/gemini-2.5-pro",
        "gemini/gemini-2.5-flash",
        "mistral/mistral-small-latest",
        "groq/openai/gpt-oss-20b",
    ],
)
def test_a_cost_is_what_litellm_computes_without_asking_it(model: str, litellm: Counting) -> None:
    asked_itself = Counting(loaded_litellm())
    for prompt, completion, cached in USAGES:
        usage = TokenUsage(prompt=prompt, completion=completion, cached=cached)
        reply = response(model, usage)
        theirs = asked_itself.completion_cost(completion_response=reply, model=model)
        assert CostMeter().cost(litellm, model, reply, usage) == pytest.approx(theirs)
    without_cached_price = sum(1 for _, _, cached in USAGES if cached)
    assert litellm.calls in (0, without_cached_price)


def test_what_the_plain_prices_do_not_cover_is_left_to_litellm(litellm: Counting) -> None:
    usage = TokenUsage(prompt=1000, completion=10)
    plain = CostMeter().cost(litellm, "openai/gpt-5", response("gpt-5", usage), usage)
    assert litellm.calls == 0
    served = response("gpt-5", usage, service_tier="priority")
    cost = CostMeter().cost(litellm, "openai/gpt-5", served, usage)
    assert litellm.calls == 1
    assert cost is not None and plain is not None and cost > plain


def test_the_price_of_an_unknown_model_is_null_and_looked_up_once(litellm: Counting) -> None:
    meter, usage = CostMeter(), TokenUsage(prompt=1000, completion=10)
    for _ in range(3):
        assert meter.cost(litellm, "openai/nobody-priced-this", response("x", usage), usage) is None
    assert litellm.calls == 1


def test_the_same_name_at_another_provider_has_no_price_of_ours(litellm: Counting) -> None:
    usage = TokenUsage(prompt=1000, completion=10)
    CostMeter().cost(litellm, "hosted_vllm/gpt-4o", response("gpt-4o", usage), usage)
    assert litellm.calls == 1
