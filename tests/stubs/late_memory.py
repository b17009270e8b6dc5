"""A memory that writes what it heard one exchange later, and has no ``settle()``."""

from __future__ import annotations

from memory_backends.base import Exchange, Hit, MemoryBackend, Namespace, Recall, Snapshot
from memory_backends.resources import Resources
from memory_backends.retrieval.rendering import assemble


class LateMemory(MemoryBackend):
    """Keeps what the user said, without naming any turn."""

    def __init__(self, resources: Resources) -> None:
        self.count_tokens = resources.count_tokens
        self._pending: list[Exchange] = []
        self._kept: dict[str, str] = {}

    async def open(self, namespace: Namespace) -> None:
        self._pending, self._kept = [], {}

    async def observe(self, exchange: Exchange) -> None:
        for each in self._pending:
            self._kept[f"m{each.turn_number}"] = f"note: {each.messages[0].text}"
        self._pending = [exchange]

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        hits = [
            Hit(id=id_, store="late", place="notes", rank=rank, score=None, text=text)
            for rank, (id_, text) in enumerate([*self._kept.items()][:top_k], start=1)
        ]
        order = {hit.id: place for place, hit in enumerate(hits)}
        return assemble(hits, order, context_tokens, self.count_tokens)

    async def snapshot(self) -> Snapshot:
        return Snapshot(points={"late": {"notes": {id_: {"text": text} for id_, text in self._kept.items()}}})
