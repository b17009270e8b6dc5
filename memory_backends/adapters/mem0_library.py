"""mem0's ``Memory``, made with the run's vector store, embedder and model, and without telemetry."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from memory_backends.adapters.library import LibraryMemory, library
from memory_backends.metering import MeteredChat

_folder: TemporaryDirectory[str] | None = None


def _mem0() -> Any:
    """The library without telemetry. On import it creates a folder, which is removed when the process ends."""
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
    """An empty ``Memory`` whose vectors are in a collection of this name. Slow at first: call it in a thread."""
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
    with warnings.catch_warnings():
        # The embedded Qdrant has no payload indexes, and needs none.
        warnings.filterwarnings("ignore", message="Payload indexes")
        made = _mem0().Memory.from_config(config)
    made.embedding_model = _Embedder(memory)
    made.llm = resources.chat and _Model(resources.chat)
    return made


class _Embedder:
    """mem0's interface of an embedder."""

    def __init__(self, memory: LibraryMemory) -> None:
        self._memory = memory

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
