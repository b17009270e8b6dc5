"""Libraries that write by a model, with a scripted one: LangMem and Graphiti, where they are installed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from memory_backends.base import BackendError, MemoryBackend
from memory_backends.contract.trial import TALK, WordEmbedder, count_words, play
from memory_backends.metering import ChatMessage, MeteredChat
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import ModelCall
from tests.stubs.memory import TickingClock, namespace

FACT = "Marta works at Nimbus Labs"


class Scripted:
    """Extracts one fact from the first exchange, whichever way it is asked; in ``fences`` if wanted."""

    name = "scripted"

    def __init__(self, *, fences: bool = False, **dates: str) -> None:
        self._fence, self._dates = ("```json\n{}\n```" if fences else "{}"), dates
        self.asked: list[str] = []

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any], repeat: int
    ) -> tuple[ChatMessage, ModelCall]:
        said = "".join(str(message["content"]) for message in messages)
        self.asked.append(said)
        call = ModelCall(purpose="chat", model=self.name, prompt_tokens=10, completion_tokens=2)
        if "tools" in parameters:
            return self._by_tool("I am Marta" in said), call
        asked = parameters["response_format"]["json_schema"]
        current = said.rpartition("<CURRENT")[2]
        replies = {
            "ExtractedEntities": {
                "extracted_entities": [
                    {"name": name, "entity_type_id": 0} for name in ("Marta", "Nimbus Labs") if name in current
                ]
            },
            "ExtractedEdges": {
                "edges": [
                    {
                        "source_entity_name": "Marta",
                        "target_entity_name": "Nimbus Labs",
                        "relation_type": "WORKS_AT",
                        "fact": FACT,
                        **self._dates,
                    }
                ]
                if "Nimbus" in current
                else []
            },
        }
        schema = asked["schema"]
        reply = replies.get(asked["name"]) or _least(schema, schema.get("$defs", {}))
        return ChatMessage(text=self._fence.replace("{}", json.dumps(reply))), call

    @staticmethod
    def _by_tool(has_news: bool) -> ChatMessage:
        function = {"name": "Memory", "arguments": json.dumps({"content": FACT})}
        calls = ({"id": "call", "type": "function", "function": function},) if has_news else ()
        return ChatMessage(text="" if calls else "Nothing new.", tool_calls=calls)


def _least(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """The smallest value of a JSON schema."""
    if "$ref" in schema:
        return _least(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if schema.get("type") == "object":
        return {name: _least(each, definitions) for name, each in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "integer": 0, "number": 0, "boolean": False}.get(schema.get("type", ""))


def created(name: str, scripted: Scripted | None = None, /, **config: Any) -> MemoryBackend:
    connections = RedisConnection.embedded(), QdrantConnection.embedded()
    chat = MeteredChat(scripted or Scripted())
    resources = Resources(
        *connections,
        WordEmbedder(),
        count_words,
        TickingClock(),
        chat=chat,
        configs={name: config} if config else {},
    )
    return create_backend(name, resources, {})


@pytest.mark.parametrize(("name", "module"), [("langgraph", "langmem"), ("graphiti", "graphiti_core")])
async def test_what_a_model_extracts_names_its_turns_and_its_calls_are_counted(name: str, module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    memory = created(name)
    await memory.open(namespace(name))
    await play(memory, TALK[:1])
    recall = await memory.recall("Where does Marta work?", 3, 400)
    assert [(hit.text, hit.sources) for hit in recall.hits] == [(FACT, ("1", "2"))]
    calls = [entry for entry in memory.trace.drain() if isinstance(entry, ModelCall)]
    assert calls and {(call.phase, call.turns) for call in calls} == {("observe", ("1", "2"))}
    await memory.close("resolved")


needs_graphiti = pytest.mark.skipif(find_spec("graphiti_core") is None, reason="graphiti is not installed")


@needs_graphiti
async def test_graphiti_shows_its_whole_graph_and_says_from_when_to_when_a_fact_holds() -> None:
    model = Scripted(fences=True, valid_at="2024-02-01T09:00:00Z", invalid_at="2024-06-01T09:00:00Z")
    memory = created("graphiti", model)
    await memory.open(namespace("graphiti"))
    await play(memory, TALK[:1])
    held = (await memory.snapshot()).points["graphiti"]
    assert [list(held), sorted(node["name"] for node in held["entities"].values())] == [
        ["facts", "entities", "episodes"],
        ["Marta", "Nimbus Labs"],
    ]
    assert all("I am Marta" in episode["content"] for episode in held["episodes"].values())
    (hit,) = (await memory.recall("Where does Marta work?", 3, 400)).hits
    assert f"{FACT} (valid_at: 2024-02-01 09:00, invalid_at: 2024-06-01 09:00)" in hit.text
    facts, episodes = (memory.description.store_of(place) for place in ("facts", "episodes"))
    assert (facts.superseded_field, episodes.is_scratch) == ("invalid_at", True)
    await memory.close("resolved")


@needs_graphiti
async def test_graphiti_takes_the_search_recipe_and_the_instructions_of_its_user() -> None:
    model = Scripted()
    types = {"Company": {"description": "A firm.", "town": "Where it is."}}
    memory = created(
        "graphiti",
        model,
        search="NODE_HYBRID_SEARCH_RRF",
        custom_extraction_instructions="Write as in a ship's log.",
        entity_types=types,
    )
    await memory.open(namespace("graphiti"))
    await play(memory, TALK[:1])
    assert not (await memory.recall("Where does Marta work?", 3, 400)).hits, (
        "it searches nodes, which have no summary"
    )
    assert any("ship's log" in said for said in model.asked) and any("A firm." in said for said in model.asked)
    await memory.close("resolved")


@needs_graphiti
@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"search": "ALL"}, "no search recipe 'ALL'; expected one of"),
        ({"search": "EDGE_HYBRID_SEARCH_CROSS_ENCODER"}, "give one with --reranker"),
        ({"driver": "neo4j"}, "has no setting driver"),
        ({"entity_types": {"Bridge": "x"}}, "expected for each type a table"),
    ],
)
def test_a_configuration_that_graphiti_cannot_use_is_refused(config: dict[str, Any], why: str) -> None:
    with pytest.raises(BackendError, match=why):
        created("graphiti", **config)


@pytest.mark.skipif(find_spec("langmem") is None, reason="langmem is not installed")
async def test_langmem_takes_the_instructions_and_schemas_of_its_user() -> None:
    class Filled(Scripted):
        """Fills in the schema that it is given as a tool."""

        @staticmethod
        def _by_tool(has_news: bool) -> ChatMessage:
            function = {"name": "Job", "arguments": json.dumps({"employer": "Nimbus Labs"})}
            calls = ({"id": "call", "type": "function", "function": function},) if has_news else ()
            return ChatMessage(text="" if calls else "Nothing new.", tool_calls=calls)

    model = Filled()
    schemas = {"Job": {"description": "What somebody does.", "employer": "For whom.", "since": "Since when."}}
    memory = created("langgraph", model, instructions="Write as in a ship's log.", schemas=schemas)
    await memory.open(namespace("langgraph"))
    await play(memory, TALK[:1])
    (hit,) = (await memory.recall("Where does Marta work?", 3, 400)).hits
    assert hit.text.endswith("employer: Nimbus Labs")
    assert any("ship's log" in said for said in model.asked)
    with pytest.raises(BackendError, match="langgraph has no setting model"):
        created("langgraph", model="x")
    await memory.close("resolved")
