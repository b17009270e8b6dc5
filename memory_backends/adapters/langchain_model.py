"""The run's model as LangChain's chat model, for libraries that are written for LangChain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict

from memory_backends.metering import ChatMessage, MeteredChat


class LangChainModel(BaseChatModel):
    """Passes messages and tools to ``chat``, and returns its message."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    chat: MeteredChat

    @property
    def _llm_type(self) -> str:
        return "memreplay"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **parameters: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """``tool_choice`` is ``auto``, ``any``, or the name of a tool."""
        chosen: Any = {"any": "required", None: "auto"}.get(tool_choice, tool_choice)
        if chosen not in ("auto", "none", "required"):
            chosen = {"type": "function", "function": {"name": chosen}}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=chosen)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **parameters: Any,
    ) -> ChatResult:
        return _result(await self.chat.complete(_sent(messages), **_wanted(parameters)))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **parameters: Any,
    ) -> ChatResult:
        return _result(self.chat.complete_in_thread(_sent(messages), **_wanted(parameters)))


def langchain_model(chat: MeteredChat) -> LangChainModel:
    """The model, for one memory."""
    return LangChainModel(chat=chat)


def _sent(messages: list[BaseMessage]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = convert_to_openai_messages(messages)
    return sent


def _wanted(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: parameters[name] for name in ("tools", "tool_choice", "response_format") if name in parameters}


def _result(message: ChatMessage) -> ChatResult:
    from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call

    calls, invalid = [], []
    for call in message.tool_calls:
        try:
            calls.append(parse_tool_call(dict(call), return_id=True))
        except Exception as error:
            invalid.append(make_invalid_tool_call(dict(call), str(error)))
    said = AIMessage(content=message.text, tool_calls=[call for call in calls if call], invalid_tool_calls=invalid)
    return ChatResult(generations=[ChatGeneration(message=said)])
