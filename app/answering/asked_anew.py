"""A model that is never given up, for services that run on."""

from __future__ import annotations

from app.answering.gate import GivenUpError
from app.answering.litellm_port import LiteLLMModel
from app.answering.model import AnswerRequest, Reply
from app.answering.pacing import Paces


class AskedAnew:
    """Asks through LiteLLM whoever was wrong the last time: a key, or a model, may have been put right since."""

    def __init__(self) -> None:
        self._paces = Paces()
        self._inner = LiteLLMModel(paces=self._paces)

    async def answer(self, request: AnswerRequest) -> Reply:
        """The reply. Every failure is one, with its reason."""
        self._paces.try_again()
        try:
            return await self._inner.answer(request)
        except GivenUpError as error:
            return Reply(text=None, error=str(error))
