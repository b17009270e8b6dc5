"""A memory that rewrites what it hears, as mem0, Zep and LangMem do: it knows nothing of our stores or field names.

What it makes of each turn is written down beforehand. It adds, rewrites, merges and deletes short texts, and
shows its store as plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memory_backends.base import Exchange, Hit, MemoryBackend, Namespace, Recall, Snapshot
from memory_backends.plugins import PluginAdapter
from memory_backends.retrieval.rendering import assemble
from tests.stubs.memory import count_words

Links = Literal["sources", "none"]
Shape = Literal["points", "list", "fields", "log"]


@dataclass(frozen=True)
class Write:
    """One change: the text of an item is set (``text``), or the item is deleted (None)."""

    item: str
    text: str | None


Script = Mapping[str, Sequence[Write]]
"""By turn id, what it writes once it has heard that turn."""


@dataclass
class RewritingMemory:
    """``script`` says what it writes. It gives the items in ``gives``, by default all that it has.

    ``links``: whether its hits name the turns they were made from. ``shape``: how its snapshot shows the items.
    ``late``: it writes in the background, after the turn was heard.
    """

    script: Script
    gives: tuple[str, ...] | None = None
    links: Links = "sources"
    shape: Shape = "points"
    late: bool = False
    items: dict[str, str] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    beside: tuple[str, ...] = ()
    """Items in a collection of their own, which its search does not read."""

    async def open(self, namespace: Namespace) -> None:
        self.items, self.sources, self.waiting = {}, {}, []

    async def observe(self, exchange: Exchange) -> None:
        self.waiting += exchange.turn_ids
        if not self.late:
            self._write()

    async def settle(self) -> None:
        self._write()

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        read = [item for item in self.items if item not in self.beside]
        found = [item for item in (read if self.gives is None else self.gives) if item in read][:top_k]
        hits = [self._hit(rank, item) for rank, item in enumerate(found, start=1)]
        order = {item: rank for rank, item in enumerate(found)}
        return assemble(hits, order, context_tokens, count_words)

    async def snapshot(self) -> Snapshot:
        held: Any
        match self.shape:
            case "points":
                held = {item: {"memory": text, "hash": f"{len(text):x}"} for item, text in self.items.items()}
                places = {
                    "memories": {item: payload for item, payload in held.items() if item not in self.beside},
                    "summaries": {item: payload for item, payload in held.items() if item in self.beside},
                }
                return Snapshot(points={"theirs": {place: items for place, items in places.items() if items}})
            case "list":
                held = {"memories": list(self.items.values())}
            case "fields":
                held = dict(self.items)
            case "log":
                held = "\n".join(self.items.values())
        return Snapshot(values={"theirs": {"memories": held}})

    def _write(self) -> None:
        for turn in self.waiting:
            for write in self.script.get(turn, ()):
                if write.text is None:
                    self.items.pop(write.item, None)
                else:
                    self.items[write.item] = write.text
                    self.sources.setdefault(write.item, []).append(turn)
        self.waiting = []

    def _hit(self, rank: int, item: str) -> Hit:
        sources = tuple(self.sources[item]) if self.links == "sources" else ()
        text = self.items[item]
        return Hit(id=item, store="theirs", place="memories", rank=rank, score=1 / rank, text=text, sources=sources)


def rewriting(script: Script, **how: Any) -> MemoryBackend:
    """Such a memory, plugged in."""
    return PluginAdapter("rewriter", RewritingMemory(script, **how))
