"""mem0: ``--backend mem0``. Its own store and search, with the run's embedder and, with ``--extractor``, its model.

mem0 keeps vectors in Qdrant: embedded, or the run's server. Without a model every message is stored
(``infer=False``). It sends no telemetry. The user's configuration of mem0 counts, except its model, embedder and
stores, which are the run's; in it ``search`` holds arguments of mem0's search, such as ``threshold``.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from memory_backends.adapters.library import LibraryMemory, library, require, spoken
from memory_backends.base import (
    BackendError,
    Exchange,
    MemoryDescription,
    Namespace,
    Recall,
    Snapshot,
    StoreInfo,
)
from memory_backends.metering import MeteredChat
from memory_backends.resources import Resources

_USER = "memreplay"
_ALL = 100_000
"""More items than a conversation has."""


class Mem0Memory(LibraryMemory):
    """One mem0 ``Memory`` a conversation."""

    store = "mem0"
    distribution = "mem0ai"
    takes = ("extractor", "backend_config")
    description = MemoryDescription(
        stores=tuple(StoreInfo(prefix=place, is_scratch=True) for place in ("entities", "history"))
    )

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        require("mem0", "mem0")
        self._config = resources.configs.get("mem0", {})
        if self._config:
            _check(self._config)
        self._memory: Any = None

    async def open(self, namespace: Namespace) -> None:
        self.forget_all()
        self._memory = await asyncio.to_thread(mem0_memory, self, namespace.point_id("mem0"))

    async def add(self, exchange: Exchange) -> None:
        infer = self.resources.chat is not None
        messages = [
            {"role": message.role, "content": spoken(message) if infer else message.line}
            for message in exchange.messages
        ]
        with _dated(self._memory, exchange.said_at):
            added = await asyncio.to_thread(self._memory.add, messages, user_id=_USER, infer=infer)
        for item in added["results"]:
            self.written(str(item["id"]), exchange)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        asked = {**self._config.get("search", {}), **self._scoped(self._memory.search, top_k)}
        found = await asyncio.to_thread(self._memory.search, question, **asked)
        best = found["results"][:top_k]
        items = (self.found(str(item["id"]), item["memory"], item.get("score")) for item in best)
        return self.recall_of(items, context_tokens)

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        if self._memory is None:
            return None
        held = await asyncio.to_thread(self._memory.get_all, **self._scoped(self._memory.get_all, _ALL))
        return {
            str(item["id"]): {
                name: value for name, value in item.items() if value is not None and name not in _HIDDEN
            }
            for item in held["results"]
        }

    async def snapshot(self) -> Snapshot:
        """Return the memories, the entities that mem0 links to them, and its history of what it did to each."""
        memories = await self.items()
        if memories is None:
            return Snapshot()
        beside = await asyncio.to_thread(lambda: {"entities": self._entities(), "history": self._history()})
        return Snapshot(points={self.store: {self.place: memories, **{k: v for k, v in beside.items() if v}}})

    def _entities(self) -> Mapping[str, Mapping[str, Any]]:
        store = getattr(self._memory, "_entity_store", None)  # the public property would create it
        return {} if store is None else {id_: dict(payload) for id_, payload, _ in _points_of(store)}

    def _history(self) -> Mapping[str, Mapping[str, Any]]:
        rows = self._memory.db.connection.execute(
            "select id, event, old_memory, new_memory from history order by created_at, rowid"
        )
        fields = ("event", "old_memory", "new_memory")
        return {
            str(id_): {name: value for name, value in zip(fields, values, strict=True) if value is not None}
            for id_, *values in rows
        }

    async def save(self, path: Path) -> None:
        await asyncio.to_thread(self._save, path)

    def _save(self, path: Path) -> None:
        """Save the points of mem0's two collections with their vectors, and its log of messages."""
        self.keep(path, points={name: _points_of(store) for name, store in self._stores().items()})
        with closing(sqlite3.connect(path / "messages.sqlite3")) as messages:
            self._memory.db.connection.backup(messages)

    async def load(self, path: Path) -> None:
        await asyncio.to_thread(self._load, path)

    def _load(self, path: Path) -> None:
        kept = self.kept(path)
        for name, store in self._stores().items():
            if points := kept["points"][name]:
                ids, payloads, vectors = zip(*points, strict=True)
                store.insert(vectors=list(vectors), payloads=list(payloads), ids=list(ids))
        with closing(sqlite3.connect(path / "messages.sqlite3")) as messages:
            messages.backup(self._memory.db.connection)

    def _stores(self) -> dict[str, Any]:
        """mem0's memories and, in newer versions, the entities named in them."""
        stores = {"memories": self._memory.vector_store}
        return stores | ({"entities": self._memory.entity_store} if hasattr(self._memory, "entity_store") else {})

    @staticmethod
    def _scoped(method: Any, most: int) -> dict[str, Any]:
        """Return how this version of mem0 is told whose memories, and how many."""
        if "top_k" in inspect.signature(method).parameters:
            return {"filters": {"user_id": _USER}, "top_k": most}
        return {"user_id": _USER, "limit": most}


