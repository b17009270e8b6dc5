"""A model that reaches no network: what is not on record is an error."""

from __future__ import annotations

from app.answering.model import AnswerModel, AnswerRequest, Reply
from app.answering.model_names import EXTRACTIVE_MODEL


class OfflineModel:
    """Lets only the embedded reader be asked; it needs no network."""

    def __init__(self, inner: AnswerModel) -> None:
        self._inner = inner

    async def answer(self, request: AnswerRequest) -> Reply:
        """The embedded reader's reply, or an error."""
        if request.model == EXTRACTIVE_MODEL:
            return await self._inner.answer(request)
        return Reply(text=None, error="offline: this call is not on record")
