"""Graphiti, the graph of Zep: ``--backend graphiti``, on an embedded Kuzu database for each conversation.

It uses the run's embedder, and sends no telemetry. With ``--extractor`` that model extracts entities and facts.
Without one every exchange is a fact of its own, so that Graphiti's search by words and vectors is tried alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memory_backends.adapters.library import LibraryMemory, library, require
from memory_backends.base import ClosingStatus, Exchange, Namespace, Recall
from memory_backends.metering import MeteredChat
from memory_backends.resources import Resources

_SHOWN = ("fact", "name", "valid_at", "invalid_at", "expired_at")
_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""Graphiti wants a time. An undated conversation gets one that says nothing of the day it is replayed on."""


class GraphitiMemory(LibraryMemory):
    """A graph a conversation; its items are the facts, which are edges."""

    store = "graphiti"
    place = "facts"
    distribution = "graphiti-core"

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        require("graphiti_core", "graphiti")
        require("kuzu", "graphiti")
        self._graph: Any = None

    async def open(self, namespace: Namespace) -> None:
        await self.close("cancelled")
        self.forget_all()
        self._graph = await graphiti_graph(self)

    async def add(self, exchange: Exchange) -> None:
        said_at = exchange.said_at.replace(tzinfo=UTC) if exchange.said_at else _UNDATED
        if self.resources.chat is None:
            await self._store_as_fact(exchange, said_at)
            return
        before = {edge.uuid: edge.fact for edge in await self._facts()}
        await self._graph.add_episode(
            name=exchange.turn_ids[0],
            episode_body=exchange.text,
            source_description="conversation",
            reference_time=said_at,
            group_id=GROUP,
        )
        self.changed(before, {edge.uuid: edge.fact for edge in await self._facts()}, exchange)

    async def _store_as_fact(self, exchange: Exchange, said_at: datetime) -> None:
        nodes, edges = library("graphiti_core.nodes"), library("graphiti_core.edges")
        ends = [
            nodes.EntityNode(name=f"{place} {exchange.turn_ids[0]}", group_id=GROUP) for place in ("from", "to")
        ]
        for end in ends:
            end.name_embedding = await self._graph.embedder.create(end.name)
            await end.save(self._graph.driver)
        edge = edges.EntityEdge(
            source_node_uuid=ends[0].uuid,
            target_node_uuid=ends[1].uuid,
            name="SAID",
            fact=exchange.text,
            group_id=GROUP,
            created_at=said_at,
            valid_at=said_at,
        )
        edge.fact_embedding = await self._graph.embedder.create(edge.fact)
        await edge.save(self._graph.driver)
        self.written(edge.uuid, exchange)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        edges = await self._graph.search(question, group_ids=[GROUP], num_results=top_k)
        return self.recall_of((self.found(edge.uuid, edge.fact, None) for edge in edges), context_tokens)

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        return {edge.uuid: _payload(edge) for edge in await self._facts()}

    async def close(self, status: ClosingStatus) -> None:
        if self._graph is not None:
            graph, self._graph = self._graph, None
            await graph.close()

    async def _facts(self) -> list[Any]:
        if self._graph is None:
            return []
        edges = library("graphiti_core.edges")
        try:
            found: list[Any] = await edges.EntityEdge.get_by_group_ids(self._graph.driver, [GROUP])
        except library("graphiti_core.errors").GroupsEdgesNotFoundError:
            return []
        return sorted(found, key=lambda edge: str(edge.uuid))


def _payload(edge: Any) -> Mapping[str, Any]:
    values = {name: getattr(edge, name, None) for name in _SHOWN}
    unknown = (None, _UNDATED, _UNDATED.replace(tzinfo=None))
    return {name: str(value) for name, value in values.items() if value not in unknown}


GROUP = "conversation"


async def graphiti_graph(memory: LibraryMemory) -> Any:
    """Return an empty ``Graphiti``."""
    await asyncio.to_thread(_imported)
    graph = _made(memory)
    await _make_indices(graph.driver)
    return graph


def _imported() -> None:
    """Import the library without telemetry, and without the .env of a folder that it guesses."""
    os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
    before = set(os.environ)
    library("graphiti_core")
    library("graphiti_core.driver.kuzu_driver")
    for name in set(os.environ) - before:
        del os.environ[name]


async def _make_indices(driver: Any) -> None:
    """Create the text indices that searches need; Graphiti does not create them in Kuzu by itself."""
    await driver.build_indices_and_constraints()
    queries = library("graphiti_core.graph_queries")
    for query in queries.get_fulltext_indices(driver.provider):
        await driver.execute_query(query)


def _made(memory: LibraryMemory) -> Any:
    """Graphiti with the run's embedder and model. Its ranking by a model is not used by its plain search."""
    embedder_client = library("graphiti_core.embedder.client").EmbedderClient
    model_client = library("graphiti_core.llm_client.client").LLMClient
    reranker_client = library("graphiti_core.cross_encoder.client").CrossEncoderClient

    class Embedder(embedder_client):  # type: ignore[misc,valid-type]
        async def create(self, input_data: Any) -> list[float]:
            text = input_data if isinstance(input_data, str) else "\n".join(map(str, input_data))
            return (await asyncio.to_thread(memory.vectors, [text]))[0]

        async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
            return await asyncio.to_thread(memory.vectors, input_data_list)

    class Model(model_client):  # type: ignore[misc,valid-type]
        async def _generate_response(self, messages: Any, response_model: Any = None, *_: Any, **__: Any) -> Any:
            assert memory.resources.chat is not None
            return await _structured(memory.resources.chat, messages, response_model)

    class Unused(reranker_client):  # type: ignore[misc,valid-type]
        async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
            return [(passage, 0.0) for passage in passages]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Kuzu
        driver = library("graphiti_core.driver.kuzu_driver").KuzuDriver()
    driver._database = GROUP  # Graphiti reads it, and Kuzu's driver does not set it
    return library("graphiti_core").Graphiti(
        graph_driver=driver, llm_client=Model(None), embedder=Embedder(), cross_encoder=Unused()
    )


async def _structured(chat: MeteredChat, messages: Any, response_model: Any) -> dict[str, Any]:
    """Return the model's reply as JSON, by the schema where Graphiti gives one."""
    sent = [{"role": message.role, "content": message.content} for message in messages]
    wanted: dict[str, Any] = {"type": "json_object"}
    if response_model is not None:
        schema = {"name": response_model.__name__, "schema": response_model.model_json_schema()}
        wanted = {"type": "json_schema", "json_schema": schema}
    reply = await chat.complete(sent, temperature=0, response_format=wanted)
    parsed: dict[str, Any] = json.loads(reply.text)
    return parsed
