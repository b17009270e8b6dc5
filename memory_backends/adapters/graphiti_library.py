"""Graphiti on an embedded Kuzu database, made with the run's embedder and model, and without telemetry."""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from typing import Any

from memory_backends.adapters.library import LibraryMemory, library
from memory_backends.metering import MeteredChat

GROUP = "conversation"


async def graphiti_graph(memory: LibraryMemory) -> Any:
    """An empty ``Graphiti``."""
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
    """The text indices that searches need, which Graphiti does not create in Kuzu by itself."""
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
    """The model's reply as JSON, by the schema where Graphiti gives one."""
    sent = [{"role": message.role, "content": message.content} for message in messages]
    wanted: dict[str, Any] = {"type": "json_object"}
    if response_model is not None:
        schema = {"name": response_model.__name__, "schema": response_model.model_json_schema()}
        wanted = {"type": "json_schema", "json_schema": schema}
    reply = await chat.complete(sent, temperature=0, response_format=wanted)
    parsed: dict[str, Any] = json.loads(reply.text)
    return parsed
