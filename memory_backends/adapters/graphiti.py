"""Graphiti, the graph of Zep: ``--backend graphiti``, on an embedded Kuzu database for each conversation.

It uses the run's embedder and reranker, and sends no telemetry. With ``--extractor`` that model extracts entities
and facts. Without one every exchange is a fact of its own, so that Graphiti's search by words and vectors is tried
alone.

The user's configuration has arguments of Graphiti's ``add_episode`` by their names, and as ``search`` the name of
one of its search recipes; without one the search is Graphiti's plain one, which returns facts only. It maps each of
``entity_types`` to its description and to those of its fields.
"""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, zip_longest
from typing import Any

from memory_backends.adapters.library import Found, LibraryMemory, classes_of, library, require
from memory_backends.base import (
    BackendError,
    ClosingStatus,
    Exchange,
    MemoryDescription,
    Namespace,
    Recall,
    Snapshot,
    StoreInfo,
)
from memory_backends.metering import MeteredChat
from memory_backends.resources import Resources

_SHOWN = ("fact", "name", "valid_at", "invalid_at", "expired_at")
_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""Graphiti wants a time. An undated conversation gets one that says nothing of the day it is replayed on."""

_ENTITIES, _EPISODES, _COMMUNITIES = "entities", "episodes", "communities"

_OF_EPISODES = frozenset(
    {"custom_extraction_instructions", "entity_types", "excluded_entity_types", "update_communities"}
)
"""Arguments of Graphiti's ``add_episode`` that its user may set."""


class GraphitiMemory(LibraryMemory):
    """A graph a conversation: facts, which are edges, between entities, and the episodes that they were read in."""

    store = "graphiti"
    place = "facts"
    distribution = "graphiti-core"
    takes = ("extractor", "backend_config", "reranker")

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        require("graphiti_core", "graphiti")
        require("kuzu", "graphiti")
        config = dict(resources.configs.get("graphiti", {}))
        self._recipe = _recipe(config.pop("search", None), has_reranker=resources.reranker is not None)
        if unknown := config.keys() - _OF_EPISODES:
            raise BackendError(f"this graphiti has no setting {', '.join(sorted(unknown))}")
        if "entity_types" in config:
            config["entity_types"] = classes_of(config["entity_types"], "graphiti's entity_types")
        self._of_episodes = config
        reads_episodes = self._recipe is not None and self._recipe.episode_config is not None
        self.description = MemoryDescription(
            stores=(
                StoreInfo(prefix=self.place, superseded_field="invalid_at"),
                StoreInfo(prefix=_EPISODES, is_scratch=not reads_episodes),
            )
        )
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
        before = await self._texts()
        await self._graph.add_episode(
            name=exchange.turn_ids[0],
            episode_body=exchange.text,
            source_description="conversation",
            reference_time=said_at,
            group_id=GROUP,
            **self._of_episodes,
        )
        self.changed(before, await self._texts(), exchange)

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
        if self._recipe is None:
            edges = await self._graph.search(question, group_ids=[GROUP], num_results=top_k)
            return self.recall_of(map(self._fact, edges), context_tokens)
        recipe = self._recipe.model_copy(update={"limit": top_k})
        results = await self._graph.search_(question, config=recipe, group_ids=[GROUP])
        by_kind = (
            [self._fact(edge) for edge in results.edges],
            [self._summary(node, _ENTITIES) for node in results.nodes if node.summary],
            [self._summary(each, _COMMUNITIES) for each in results.communities if each.summary],
            [self.found(each.uuid, each.content, None, _EPISODES) for each in results.episodes],
        )
        # The limit of a recipe is that of each kind; ours is that of all, best of each kind first.
        best = [each for each in chain.from_iterable(zip_longest(*by_kind)) if each is not None]
        return self.recall_of(best[:top_k], context_tokens)

    def _fact(self, edge: Any) -> Found:
        """Return a fact with its validity, by the names of Graphiti's own context template."""
        times = {name: getattr(edge, name, None) for name in ("valid_at", "invalid_at")}
        is_said = self.resources.chat is not None and times != dict.fromkeys(times)
        known = {name: value for name, value in times.items() if _is_known(value)}
        since, until = _day(known, "valid_at", "?"), _day(known, "invalid_at", "Present")
        validity = f" (valid_at: {since}, invalid_at: {until})" if is_said and known else ""
        return self.found(edge.uuid, edge.fact + validity, None)

    def _summary(self, node: Any, place: str) -> Found:
        return self.found(node.uuid, f"{node.name}: {node.summary}", None, place)

    async def items(self) -> Mapping[str, Mapping[str, Any]] | None:
        return {edge.uuid: _payload(edge) for edge in await self._facts()}

    async def snapshot(self) -> Snapshot:
        """Return the whole graph: facts, entities with their summaries, episodes and communities."""
        return Snapshot(points={self.store: {place: held async for place, held in self._held()}})

    async def _held(self) -> AsyncIterator[tuple[str, Mapping[str, Mapping[str, Any]]]]:
        yield self.place, {edge.uuid: _payload(edge) for edge in await self._facts()}
        if self.resources.chat is None:
            return  # the ends of an exchange say nothing
        nodes = library("graphiti_core.nodes")
        for place, kind, fields in (
            (_ENTITIES, nodes.EntityNode, ("name", "summary", "attributes")),
            (_EPISODES, nodes.EpisodicNode, ("content", "valid_at")),
            (_COMMUNITIES, nodes.CommunityNode, ("name", "summary")),
        ):
            found = await self._all(kind)
            if found:
                yield place, {node.uuid: _payload(node, fields) for node in found}

    async def _texts(self) -> Mapping[str, Any]:
        """Return what is stored, by id, to see what an exchange changed."""
        return {uuid: payload async for _, held in self._held() for uuid, payload in held.items()}

    async def close(self, status: ClosingStatus) -> None:
        if self._graph is not None:
            graph, self._graph = self._graph, None
            await graph.close()

    async def _facts(self) -> list[Any]:
        return await self._all(library("graphiti_core.edges").EntityEdge)

    async def _all(self, kind: Any) -> list[Any]:
        """Return all nodes or edges of a class, in the order of their ids."""
        if self._graph is None:
            return []
        errors = library("graphiti_core.errors")
        try:
            found: list[Any] = await kind.get_by_group_ids(self._graph.driver, [GROUP])
        except (errors.GroupsEdgesNotFoundError, errors.GroupsNodesNotFoundError):
            return []
        return sorted(found, key=lambda each: str(each.uuid))


