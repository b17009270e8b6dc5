"""Agents on real libraries, recorded: what was never written, overwritten and not retrieved is told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memreplay
from memreplay.capture.assembling import bring_up_to_date
from memreplay.capture.marks import add_mark
from tests.stubs.letta_server import letta_server

SAYS = (
    "My name is Ann and I live in Girona.",
    "I got a promotion to lead engineer!",
    "My dog is called Bruno.",
    "I moved to Lyon last week.",
    "Where do I live?",
)


def vector(text: str) -> list[float]:
    """A vector of letter counts: texts with the same words are near each other."""
    counts = [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
    length = sum(each * each for each in counts) ** 0.5 or 1.0
    return [each / length for each in counts]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sqlite3"


def verdicts(path: Path, *marks: tuple[int, str, str]) -> list[tuple[str | None, str | None, str | None]]:
    """The verdict of each mark, (turn, expected, evidence), and how it was lost."""
    for turn, expected, evidence in marks:
        bring_up_to_date(path)
        with memreplay.open(path) as run:
            (name,) = run.conversations
        add_mark(path, name, turn, expected, [evidence])
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        return [(row.outcome, row.failure, row.failure_loss) for row in run.questions]


def held(path: Path, turn: int) -> dict[str, str]:
    """What the only memory held after a turn, by id."""
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        (name,) = run.conversations
        (memory,) = run.conversation(name).at(turn).values()
        return {id_: str(point["content"]) for points in memory.points.values() for id_, point in points.items()}


def test_chroma(path: Path):
    chromadb = pytest.importorskip("chromadb")
    collection = chromadb.PersistentClient(str(path.parent / "chroma")).create_collection(
        "facts", embedding_function=None
    )
    memory = memreplay.record(collection, path)
    for number, text in enumerate(SAYS):
        with memreplay.turn("one", "user", text):
            memory.query(query_embeddings=[vector(text)], n_results=1)
        with memreplay.turn("one", "assistant", "I see."):
            if "promotion" not in text:
                memory.upsert(
                    ids=["home" if "live" in text or "moved" in text else str(number)],
                    documents=[text],
                    embeddings=[vector(text)],
                    metadatas=[{"session": "one"}],
                )
    assert held(path, 2) == {"home": SAYS[0]}
    assert held(path, 8) == {"home": SAYS[3], "2": SAYS[2]}
    found = verdicts(path, (9, "Girona", "1"), (9, "lead engineer", "3"), (9, "Bruno", "5"))
    assert found == [
        ("wrong", "not_written", "superseded"),
        ("wrong", "not_written", "never_observed"),
        ("wrong", "not_retrieved", None),
    ]


def test_a_langgraph_store(path: Path):
    stores = pytest.importorskip("langgraph.store.memory")

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    store = stores.InMemoryStore(index={"dims": 26, "embed": embed, "fields": ["text"]})
    memory = memreplay.record(store, path)
    assert isinstance(memory, stores.InMemoryStore)

    async def converse() -> None:
        for number, text in enumerate(SAYS):
            with memreplay.turn("one", "user", text):
                await memory.asearch(("memories", "ann"), query=text, limit=1)
            with memreplay.turn("one", "assistant", "I see."):
                if "promotion" not in text:
                    key = "home" if "live" in text or "moved" in text else str(number)
                    await memory.aput(("memories", "ann"), key, {"text": text})
            memory.get(("memories", "ann"), "home")

    asyncio.run(converse())
    assert held(path, 8) == {"home": SAYS[3], "2": SAYS[2]}
    found = verdicts(path, (9, "Girona", "1"), (9, "lead engineer", "3"), (9, "Bruno", "5"))
    assert found == [
        ("wrong", "not_written", "superseded"),
        ("wrong", "not_written", "never_observed"),
        ("wrong", "not_retrieved", None),
    ]


def test_a_langgraph_checkpointer_gives_the_conversation(path: Path):
    memory_module = pytest.importorskip("langgraph.checkpoint.memory")
    messages = pytest.importorskip("langchain_core.messages")
    base = pytest.importorskip("langgraph.checkpoint.base")
    saver = memreplay.record(memory_module.InMemorySaver(), path)
    said: list[Any] = []
    for number, text in enumerate(SAYS[:3]):
        said += [messages.HumanMessage(text, id=f"h{number}"), messages.AIMessage("I see.", id=f"a{number}")]
        checkpoint = {**base.empty_checkpoint(), "channel_values": {"messages": list(said), "topic": text[:5]}}
        config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
        saver.put(config, checkpoint, {}, {})
    bring_up_to_date(path)
    with memreplay.open(path) as run:
        (name,) = run.conversations
        conversation = run.conversation(name)
        assert [turn.text for turn in conversation.turns] == [t for text in SAYS[:3] for t in (text, "I see.")]
        (memory,) = conversation.at(4).values()
        assert memory.state == {"checkpoint/t-1": {"topic": "I got"}}


def test_mem0(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    mem0 = pytest.importorskip("mem0")
    made = mem0.Memory.from_config(_mem0_settings(tmp_path))
    made.embedding_model = _Mem0Embedder()
    memory = memreplay.record(made, path)
    assert isinstance(memory, mem0.Memory)
    home = ""
    for text in SAYS:
        memory.search(text, filters={"user_id": "ann"}, top_k=1, threshold=0.0)
        if "moved" in text:
            memory.update(home, text)
        elif "promotion" not in text:
            said = [{"role": "user", "content": text}]
            added = memory.add(said, user_id="ann", infer=False)
            home = home or added["results"][0]["id"]
    assert list(held(path, 1).values()) == [SAYS[0]]
    assert list(held(path, 3).values()) == [SAYS[3], SAYS[2], SAYS[4]]
    assert verdicts(path, (3, "Girona", "1"), (3, "Bruno", "2")) == [
        ("wrong", "not_written", "superseded"),
        ("wrong", "not_visible", None),  # returned; nobody recorded the reply
    ]


def _mem0_settings(folder: Path) -> dict[str, Any]:
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    store = {"provider": "qdrant", "config": {"path": str(folder / "qdrant"), "embedding_model_dims": 26}}
    return {"vector_store": store, "llm": unused, "embedder": unused, "history_db_path": ":memory:"}


class _Mem0Embedder:
    config = type("Config", (), {"embedding_dims": 26})()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return vector(text)

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [vector(text) for text in texts]


async def test_mem0_in_coroutines(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    mem0 = pytest.importorskip("mem0")
    made = mem0.AsyncMemory.from_config(_mem0_settings(tmp_path))
    made.embedding_model = _Mem0Embedder()
    memory = memreplay.record(made, path)
    assert isinstance(memory, mem0.AsyncMemory)
    home = ""
    for text in SAYS:
        await memory.search(text, filters={"user_id": "ann"}, top_k=1, threshold=0.0)
        if "moved" in text:
            await memory.update(home, text)
        elif "promotion" not in text:
            added = await memory.add([{"role": "user", "content": text}], user_id="ann", infer=False)
            home = home or added["results"][0]["id"]
    assert list(held(path, 1).values()) == [SAYS[0]]
    assert list(held(path, 3).values()) == [SAYS[3], SAYS[2], SAYS[4]]
    assert verdicts(path, (3, "Girona", "1")) == [("wrong", "not_written", "superseded")]


async def test_graphiti_on_kuzu(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHITI_TELEMETRY_ENABLED", "false")
    graphiti_core = pytest.importorskip("graphiti_core")
    pytest.importorskip("kuzu")
    memory = memreplay.record(await _graphiti(), path)
    assert isinstance(memory, graphiti_core.Graphiti)
    for number, text in enumerate(SAYS):
        with memreplay.turn("one", "user", text):
            await memory.search(text, group_ids=["ann"], num_results=1)
        with memreplay.turn("one", "assistant", "I see."):
            if "promotion" not in text and "?" not in text:
                await memory.add_episode(
                    name=str(number),
                    episode_body=text,
                    source_description="conversation",
                    reference_time=datetime(2026, 3, 1 + number, tzinfo=UTC),
                    group_id="ann",
                )
    assert {SAYS[0], SAYS[2], SAYS[3]} <= set(held(path, 10).values())  # beside what it says of Ann
    with memreplay.open(path) as run:
        (moment,) = run.conversation("ann").at(10).values()
        points = [point for points in moment.points.values() for point in points.values()]
    assert all("embedding" not in name for point in points for name in point)
    ended = [str(point["invalid_at"])[:10] for point in points if point.get("invalid_at")]
    assert ended == ["2026-03-04"]
    found = verdicts(path, (9, "lead engineer", "3"), (9, "Bruno", "5"))
    assert found == [("wrong", "not_written", "never_observed"), ("wrong", "not_retrieved", None)]
    await memory.close()


async def _graphiti() -> Any:
    """Return a graph in memory whose model takes every message for a fact, and a move for the end of the first."""
    from graphiti_core import Graphiti
    from graphiti_core.cross_encoder.client import CrossEncoderClient
    from graphiti_core.driver.kuzu_driver import KuzuDriver
    from graphiti_core.embedder.client import EmbedderClient
    from graphiti_core.graph_queries import get_fulltext_indices
    from graphiti_core.llm_client.client import LLMClient

    class Model(LLMClient):
        async def _generate_response(self, messages: Any, response_model: Any = None, *_: Any, **__: Any) -> Any:
            asked = messages[-1].content
            said = next((text for text in reversed(SAYS) if text in asked), "")
            match response_model.__name__ if response_model else "":
                case "ExtractedEntities":
                    names = ("Ann", "Girona" if "Girona" in said else said.split()[-1].strip("."))
                    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in names]}
                case "ExtractedEdges":
                    ends = {"source_entity_name": "Ann", "target_entity_name": "Girona"}
                    ends["target_entity_name"] = "Girona" if "Girona" in said else said.split()[-1].strip(".")
                    began = f"2026-03-0{1 + SAYS.index(said)}T00:00:00Z"
                    edge = {"relation_type": f"SAID_{len(said)}", "fact": said, "valid_at": began}
                    return {"edges": [{**ends, **edge}]}
                case "NodeResolutions":
                    return {"entity_resolutions": []}
                case "EdgeDuplicate":
                    return {"duplicate_facts": [], "contradicted_facts": [0] if SAYS[3] in asked else []}
                case "BatchEdgeTimestamps":
                    return {"timestamps": []}
                case "SummarizedEntities":
                    return {"summaries": []}
                case _:
                    return {"summary": ""}

    class Embedder(EmbedderClient):
        async def create(self, input_data: Any) -> list[float]:
            return vector(input_data if isinstance(input_data, str) else " ".join(input_data))

        async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
            return [vector(text) for text in input_data_list]

    class Unused(CrossEncoderClient):
        async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
            return [(passage, 0.0) for passage in passages]

    driver = KuzuDriver()
    driver._database = "ann"  # Graphiti reads it, and Kuzu's driver does not set it
    await driver.build_indices_and_constraints()
    for query in get_fulltext_indices(driver.provider):
        await driver.execute_query(query)
    return Graphiti(graph_driver=driver, llm_client=Model(None), embedder=Embedder(), cross_encoder=Unused())


def test_a_letta_client(path: Path):
    letta_client = pytest.importorskip("letta_client")
    with letta_server() as server:
        agent = server.answer("POST", "/v1/agents/", {}, {"name": "ann", "memory_blocks": []})[1]["id"]
        server.agents[agent].blocks["human"] = "Nothing is known."
        client = memreplay.record(letta_client.Letta(base_url=server.url, api_key="unused"), path)
        assert isinstance(client, letta_client.Letta)
        for text in SAYS:
            with memreplay.turn("one", "user", text):
                client.agents.passages.search(agent, query=text, top_k=1)
                client.agents.messages.create(agent, messages=[{"role": "user", "content": text}])
            with memreplay.turn("one", "assistant", "I see."):
                if "moved" in text or ("live" in text and "?" not in text):
                    client.agents.blocks.update("human", agent_id=agent, value=text)
                elif "promotion" not in text:
                    client.agents.passages.create(agent, text=text)
        listed = client.agents.passages.list(agent)
        assert [each.text for each in listed] == [SAYS[2], SAYS[4]]
    assert set(held(path, 2).values()) == {SAYS[0]}
    assert set(held(path, 10).values()) == {SAYS[3], SAYS[2], SAYS[4]}
    # The agent was told of the promotion, and kept nothing of it.
    found = verdicts(path, (9, "Girona", "1"), (9, "lead engineer", "3"))
    assert found == [("wrong", "not_written", "superseded"), ("wrong", "not_written", "distilled_away")]


def test_what_a_letta_agent_is_told_and_answers_is_the_conversation(path: Path):
    letta_client = pytest.importorskip("letta_client")
    with letta_server() as server:
        agent = server.answer("POST", "/v1/agents/", {}, {"name": "ann", "memory_blocks": []})[1]["id"]
        client = memreplay.record(letta_client.Letta(base_url=server.url, api_key="unused"), path)
        client.agents.messages.create(agent, input=SAYS[0])
        client.agents.messages.create(agent, messages=[{"role": "user", "content": SAYS[1]}])
    assert bring_up_to_date(path) == ()
    with memreplay.open(path) as run:
        (name,) = run.conversations
        said = [(turn.role, turn.text) for turn in run.conversation(name).turns]
    assert said == [("user", SAYS[0]), ("assistant", "I see."), ("user", SAYS[1]), ("assistant", "I see.")]
