"""LangGraph's store: ``--backend langgraph``. With ``--extractor`` LangMem's manager writes it by that model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_backends.adapters.library import LibraryMemory, library, require, spoken
from memory_backends.base import Exchange, Namespace, Recall
from memory_backends.resources import Resources

_SPACE = ("memories",)


class LangGraphMemory(LibraryMemory):
    """An ``InMemoryStore`` a conversation, searched by its own vector index."""

    store = "langgraph"
    distribution = "langgraph-checkpoint"

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        require("langgraph.store.memory", "langgraph")
        if resources.chat is not None:
            require("langmem", "langmem")
        self._held: Any = None

    async def open(self, namespace: Namespace) -> None:
        self.forget_all()
        dimension = await asyncio.to_thread(lambda: self.resources.embedder.dimension)
        stores = await asyncio.to_thread(library, "langgraph.store.memory")
        self._held = stores.InMemoryStore(index={"dims": dimension, "embed": self._embed, "fields": ["content"]})
        if self.resources.chat is not None:
            from memory_backends.adapters.langchain_model import langchain_model

            langmem = await asyncio.to_thread(library, "langmem")
            self._manager = langmem.create_memory_store_manager(
                langchain_model(self.resources.chat), namespace=_SPACE, store=self._held, enable_deletes=True
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
        """The store computes its vectors again, which the embedder's cache makes cheap."""
        for key, value in self.kept(path)["items"].items():
            await self._held.aput(_SPACE, key, value)


_ALL = 100_000


def _text(value: Mapping[str, Any]) -> str:
    """LangMem writes ``{"kind": "Memory", "content": {"content": text}}``."""
    content = value.get("content")
    return str(content.get("content", content) if isinstance(content, Mapping) else content)
