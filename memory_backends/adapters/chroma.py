"""Chroma: ``--backend chroma``. A plain vector store of exchanges or, with ``--extractor``, of extracted facts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_backends.adapters.library import Found, LibraryMemory, library, require
from memory_backends.base import Exchange, Namespace, Recall
from memory_backends.resources import Resources


class ChromaMemory(LibraryMemory):
    """One collection a conversation, in Chroma's in-memory client. Metadata name the turns."""

    store = "chroma"
    distribution = "chromadb"

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        require("chromadb", "chroma")
        self._collection: Any = None

    async def open(self, namespace: Namespace) -> None:
        self.forget_all()
        self._name = f"memreplay-{namespace.point_id('chroma')}"
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        chromadb = library("chromadb")
        client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
        if self._name in {collection.name for collection in client.list_collections()}:
            client.delete_collection(self._name)
        self._collection = client.create_collection(
            self._name, metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    async def add(self, exchange: Exchange) -> None:
        texts, sources = [exchange.text], [exchange.turn_ids]
        extractor = self.resources.extractor
        if extractor is not None:
            facts, _ = await extractor.extract(exchange)
            texts = [fact.text for fact in facts]
            sources = [(fact.turn_id,) for fact in facts]
        if texts:
            await asyncio.to_thread(self._write, exchange, texts, sources)

    def _write(self, exchange: Exchange, texts: Sequence[str], sources: Sequence[tuple[str, ...]]) -> None:
        said_at = {"said_at": exchange.said_at.isoformat()} if exchange.said_at else {}
        kind = "turns" if self.resources.extractor is None else "sources"
        self._collection.upsert(
            ids=[f"{exchange.turn_ids[0]}/{number}" for number in range(len(texts))],
            documents=list(texts),
            embeddings=self.vectors(texts),
            metadatas=[
                {kind: "\n".join(turns), "turn_number": exchange.turn_number, **said_at} for turns in sources
            ],
        )

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        return self.recall_of(await asyncio.to_thread(self._search, question, top_k), context_tokens)

    def _search(self, question: str, top_k: int) -> list[Found]:
        most = min(top_k, self._collection.count())
        if not most:
            return []
        found = self._collection.query(query_embeddings=self.vectors([question]), n_results=most)
        rows = zip(
            found["ids"][0], found["documents"][0], found["distances"][0], found["metadatas"][0], strict=True
        )
        return [
            Found(
                id_,
                text,
                1 - distance,
                datetime.fromisoformat(noted["said_at"]) if "said_at" in noted else None,
                noted["turn_number"],
                _named(noted, "turns"),
                _named(noted, "sources"),
            )
            for id_, text, distance, noted in rows
        ]

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        if self._collection is None:
            return None
        held = await asyncio.to_thread(self._collection.get)
        return {
            id_: {"document": text, "sources": [*_named(noted, "turns"), *_named(noted, "sources")]}
            for id_, text, noted in zip(held["ids"], held["documents"], held["metadatas"], strict=True)
        }

    async def save(self, path: Path) -> None:
        held = await asyncio.to_thread(self._collection.get, include=["documents", "embeddings", "metadatas"])
        kept = {name: held[name] for name in ("ids", "documents", "metadatas")}
        self.keep(path, **kept, embeddings=[list(map(float, vector)) for vector in held["embeddings"]])

    async def load(self, path: Path) -> None:
        kept = self.kept(path)
        if kept["ids"]:
            await asyncio.to_thread(lambda: self._collection.upsert(**kept))


def _named(metadata: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Turn ids, which Chroma keeps as one text."""
    return tuple(str(metadata.get(field) or "").split("\n")) if metadata.get(field) else ()
