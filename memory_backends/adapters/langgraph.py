"""LangGraph's store: ``--backend langgraph``. With ``--extractor`` LangMem's manager writes it by that model.

The user's configuration has arguments of LangMem's ``create_memory_store_manager`` by their names; its ``schemas``
map each to its description and to those of its fields.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict

from memory_backends.adapters.library import LibraryMemory, classes_of, library, require, spoken
from memory_backends.base import BackendError, Exchange, Namespace, Recall
from memory_backends.metering import ChatMessage, MeteredChat
from memory_backends.resources import Resources


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
    """Return the model, for one memory."""
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


_SPACE = ("memories",)
_OF_MANAGER = frozenset({"enable_deletes", "enable_inserts", "instructions", "query_limit", "schemas"})
"""Arguments of LangMem's manager that its user may set."""


class LangGraphMemory(LibraryMemory):
    """An ``InMemoryStore`` a conversation, searched by its own vector index."""

    store = "langgraph"
    distribution = "langgraph-checkpoint"
    takes = ("extractor", "backend_config")

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        require("langgraph.store.memory", "langgraph")
        if resources.chat is not None:
            require("langmem", "langmem")
        self._config = {"enable_deletes": True, **resources.configs.get("langgraph", {})}
        if unknown := self._config.keys() - _OF_MANAGER:
            raise BackendError(f"this langgraph has no setting {', '.join(sorted(unknown))}")
        if "schemas" in self._config:
            self._config["schemas"] = list(classes_of(self._config["schemas"], "langgraph's schemas").values())
        self._held: Any = None

    async def open(self, namespace: Namespace) -> None:
        self.forget_all()
        dimension = await asyncio.to_thread(lambda: self.resources.embedder.dimension)
        stores = await asyncio.to_thread(library, "langgraph.store.memory")
        self._held = stores.InMemoryStore(index={"dims": dimension, "embed": self._embed, "fields": ["content"]})
        if self.resources.chat is not None:
            from memory_backends.adapters.langgraph import langchain_model

            langmem = await asyncio.to_thread(library, "langmem")
            self._manager = langmem.create_memory_store_manager(
                langchain_model(self.resources.chat), namespace=_SPACE, store=self._held, **self._config
            )

    async def _embed(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self.vectors, texts)

    async def add(self, exchange: Exchange) -> None:
        if self.resources.chat is None:
            key = exchange.turn_ids[0]
            value = {"content": exchange.text, "sources": list(exchange.turn_ids)}
            await self._held.aput(_SPACE, key, value)
            self.written(key, exchange)
            return
        before = self._items()
        messages = [{"role": message.role, "content": spoken(message)} for message in exchange.messages]
        await self._manager.ainvoke({"messages": messages})
        self.changed(before, self._items(), exchange)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        items = await self._held.asearch(_SPACE, query=question, limit=top_k)
        found = (self.found(item.key, _text(item.value), item.score) for item in items)
        return self.recall_of(found, context_tokens)

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        return None if self._held is None else self._items()

    def _items(self) -> dict[str, Mapping[str, Any]]:
        return {item.key: item.value for item in self._held.search(_SPACE, limit=_ALL)}

    async def save(self, path: Path) -> None:
        self.keep(path, items=self._items())

    async def load(self, path: Path) -> None:
        """Load the items. The store computes its vectors again, which the embedder's cache makes cheap."""
        for key, value in self.kept(path)["items"].items():
            await self._held.aput(_SPACE, key, value)


_ALL = 100_000


def _text(value: Mapping[str, Any]) -> str:
    """LangMem writes ``{"kind": "Memory", "content": {"content": text}}``, or the fields of a schema."""
    content = value.get("content")
    if not isinstance(content, Mapping):
        return str(content)
    if "content" in content:
        return str(content["content"])
    return "; ".join(f"{field}: {said}" for field, said in content.items() if said is not None)
