"""Agents on real libraries, recorded: what was never written, overwritten and not retrieved is told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import memreplay
from memreplay.capture.assembling import bring_up_to_date
from memreplay.capture.marks import add_mark

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
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    store = {"provider": "qdrant", "config": {"path": str(tmp_path / "qdrant"), "embedding_model_dims": 26}}
    made = mem0.Memory.from_config(
        {"vector_store": store, "llm": unused, "embedder": unused, "history_db_path": ":memory:"}
    )

    class Embedder:
        config = type("Config", (), {"embedding_dims": 26})()

        def embed(self, text: str, memory_action: str | None = None) -> list[float]:
            return vector(text)

        def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
            return [vector(text) for text in texts]

    made.embedding_model = Embedder()
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
