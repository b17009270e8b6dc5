"""Questions behind one long context: the first goes ahead, and is marked where the provider wants that."""

from __future__ import annotations

import asyncio

from memreplay.llm.caching import SHORTEST_PREFIX, SharedPrefixModel, caches_prompts
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply

LONG = "x" * SHORTEST_PREFIX


def request(question: str, context: str = LONG, model: str = "openai/gpt-4o-mini") -> AnswerRequest:
    message = PromptMessage(role="user", segments=("History:\n", context, question))
    return AnswerRequest(model=model, api_base=None, messages=(message,), parameters={})


class WaitingModel:
    """Answers when it is let; keeps what is under way."""

    def __init__(self, error: str | None = None) -> None:
        self.under_way: list[AnswerRequest] = []
        self.go = asyncio.Event()
        self.error = error

    async def answer(self, request: AnswerRequest) -> Reply:
        self.under_way.append(request)
        await self.go.wait()
        return Reply(text=None if self.error else "0", error=self.error)


async def begun(model: WaitingModel, requests: list[AnswerRequest]) -> tuple[int, list[AnswerRequest]]:
    """How many went ahead, and all as they were asked in the end."""
    shared = SharedPrefixModel(model)
    tasks = [asyncio.create_task(shared.answer(each)) for each in requests]
    for _ in range(10):
        await asyncio.sleep(0)
    ahead = len(model.under_way)
    model.go.set()
    await asyncio.gather(*tasks)
    return ahead, model.under_way


async def test_one_question_is_sent_ahead_of_all_with_the_same_long_context() -> None:
    ahead, asked = await begun(WaitingModel(), [request(f"q{number}") for number in range(5)])
    assert ahead == 1
    assert len(asked) == 5 and not any(each.marks_prefix for each in asked)


async def test_other_contexts_short_ones_and_unknown_models_are_not_held_back() -> None:
    ahead, _ = await begun(WaitingModel(), [request("q", context=letter * SHORTEST_PREFIX) for letter in "abc"])
    assert ahead == 3
    ahead, _ = await begun(WaitingModel(), [request(f"q{number}", context="short") for number in range(3)])
    assert ahead == 3
    ahead, _ = await begun(WaitingModel(), [request(f"q{number}", model="openai/own") for number in range(3)])
    assert ahead == 3


async def test_a_failure_stops_holding_requests_back() -> None:
    ahead, asked = await begun(WaitingModel(error="down"), [request(f"q{number}") for number in range(3)])
    assert (ahead, len(asked)) == (1, 3)


async def test_prefixes_for_anthropic_are_marked_from_the_second_use_on() -> None:
    model = "anthropic/claude-sonnet-4-5"
    assert caches_prompts(model)
    ahead, asked = await begun(WaitingModel(), [request(f"q{number}", model=model) for number in range(5)])
    assert ahead == 1
    assert [each.marks_prefix for each in asked] == [False, True, True, True, True]
