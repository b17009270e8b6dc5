"""How the engine's questions become calls of a model."""

from __future__ import annotations

from app.answering.model import AnswerModel, AnswerRequest, Reply
from app.answering.prompts import build_request
from app.answering.tokens import context_budget
from app.conversations.models import Question


class ModelAnswerer:
    """Builds requests for one api base and one budget, and has them answered."""

    def __init__(self, model: AnswerModel, api_base: str | None, context_tokens: int | None) -> None:
        self._model = model
        self._api_base = api_base
        self._context_tokens = context_tokens

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        """The call that asks this question with this context."""
        return build_request(question, context, model, self._api_base, repeat)

    async def answer(self, request: AnswerRequest) -> Reply:
        """Make the call, or take its reply from where it was kept."""
        return await self._model.answer(request)

    def context_budget(self, model: str) -> int:
        """Most tokens of memory in a prompt: as asked for, else what the model's window leaves."""
        return context_budget(model, self._context_tokens)
