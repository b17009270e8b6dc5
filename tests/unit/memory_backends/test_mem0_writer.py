"""mem0 with its user's own instructions and a scripted writer: the real library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import Any

import pytest

from memory_backends.base import Exchange, MemoryBackend, Message
from memory_backends.contract.trial import WordEmbedder, count_words
from memory_backends.metering import ChatMessage, MeteredChat
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import ModelCall
from tests.stubs.memory import TickingClock, namespace

pytestmark = pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")

INSTRUCTIONS = "Write every fact in the manner of a ship's log. Reply in JSON."
OF_MEM0 = {"custom_instructions": INSTRUCTIONS}
OF_MEM0_1 = {"custom_fact_extraction_prompt": INSTRUCTIONS}


class Writer:
    """Keeps one fact of each call, and remembers what it was sent."""

    name = "scripted"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any], repeat: int
    ) -> tuple[ChatMessage, ModelCall]:
        said = "\n".join(str(message["content"]) for message in messages)
        self.asked.append(said)
        fact = f"Fact {len(self.asked)}"
        reply = {"memory": [{"id": "0", "text": fact, "event": "ADD"}], "facts": [fact]}
        return ChatMessage(text=json.dumps(reply)), ModelCall(purpose="chat", model=self.name)


def mem0(writer: Writer, config: Mapping[str, Any]) -> MemoryBackend:
    connections = RedisConnection.embedded(), QdrantConnection.embedded()
    configs = {"mem0": config}
    resources = Resources(
        *connections,
        WordEmbedder(),
        count_words,
        TickingClock(),
        chat=MeteredChat(writer),
        configs=configs,
    )
    return create_backend("mem0", resources, {})


def exchange(number: int, said_at: datetime | None) -> Exchange:
    message = Message(
        turn_id=str(number), turn_number=number, session=1, role="user", label="User",
        text=f"I sail the Orrin coast, part {number}.", said_at=said_at,
    )  # fmt: skip
    return Exchange(messages=(message,))


def is_mem0_1() -> bool:
    from mem0.configs.base import MemoryConfig

    return "custom_instructions" not in MemoryConfig.model_fields


async def test_dated_conversations_keep_the_instructions_of_the_user() -> None:
    writer = Writer()
    memory = mem0(writer, OF_MEM0_1 if is_mem0_1() else OF_MEM0)
    await memory.open(namespace("mem0"))
    days = [datetime(2023, 5, 8), None, datetime(2023, 6, 9), None]
    for number, day in enumerate(days, start=1):
        await memory.observe(exchange(number, day))
    extractions = [said for said in writer.asked if "I sail the Orrin coast, part" in said]
    assert len(extractions) == len(days)
    assert all(INSTRUCTIONS in said for said in extractions)
    dated = [said for said in extractions if "The new messages were said on 2023-0" in said]
    assert dated == [extractions[0], extractions[2]], "an undated exchange has no date of another"
    held = (await memory.snapshot()).points["mem0"]["memories"]
    assert len(held) == len(days)
    await memory.close("resolved")


async def test_without_instructions_the_date_is_told_all_the_same() -> None:
    writer = Writer()
    memory = mem0(writer, {})
    await memory.open(namespace("mem0"))
    await memory.observe(exchange(1, datetime(2023, 5, 8)))
    assert "The new messages were said on 2023-05-08." in writer.asked[0]
    assert f"Today's date is {datetime.now():%Y-%m-%d}" not in writer.asked[0]
    await memory.close("resolved")
