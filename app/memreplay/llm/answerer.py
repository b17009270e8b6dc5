"""Turns the engine's questions, and an agent's turns, into model calls."""

from __future__ import annotations

from datetime import datetime

from memreplay.conversations.models import Question
from memreplay.llm.model import AnswerModel, AnswerRequest, Reply
from memreplay.llm.prompts import build_agent_request, build_request, longest_agent_reply
from memreplay.llm.tokens import PROMPT_RESERVE, context_budget, context_window, token_counter


class ModelAnswerer:
    """Asks questions at one API base, within one context budget."""

    def __init__(self, model: AnswerModel, api_base: str | None, context_tokens: int | None) -> None:
        self._model = model
        self._api_base = api_base
        self._context_tokens = context_tokens

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        return build_request(question, context, model, self._api_base, repeat)

    async def answer(self, request: AnswerRequest) -> Reply:
        return await self._model.answer(request)

    def context_budget(self, model: str, limited_by_top_k: bool = True) -> int:
        """Tokens of memory that a prompt may hold: as configured, else what the model's window leaves."""
        return context_budget(model, self._context_tokens, limited_by_top_k)


_SMALLEST_BUDGET = 256


class ModelAgent:
    """Speaks for an agent through one model. Each ``repeat`` of a test run has its own replies."""

    def __init__(
        self, name: str, model: AnswerModel, api_base: str | None, context_tokens: int | None, *, repeat: int = 0
    ) -> None:
        self.name = name
        self._model = model
        self._api_base = api_base
        self._context_tokens = context_tokens
        self._repeat = repeat

    def request(self, message: str, context: str, now: datetime) -> AnswerRequest:
        request = build_agent_request(message, context, now, self.name, self._api_base)
        return request.model_copy(update={"repeat": self._repeat})

    async def answer(self, request: AnswerRequest) -> Reply:
        return await self._model.answer(request)

    def context_budget(self, message: str, limited_by_top_k: bool = True) -> int:
        """Tokens of memory that fit beside this message: as configured, within the model's window."""
        window = context_window(self.name)
        if window is None:
            return context_budget(self.name, self._context_tokens, limited_by_top_k)
        taken = PROMPT_RESERVE + longest_agent_reply(self.name) + token_counter(self.name)(message)
        room = max(window - taken, _SMALLEST_BUDGET)
        return room if self._context_tokens is None else min(self._context_tokens, room)
