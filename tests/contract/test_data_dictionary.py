"""Keys, collections and fields of the data dictionary, read with clients that know nothing of us."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory_backends.records import PersonalMemoryState, SharedWorkspaceState
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from tests.stubs.memory import exchange, namespace, play

TALK = [
    exchange(1, "What is your name?", "My name is AI."),
    exchange(2, "Mine is Marta.", "Hello, Marta."),
]


@pytest.fixture
def connections(server_url: str) -> tuple[RedisConnection, QdrantConnection]:
    return RedisConnection.to(server_url), QdrantConnection.embedded()


async def test_full_context_holds_one_plain_string_and_nothing_else(make, plain_redis):
    backend = make("full_context")
    await backend.open(namespace("full_context"))
    await play(backend, TALK)
    await backend.close("resolved")
    assert plain_redis.keys() == ["full_history:run1/talk/full_context"]
    assert plain_redis.type("full_history:run1/talk/full_context") == "string"
    assert plain_redis.get("full_history:run1/talk/full_context") == (
        "User: What is your name?\nAI: My name is AI.\nUser: Mine is Marta.\nAI: Hello, Marta.\n"
    )


async def test_rag_uses_no_redis_and_stores_numbered_exchanges_with_the_ids_of_their_turns(make, plain_redis):
    backend = make("rag")
    await backend.open(namespace("rag"))
    said_at = datetime(2023, 5, 8, 13, 56)
    await play(backend, [TALK[0], exchange(2, "Mine is Marta.", "Hello, Marta.", 1, said_at)])
    assert plain_redis.keys() == []
    held = await backend.snapshot()
    assert set(held.points["qdrant"]) == {"goodai_ltm_full_history"}
    first, second = held.points["qdrant"]["goodai_ltm_full_history"].items()
    assert first[1] == {
        "id": first[0],
        "content": "User: What is your name?\nAI: My name is AI.",
        "turn_number": 1,
        "turns": list(TALK[0].turn_ids),
        "timestamp": "2025-09-14T18:30:01.000Z",
    }
    assert second[1]["timestamp"] == "2023-05-08T13:56:00.000Z"
    assert second[1]["turn_number"] == 2


async def test_hybrid_numbers_its_exchanges_as_rag_does(make):
    backend = make("hybrid")
    await backend.open(namespace("hybrid"))
    await play(backend, TALK)
    documents = (await backend.snapshot()).points["qdrant"]["hybrid_verbatim"].values()
    assert [(each["turn_number"], each["turns"]) for each in documents] == [
        (number, list(each.turn_ids)) for number, each in enumerate(TALK, start=1)
    ]


def test_states_fill_the_fields_that_the_dictionary_sets_automatically():
    personal = PersonalMemoryState(agent_id="planner")
    first, second = SharedWorkspaceState(), SharedWorkspaceState()
    assert datetime.now(UTC) - personal.last_updated < timedelta(minutes=1)
    assert UUID(first.event_id) != UUID(second.event_id)
    assert SharedWorkspaceState(event_id="x").status == "active"
    assert first.created_at <= first.last_updated <= datetime.now(UTC)


async def test_keys_of_a_finished_conversation_expire_only_if_asked(make, plain_redis):
    lasting, passing = make("full_context"), make("full_context", ttl_seconds=600)
    await lasting.open(namespace("full_context", "lasting"))
    await passing.open(namespace("full_context", "passing"))
    for backend in (lasting, passing):
        await play(backend, TALK)
        await backend.close("resolved")
    assert plain_redis.ttl("full_history:run1/lasting/full_context") == -1
    assert 0 < plain_redis.ttl("full_history:run1/passing/full_context") <= 600
