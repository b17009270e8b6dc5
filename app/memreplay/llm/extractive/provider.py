"""The embedded reader as a LiteLLM provider: no key, no network, usage counted, the same reply every time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from litellm.llms.custom_llm import CustomLLM
from litellm.types.utils import ModelResponse, Usage

from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.extractive.reader import answer_messages
from memreplay.llm.tokens import token_counter


class ExtractiveProvider(CustomLLM):
    """Answers a prompt from the prompt alone. LiteLLM passes everything by keyword."""

    def completion(self, *_: Any, **call: Any) -> ModelResponse:
        return _respond(call["messages"], call["model_response"])

    async def acompletion(self, *_: Any, **call: Any) -> ModelResponse:
        return await asyncio.to_thread(_respond, call["messages"], call["model_response"])


def _respond(messages: Sequence[Mapping[str, Any]], response: Any) -> ModelResponse:
    contents = [str(message.get("content") or "") for message in messages]
    reply = answer_messages(contents)
    count = token_counter(EXTRACTIVE_MODEL)
    asked, said = count("\n".join(contents)), count(reply)
    response.choices[0].message.content = reply
    response.usage = Usage(prompt_tokens=asked, completion_tokens=said, total_tokens=asked + said)
    filled: ModelResponse = response
    return filled
