"""The chat port of memories, filled in: any messages and tools, through the run's model, limits and reply cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_backends.metering import ChatMessage
from memory_backends.stores.trace import ModelCall
from memreplay.llm.catalogue import model_facts
from memreplay.llm.model import AnswerModel, AnswerRequest
from memreplay.llm.prompts import REASONING_TOKENS

REPLY_TOKENS = 4000
"""Where a memory sets no limit."""


class MemoryChatModel:
    """Calls a model for a memory. ``name`` is its LiteLLM name."""

    def __init__(self, model: AnswerModel, name: str, api_base: str | None) -> None:
        self.name = name
        self._model = model
        self._api_base = api_base

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]
    ) -> tuple[ChatMessage | None, ModelCall]:
        """A failed call, or a refusal, has no message. A reply from the cache counts with its original usage."""
        thinking = REASONING_TOKENS if model_facts(self.name).reasons_first else 0
        request = AnswerRequest(
            model=self.name,
            api_base=self._api_base,
            messages=(),
            parameters={"max_tokens": REPLY_TOKENS + thinking, **parameters},
            raw_messages=tuple(dict(message) for message in messages),
        )
        reply = await self._model.answer(request)
        error = reply.error or ("the model refused" if reply.refused else None)
        call = ModelCall(
            purpose="chat",
            model=self.name,
            prompt_tokens=reply.usage.prompt,
            completion_tokens=reply.usage.completion,
            cached_tokens=reply.usage.cached,
            cost_usd=reply.cost_usd,
            ms=reply.ms,
            reused=reply.reused,
            error=error,
        )
        message = ChatMessage(text=reply.text or "", tool_calls=reply.tool_calls)
        return (None if error else message), call
