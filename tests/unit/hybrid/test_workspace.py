from __future__ import annotations

import asyncio
import json

import pytest

from memory_backends.base import BackendError
from memory_backends.hybrid.candidates import Candidate, candidates_of
from memory_backends.hybrid.workspace import MOST_SLOTS, MOST_VALUES, SharedWorkspace
from memory_backends.records import SharedWorkspaceState
from memory_backends.stores.redis import OperatingMemory
from memory_backends.stores.trace import MemoryTrace
from tests.stubs.memory import TickingClock, exchange, namespace


def facts(number: int, text: str) -> tuple[Candidate, ...]:
    return candidates_of(exchange(number, text, "I see."))


@pytest.fixture
async def workspace(memory) -> SharedWorkspace:
    made = SharedWorkspace(memory, namespace("hybrid"), TickingClock())
    await made.create()
    return made


async def test_begins_active_and_empty(workspace):
    state = await workspace.read()
    assert (state.event_id, state.status) == (namespace("hybrid").path, "active")
    assert state.shared_data == {} and state.participating_agents == []


async def test_holds_the_current_value_with_the_turn_that_said_it(workspace):
    await workspace.note("planner", facts(1, "The deadline is 25 September."))
    await workspace.note("planner", facts(4, "The deadline is now 23 September."))
    state = await workspace.read()
    assert state.shared_data["deadline"] == {
        "value": "23 September",
        "turn": "7",
        "said_by": "User",
        "instead_of": "25 September",
    }
    assert state.participating_agents == ["planner"]


async def test_a_part_of_a_name_does_not_replace_the_whole(workspace):
    await workspace.note("planner", facts(1, "I'm Marta Ibarra, by the way."))
    await workspace.note("planner", facts(2, "Just call me Marta."))
    assert (await workspace.read()).shared_data["user.name"]["value"] == "Marta Ibarra"


async def test_a_slot_of_several_values_keeps_the_latest_of_them(workspace):
    names = ["Ada", "Bea", "Cleo", "Dora", "Elsa", "Fina", "Gala"]
    for number, name in enumerate(names, start=1):
        await workspace.note("planner", facts(number, f"My cousin {name} called."))
    values = (await workspace.read()).shared_data["user.cousin"]["values"]
    assert [value["value"] for value in values] == names[-MOST_VALUES:]


async def test_past_its_size_the_slot_written_longest_ago_makes_room(workspace):
    for number in range(1, MOST_SLOTS + 3):
        await workspace.note("planner", facts(number, f"We set KEY_{number}=5 today."))
    slots = list((await workspace.read()).shared_data)
    assert len(slots) == MOST_SLOTS
    assert slots[0] == "config.key_3" and slots[-1] == f"config.key_{MOST_SLOTS + 2}"


async def test_of_two_writers_at_once_neither_is_lost(resources):
    workspace, other = (
        SharedWorkspace(
            OperatingMemory(resources.redis, MemoryTrace(), others_write=True), namespace("hybrid"), resources.clock
        )
        for _ in range(2)
    )
    await workspace.create()
    await asyncio.gather(
        *(workspace.note("one", facts(n, f"We set LEFT_{n}=1 today.")) for n in range(1, 4)),
        *(other.note("two", facts(n, f"We set RIGHT_{n}=1 today.")) for n in range(1, 4)),
    )
    state = await workspace.read()
    assert len(state.shared_data) == 6
    assert sorted(state.participating_agents) == ["one", "two"]


async def test_every_update_is_published(resources, workspace):
    channel = SharedWorkspaceState.channel(workspace.event_id)
    async with resources.redis.client.pubsub() as listener:
        await listener.subscribe(channel)
        await workspace.note("planner", facts(1, "The deadline is Friday."))
        await workspace.finish("consolidation", "resolved")
        heard = []
        while len(heard) < 2:
            message = await listener.get_message(ignore_subscribe_messages=True, timeout=5)
            if message:
                heard.append(json.loads(message["data"]))
    assert heard == [
        {"event_id": workspace.event_id, "status": "active", "last_updated_by": "planner"},
        {"event_id": workspace.event_id, "status": "resolved", "last_updated_by": "consolidation"},
    ]


async def test_a_missing_workspace_is_an_error(memory):
    nowhere = SharedWorkspace(memory, namespace("hybrid", "elsewhere"), TickingClock())
    with pytest.raises(BackendError, match=r"shared workspace at .* is missing"):
        await nowhere.note("planner", facts(1, "The deadline is Friday."))