def _points_of(store: Any) -> list[tuple[str, Any, list[float]]]:
    """Id, payload and vector of everything in one of mem0's vector stores."""
    records, _ = store.client.scroll(store.collection_name, limit=_ALL, with_payload=True, with_vectors=True)
    dense = ((each, each.vector[""] if isinstance(each.vector, dict) else each.vector) for each in records)
    return [(str(each.id), each.payload, vector) for each, vector in dense]


_HIDDEN = frozenset({"id", "user_id"})


def _check(config: Mapping[str, Any]) -> None:
    """Raise BackendError for a part that the run sets, or that this version of mem0 does not know."""
    for name in config.keys() & _OF_THE_RUN:
        raise BackendError(f"mem0's {name} is the run's own: leave it out of its configuration")
    _mem0()
    known = library("mem0.configs.base").MemoryConfig.model_fields.keys()
    if unknown := config.keys() - known - {"search"}:
        raise BackendError(f"this version of mem0 has no setting {', '.join(sorted(unknown))}")


_OF_THE_RUN = frozenset({"llm", "embedder", "vector_store", "history_db_path"})
"""Parts of mem0's configuration that it gets from the run."""


@contextmanager
def _dated(memory: Any, said_at: datetime | None) -> Iterator[None]:
    """Tell mem0's model when the messages were said, beside the instructions of the user: left to itself, mem0 says
    that it was today.

    An argument ``prompt`` of ``add`` would replace these instructions (2.2), or be ignored (2.0 and before).
    """
    if said_at is None:
        yield
        return
    day = f"{said_at:%Y-%m-%d}"
    when = f"The new messages were said on {day}."
    if hasattr(memory, "custom_instructions"):
        holder, name = memory, "custom_instructions"
        own = getattr(holder, name)
        dated = "\n\n".join(filter(None, (own, when)))
    else:  # mem0 1: the whole system prompt
        holder, name = memory.config, "custom_fact_extraction_prompt"
        own = getattr(holder, name)
        usual, _ = library("mem0.memory.utils").get_fact_retrieval_messages("")
        dated = (own or _TODAY.sub(rf"\g<1>{day}", usual)) + f"\n\n{when}"
    setattr(holder, name, dated)
    try:
        yield
    finally:
        setattr(holder, name, own)


_TODAY = re.compile(r"(Today's date is )\d{4}-\d\d-\d\d")


_folder: TemporaryDirectory[str] | None = None


def _mem0() -> Any:
    """Return the library without telemetry. On import it creates a folder, which is removed when the process
    ends.
    """
    global _folder
    os.environ["MEM0_TELEMETRY"] = "False"
    if _folder is None:
        _folder = TemporaryDirectory(prefix="memreplay-mem0-")
        os.environ["MEM0_DIR"] = _folder.name
    mem0 = library("mem0")
    for module in ("mem0.memory.main", "mem0.memory.telemetry"):
        library(module).MEM0_TELEMETRY = False  # if somebody imported it before
    return mem0


def mem0_memory(memory: LibraryMemory, collection: str) -> Any:
    """Return an empty ``Memory`` whose vectors are in a collection of this name. Slow at first: call it in a
    thread.
    """
    resources = memory.resources
    client = resources.qdrant.client()
    if client.collection_exists(collection):
        client.delete_collection(collection)
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    store = {
        "client": client,
        "collection_name": collection,
        "embedding_model_dims": resources.embedder.dimension,
    }
    config = {
        "vector_store": {"provider": "qdrant", "config": store},
        "llm": unused,
        "embedder": unused,
        "history_db_path": ":memory:",
    }
    own = {name: value for name, value in resources.configs.get("mem0", {}).items() if name != "search"}
    with warnings.catch_warnings():
        # The embedded Qdrant has no payload indexes, and needs none.
        warnings.filterwarnings("ignore", message="Payload indexes")
        made = _mem0().Memory.from_config({**own, **config})
    made.embedding_model = _Embedder(memory)
    made.llm = resources.chat and _Model(resources.chat)
    return made


class _Embedder:
    """mem0's interface of an embedder. mem0 1.0.0 reads the dimension in its ``config``."""

    def __init__(self, memory: LibraryMemory) -> None:
        self._memory = memory
        self.config = SimpleNamespace(embedding_dims=memory.resources.embedder.dimension)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._memory.vectors([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return self._memory.vectors(texts)


class _Model:
    """mem0's interface of a language model."""

    def __init__(self, chat: MeteredChat) -> None:
        self._chat = chat

    def generate_response(self, messages: Sequence[Mapping[str, Any]], **parameters: Any) -> str:
        """Called in a thread. mem0 asks for tools only of graphs, which are not used."""
        parameters = {name: value for name, value in parameters.items() if name == "response_format"}
        return self._chat.complete_in_thread(messages, temperature=0, **parameters).text
