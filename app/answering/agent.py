"""How an agent's next words are asked for: through the same model, cache and limits as any question."""

from __future__ import annotations

from datetime import datetime

from app.answering.agent_prompt import build_agent_request, longest_agent_reply
from app.answering.model import AnswerModel, AnswerRequest, Reply
from app.answering.tokens import PROMPT_RESERVE, context_budget, context_window, token_counter

_SMALLEST_BUDGET = 256


class ModelAgent:
    """Builds requests for one model, one api base and one wish for the budget, and has them answered.

    Each ``repeat`` of a run of tests has replies of its own.
    """

    def __init__(
        self, name: str, model: AnswerModel, api_base: str | None, context_tokens: int | None, *, repeat: int = 0
    ) -> None:
        self.name = name
        self._model = model
        self._api_base = api_base
        self._context_tokens = context_tokens
        self._repeat = repeat

    def request(self, message: str, context: str, now: datetime) -> AnswerRequest:
        """The call for the reply to a message, with what memory gave for it."""
        request = build_agent_request(message, context, now, self.name, self._api_base)
        return request.model_copy(update={"repeat": self._repeat})

    async def answer(self, request: AnswerRequest) -> Reply:
        """Make the call, or take its reply from where it was kept."""
        return await self._model.answer(request)

    def context_budget(self, message: str) -> int:
        """Most tokens of memory beside this message: as asked for, as far as the model's window allows."""
        window = context_window(self.name)
        if window is None:
            return context_budget(self.name, self._context_tokens)
        taken = PROMPT_RESERVE + longest_agent_reply(self.name) + token_counter(self.name)(message)
        room = max(window - taken, _SMALLEST_BUDGET)
        return room if self._context_tokens is None else min(self._context_tokens, room)
