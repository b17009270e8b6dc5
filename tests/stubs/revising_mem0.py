"""The real mem0, revised by a model: beside adding, it rewrites and deletes what mem0 stored.

Agents do so with mem0's ``update`` and ``delete`` as tools. The script says what the model wants after which turn.
"""

from __future__ import annotations

import asyncio
import json

from memory_backends.adapters.mem0 import Mem0Memory
from memory_backends.base import Exchange


class RevisingMem0(Mem0Memory):
    """Asks its model for revisions: ``{"update": {old text: new text}, "delete": [text]}``."""

    async def observe(self, exchange: Exchange) -> None:
        await super().observe(exchange)
        assert self.resources.chat is not None
        message = await self.resources.chat.complete([{"role": "user", "content": f"Revise: {exchange.text}"}])
        wanted = json.loads(message.text)
        ids = {item["memory"]: id_ for id_, item in (await self.snapshot()).points["mem0"]["memories"].items()}
        for old, new in wanted.get("update", {}).items():
            await asyncio.to_thread(self._memory.update, ids[old], new)
        for text in wanted.get("delete", []):
            await asyncio.to_thread(self._memory.delete, ids[text])


class SkippingMem0(Mem0Memory):
    """Skips exchanges in which nobody names a colour."""

    async def add(self, exchange: Exchange) -> None:
        if "colour" in exchange.text:
            await super().add(exchange)
