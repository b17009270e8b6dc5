"""Libraries that write by a model, with a scripted one: LangMem and Graphiti, where they are installed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from memory_backends.base import MemoryBackend
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
    """Extracts one fact from the first exchange, whichever way it is asked."""

    name = "scripted"

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any], repeat: int
    ) -> tuple[ChatMessage, ModelCall]:
        said = "".join(str(message["content"]) for message in messages)
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
                    }
                ]
                if "Nimbus" in current
                else []
            },
        }
        schema = asked["schema"]
        reply = replies.get(asked["name"]) or _least(schema, schema.get("$defs", {}))
        return ChatMessage(text=json.dumps(reply)), call

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


def created(name: str) -> MemoryBackend:
    connections = RedisConnection.embedded(), QdrantConnection.embedded()
    resources = Resources(*connections, WordEmbedder(), count_words, TickingClock(), chat=MeteredChat(Scripted()))
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
