"""The common parts of adapters: a library imported late, exchanges seen once, what is kept, and hits made into a
context.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from memory_backends.base import (
    BackendError,
    Exchange,
    Hit,
    MemoryBackend,
    Message,
    Recall,
    SeenExchanges,
    Snapshot,
    TokenCounter,
)
from memory_backends.resources import Resources
from memory_backends.retrieval.rendering import assemble, under_date

MOST_CHARACTERS = 4 * 1024 * 1024
"""Characters of all that a library returns for a question: as many as an agent may reply."""


def require(module: str, extra: str) -> None:
    """Raise :class:`BackendError`, which says how to install it, unless a library is there. Imports nothing."""
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise BackendError(f"it needs a package: pip install 'memreplay[{extra}]'")


def library(module: str) -> Any:
    """Return a library's module, silent: failures are exceptions. Slow at first: call it in a thread."""
    logging.getLogger(module.partition(".")[0]).setLevel(logging.CRITICAL)
    return import_module(module)


def classes_of(given: Any, setting: str) -> dict[str, Any]:
    """Return classes by name, as libraries want the types of what they extract.

    ``given`` maps each to a table of its description and of those of its fields, which are optional texts.

    Raises:
        BackendError: it is no such table; ``setting`` names it.
    """
    from pydantic import Field, create_model

    classes: dict[str, Any] = {}
    for name, parts in given.items() if isinstance(given, Mapping) else [("", None)]:
        if not isinstance(parts, Mapping) or not all(isinstance(text, str) for text in parts.values()):
            raise BackendError(
                f"{setting}: expected for each type a table of its description and of those of its fields, such as"
                ' {Bridge = {description = "A bridge.", material = "What it is built of."}}'
            )
        fields: dict[str, Any] = {
            field: (str | None, Field(default=None, description=text))
            for field, text in parts.items()
            if field != "description"
        }
        classes[name] = create_model(str(name), __doc__=parts.get("description"), **fields)
    return classes


@dataclass(frozen=True)
class Found:
    """An item that a library returned.

    ``said_at`` is the conversation's date of it, ``order`` places it in time. ``place`` is the collection that
    holds it, if the library has several.
    """

    id: str
    text: str
    score: float | None
    said_at: datetime | None = None
    order: float = 0
    turns: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    place: str | None = None


class LibraryMemory(MemoryBackend):
    """The base of adapters. ``store`` labels its hits and snapshots, ``place`` is the collection shown.

    With ``--extractor`` a library writes what the model makes of an exchange, else the messages word for word.
    """

    takes: tuple[str, ...] = ("extractor",)
    store: ClassVar[str]
    distribution: ClassVar[str | None] = None
    """The library's package on PyPI: another version of it may write something else."""
    place: ClassVar[str] = "memories"
    works_elsewhere: ClassVar[bool] = False
    """True if it works in a server or a process of its own, so that an estimate must not open it."""

    def __init__(self, resources: Resources) -> None:
        self.count_tokens = resources.count_tokens
        self.resources = resources
        self.seen = SeenExchanges()
        self._written: dict[str, tuple[int, str | None]] = {}

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        self.count_tokens = count_tokens

    async def observe(self, exchange: Exchange) -> None:
        """Write an exchange once: libraries double what they are told twice."""
        if self.seen.is_new(exchange):
            await self.add(exchange)

    async def add(self, exchange: Exchange) -> None:
        """Write a new exchange."""
        raise NotImplementedError

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        """Return what is stored, by id, as plain JSON; None before ``open``."""
        raise NotImplementedError

    async def snapshot(self) -> Snapshot:
        """Return the library's items as points."""
        held = await self.items()
        return Snapshot() if held is None else Snapshot(points={self.store: {self.place: held}})

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        """Return what the library returns for an ordinary message."""
        return await self.recall(message.text, top_k, context_tokens)

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, of the run's embedder. Slow: call it in a thread."""
        rows: list[list[float]] = self.resources.embedder.embed(texts).tolist() if texts else []
        return rows

    def written(self, item: str, exchange: Exchange) -> None:
        """Note that an item was written, or changed, because of an exchange."""
        said_at = exchange.said_at
        self._written[item] = (exchange.turn_number, said_at.isoformat() if said_at else None)

    def changed(self, before: Mapping[str, Any], after: Mapping[str, Any], exchange: Exchange) -> None:
        """Items that are new, or not as they were, were written because of an exchange."""
        for item, value in after.items():
            if item not in before or before[item] != value:
                self.written(item, exchange)

    def found(self, item: str, text: str, score: float | None, place: str | None = None) -> Found:
        """Return what was found, with when it was last written."""
        order, said_at = self._written.get(item, (0, None))
        dated = datetime.fromisoformat(said_at) if said_at else None
        return Found(item, text, score, dated, order, place=place)

    def forget_all(self) -> None:
        """Start empty."""
        self.seen, self._written = SeenExchanges(), {}

    def keep(self, path: Path, **kept: Any) -> None:
        """Write plain JSON into a folder, with what the adapter knows beside the library's own store."""
        notes = {"seen": self.seen.state(), "written": self._written}
        text = json.dumps({**notes, **kept})
        (path / f"{self.store}.json").write_text(text, encoding="utf-8", errors="surrogatepass")

    def kept(self, path: Path) -> dict[str, Any]:
        """Return what :meth:`keep` wrote. What the adapter knew, it knows again."""
        text = (path / f"{self.store}.json").read_text(encoding="utf-8", errors="surrogatepass")
        kept: dict[str, Any] = json.loads(text)
        self.seen.restore(kept.pop("seen"))
        self._written = {item: (order, said_at) for item, (order, said_at) in kept.pop("written").items()}
        return kept

    def recall_of(self, found: Iterable[Found], context_tokens: int) -> Recall:
        """Return a recall with these items as hits, best first; its context has them in the order in which they
        were said.

        Raises:
            BackendError: the library returned more than :data:`MOST_CHARACTERS`.
        """
        found = list(found)
        if (returned := sum(len(item.text) for item in found)) > MOST_CHARACTERS:
            raise BackendError(f"{self.store} returned {returned:,} characters, more than {MOST_CHARACTERS:,}")
        hits = [
            Hit(
                id=item.id,
                store=self.store,
                place=item.place or self.place,
                rank=rank,
                score=item.score,
                text=under_date(item.text, item.said_at),
                turns=item.turns,
                sources=item.sources,
            )
            for rank, item in enumerate(found, start=1)
        ]
        places = sorted({item.order for item in found})
        order = {item.id: places.index(item.order) for item in found}
        return assemble(hits, order, context_tokens, self.count_tokens)


ORDINARY_LABELS = frozenset({"User", "AI"})
"""Labels that only repeat the role of a message."""


def spoken(message: Message) -> str:
    """Return the text of a message for libraries that take a role: with the speaker's name, where there is one."""
    return message.text if message.label in ORDINARY_LABELS else message.line
