"""The model that judges, or plays a part in, a test: one for all datasets, whatever model they would wish for."""

from __future__ import annotations

from memreplay.dataset_interfaces.language_model import LLMReply, LLMRequest
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.model import AnswerModel, AnswerRequest, PromptMessage


class Judge:
    """Asks one model, with the parameters that the dataset sets."""

    def __init__(self, name: str, model: AnswerModel, api_base: str | None) -> None:
        self.name = name
        self._model = model
        self._api_base = api_base
        self.rejected: set[str] = set()
        """Replies that were of no use: kept ones are not taken again, and the call is made as another one."""

    async def answer(self, request: LLMRequest, repeat: int = 0) -> LLMReply:
        """Ask once. A failure, a refusal included, is a reply with an error; ``repeat`` keeps wanted ones apart."""
        parameters = {"temperature": request.temperature, "max_tokens": request.max_tokens, **request.parameters}
        messages = tuple(
            PromptMessage(role=message["role"], segments=(message["content"],)) for message in request.context
        )
        call = AnswerRequest(
            model=self.name, api_base=self._api_base, messages=messages, parameters=parameters, repeat=repeat
        )
        reply = await self._model.answer(call)
        while reply.reused and reply.text in self.rejected:
            call = call.model_copy(update={"repeat": call.repeat + 1})
            reply = await self._model.answer(call)
        if reply.refused:
            return LLMReply(None, reply.cost_usd, "the provider refused")
        return LLMReply(reply.text, reply.cost_usd, reply.error)


def refuse_extractive_judge(name: str | None) -> None:
    """The embedded reader only picks sentences: it can judge nothing.

    Raises:
        UsageError: it was named as the judge.
    """
    if name == EXTRACTIVE_MODEL:
        raise UsageError(f"--judge {name}: the embedded reader cannot judge; name a language model")