def _is_known(value: Any) -> bool:
    return value not in (None, "", {}, _UNDATED, _UNDATED.replace(tzinfo=None))


def _day(known: Mapping[str, Any], name: str, unknown: str) -> str:
    return f"{known[name]:%Y-%m-%d %H:%M}" if name in known else unknown


def _payload(found: Any, fields: Sequence[str] = _SHOWN) -> Mapping[str, Any]:
    values = {name: getattr(found, name, None) for name in fields}
    return {name: str(value) for name, value in values.items() if _is_known(value)}


def _recipe(name: Any, *, has_reranker: bool) -> Any:
    """Return a search recipe of Graphiti by its name; None without a name.

    Raises:
        BackendError: Graphiti has no such recipe, or it needs a reranker and there is none.
    """
    if name is None:
        return None
    _imported()
    recipes = vars(library("graphiti_core.search.search_config_recipes"))
    known = sorted(each for each in recipes if each.isupper())
    if name not in known:
        raise BackendError(f"graphiti has no search recipe {name!r}; expected one of {', '.join(known)}")
    if "CROSS_ENCODER" in name and not has_reranker:
        raise BackendError(f"graphiti's search recipe {name} ranks by a model: give one with --reranker")
    return recipes[name]


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
    """Return Graphiti with the run's embedder, model and reranker."""
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

    class Reranker(reranker_client):  # type: ignore[misc,valid-type]
        async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
            reranker = memory.resources.reranker
            if reranker is None or not passages:
                return [(passage, 0.0) for passage in passages]
            scores = await asyncio.to_thread(reranker.score, query, passages)
            return sorted(zip(passages, scores, strict=True), key=lambda each: -each[1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Kuzu
        driver = library("graphiti_core.driver.kuzu_driver").KuzuDriver()
    driver._database = GROUP  # Graphiti reads it, and Kuzu's driver does not set it
    return library("graphiti_core").Graphiti(
        graph_driver=driver, llm_client=Model(None), embedder=Embedder(), cross_encoder=Reranker()
    )


async def _structured(chat: MeteredChat, messages: Any, response_model: Any) -> dict[str, Any]:
    """Return the model's reply as JSON, by the schema where Graphiti gives one."""
    sent = [{"role": message.role, "content": message.content} for message in messages]
    wanted: dict[str, Any] = {"type": "json_object"}
    if response_model is not None:
        schema = {"name": response_model.__name__, "schema": response_model.model_json_schema()}
        wanted = {"type": "json_schema", "json_schema": schema}
    reply = await chat.complete(sent, temperature=0, response_format=wanted)
    client = library("graphiti_core.llm_client.openai_generic_client").OpenAIGenericClient
    without_fences = getattr(client, "_strip_code_fences", str)  # as Graphiti's own client reads a reply
    parsed: dict[str, Any] = json.loads(without_fences(reply.text))
    return parsed
