"""Errors that no retry can fix, as each provider words them."""

from __future__ import annotations

import pytest

from memreplay.llm.client import LiteLLMModel
from memreplay.llm.model import AnswerRequest, PromptMessage
from memreplay.llm.rate_limiter import ModelUnavailableError
from tests.stubs.openai_server import OpenAIServer

KEY, MODEL, CREDIT = "the key is not accepted", "its server does not know it", "no credit left"

SAID = [
    ("gemini/gemini-2.0-flash", 400, '{"error": {"code": 400, "message": "API key not valid. Pass one."}}', KEY),
    ("anthropic/claude-x", 401, '{"type": "error", "error": {"message": "invalid x-api-key"}}', KEY),
    ("anthropic/claude-x", 400, '{"error": {"message": "Your credit balance is too low to access it."}}', CREDIT),
    ("deepseek/deepseek-chat", 402, '{"error": {"message": "Insufficient Balance"}}', CREDIT),
    ("xai/grok-3", 403, '{"code": "denied", "error": "Your team doesn\'t have any credits yet."}', CREDIT),
    ("openai/gpt-4o", 403, '{"error": {"message": "The project has no access to it."}}', "has no access to it"),
    ("mistral/nope", 400, '{"object": "error", "message": "Invalid model: nope", "code": "1500"}', MODEL),
    ("openrouter/x/y", 400, '{"error": {"message": "x/y is not a valid model ID", "code": 400}}', MODEL),
    ("groq/nope", 404, '{"error": {"message": "No nope here.", "code": "model_not_found"}}', MODEL),
]


@pytest.mark.parametrize(("model", "status", "body", "why"), SAID, ids=[f"{said[0]} {said[1]}" for said in SAID])
async def test_the_error_is_recognised_and_explained_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, model: str, status: int, body: str, why: str
) -> None:
    monkeypatch.setenv(f"{model.partition('/')[0].upper()}_API_KEY", "x")
    message = PromptMessage(role="user", segments=("hello",))
    with OpenAIServer([{"status": status, "headers": {}, "body": body}]) as server:
        base = server.url.removesuffix("/v1") if model.startswith("anthropic") else server.url
        request = AnswerRequest(model=model, api_base=base, messages=(message,), parameters={"max_tokens": 5})
        with pytest.raises(ModelUnavailableError) as told:
            await LiteLLMModel(timeout=20.0).answer(request)
    sentence = str(told.value)
    assert sentence.startswith(f"{model} is unavailable: ") and why in sentence
    assert "{" not in sentence and len(server.requests) == 1
