"""``--backend letta``, against a stub of Letta's documented API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memory_backends.base import BackendError, MemoryBackend
from memory_backends.contract import Subject, check_memory
from memory_backends.contract.trial import TALK, Clock, WordEmbedder, count_words, play
from memory_backends.metering import MeteredChat
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import ModelCall
from tests.stubs.letta_server import LettaStub, letta_server
from tests.stubs.memory import TickingClock, namespace


class Named:
    """Letta's server calls the model itself; only the name matters here."""

    name = "openai/gpt-4o-mini"

    async def complete(self, messages: object, parameters: object, repeat: int) -> tuple[None, ModelCall]:
        raise AssertionError("Letta's server calls models by itself")


def created(
    clock: Clock | None = None, *, with_model: bool = False, config: dict[str, Any] | None = None
) -> MemoryBackend:
    connections = RedisConnection.embedded(), QdrantConnection.embedded()
    chat = MeteredChat(Named()) if with_model else None
    resources = Resources(
        *connections,
        WordEmbedder(),
        count_words,
        clock or TickingClock(),
        chat=chat,
        configs={"letta": config or {}},
    )
    return create_backend("letta", resources, {})


@pytest.fixture
def letta(monkeypatch: pytest.MonkeyPatch) -> Iterator[LettaStub]:
    with letta_server(key="s3cret") as stub:
        monkeypatch.setenv("LETTA_BASE_URL", stub.url)
        monkeypatch.setenv("LETTA_API_KEY", "s3cret")
        yield stub


async def test_it_keeps_every_promise_without_a_model(letta: LettaStub) -> None:
    found = [each async for each in check_memory(Subject("letta", lambda clock: created(clock)))]
    assert {each.rule.name: each.broken for each in found if each.broken} == {}


async def test_an_agent_that_edits_its_blocks_names_its_turns_and_what_it_spends_and_is_deleted(
    letta: LettaStub,
) -> None:
    memory = created(with_model=True)
    await memory.open(namespace("letta"))
    await play(memory, TALK[:2])
    recall = await memory.recall("Where does she work?", 5, 400)
    assert {hit.text: hit.sources for hit in recall.hits} == {
        "The user is called Marta": ("1", "2"),
        "The user works at Nimbus Labs": ("1", "2"),
    }
    calls = [entry for entry in memory.trace.drain() if isinstance(entry, ModelCall)]
    assert [(call.prompt_tokens, call.turns) for call in calls] == [(40, each.turn_ids) for each in TALK[:2]]
    assert {call.reply for call in calls} == {"I see."} and not any(call.messages for call in calls)
    assert [call.wanted for call in calls if call.wanted] == [
        '[{"name": "archival_memory_insert", "arguments": "{\\"content\\": \\"Nimbus Labs\\"}"}]'
    ]
    assert len(letta.agents) == 1
    await memory.close("resolved")
    assert letta.agents == {}


OWN = {"system": "Remember names.", "memory_blocks": [{"label": "human", "value": "She likes tea."}]}
AGENT_FILE = {
    "agents": [{"id": "agent-0", "system": "Remember names.", "block_ids": ["block-0"]}],
    "blocks": [{"id": "block-0", "label": "human", "value": "She likes tea."}],
}


@pytest.mark.parametrize("config", [OWN, AGENT_FILE], ids=["fields", "agent file"])
async def test_the_agent_is_as_its_user_configures_it(letta: LettaStub, config: dict[str, Any]) -> None:
    memory = created(with_model=True, config=config)
    await memory.open(namespace("letta"))
    [agent] = letta.agents.values()
    assert (agent.system, agent.blocks) == ("Remember names.", {"human": "She likes tea."})
    assert agent.name.startswith("memreplay-")
    recall = await memory.recall("What does she like?", 5, 400)
    assert [hit.text for hit in recall.hits] == ["She likes tea."]
    await memory.close("resolved")
    assert letta.agents == {}


async def test_an_agent_file_of_several_agents_and_the_parts_of_the_run_are_refused(letta: LettaStub) -> None:
    two = {**AGENT_FILE, "agents": AGENT_FILE["agents"] * 2}
    with pytest.raises(BackendError, match="describes 2 agents; expected one"):
        await created(config=two).open(namespace("letta"))
    assert letta.agents == {}
    with pytest.raises(BackendError, match="Letta's model is the run's own"):
        created(config={"model": "openai/other"})


async def test_a_refused_key_and_a_server_that_is_not_there_are_one_sentence(
    letta: LettaStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETTA_API_KEY", "wr0ng")
    with pytest.raises(BackendError, match="refuses the key") as refused:
        await created().open(namespace("letta"))
    assert "wr0ng" not in str(refused.value)
    monkeypatch.setenv("LETTA_BASE_URL", "http://127.0.0.1:1")
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:1 does not answer"):
        await created().open(namespace("letta"))
