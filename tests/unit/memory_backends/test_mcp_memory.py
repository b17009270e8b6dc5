"""``--backend mcp:COMMAND``, against a server of the official package and one that speaks the bare protocol."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from memory_backends.base import BackendError, MemoryBackend
from memory_backends.contract import PROMISES, Subject, check_memory
from memory_backends.contract.trial import TALK, Clock, WordEmbedder, count_words, exchange, play
from memory_backends.registry import check_backend_name, create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from tests.conftest import REPOSITORY
from tests.stubs.memory import TickingClock, namespace

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed")

STUBS = REPOSITORY / "tests" / "stubs"
OFFICIAL = f"{sys.executable} {STUBS / 'mcp_server.py'}"
SERVER = f"{sys.executable} -S -E {STUBS / 'plain_mcp_server.py'}"
"""It starts in a twentieth of the time of the official one."""
NOTES = f"mcp:{SERVER} {{folder}}/notes.json"
OTHER_TOOLS = f"mcp[add=put.note search=ask.about]:{OFFICIAL} {{folder}}/notes.json tools"


def created(name: str, clock: Clock | None = None) -> MemoryBackend:
    connections = RedisConnection.embedded(), QdrantConnection.embedded()
    return create_backend(name, Resources(*connections, WordEmbedder(), count_words, clock or TickingClock()), {})


async def test_a_server_of_notes_keeps_the_promises_and_its_hits_name_their_turns() -> None:
    chosen = ("opens_empty", "trace", "twice", "recall_is_a_read", "budget", "provenance", "finds", "namespaces")
    rules = [rule for rule in PROMISES if rule.name in chosen]
    found = [each async for each in check_memory(Subject(NOTES, lambda clock: created(NOTES, clock)), rules)]
    assert {each.rule.name: each.broken for each in found} == dict.fromkeys(chosen, None)


async def test_a_server_of_the_official_package_is_used_and_shown() -> None:
    memory = created(f"mcp:{OFFICIAL} {{folder}}/notes.json")
    await memory.open(namespace("mcp"))
    try:
        await play(memory, TALK[:2])
        recall = await memory.recall("Where does Marta work?", 3, 400)
        assert "Nimbus Labs" in recall.context and "1" in recall.turns_in_context
        held = (await memory.snapshot()).points["mcp"]["memories"]
        assert [payload["text"] for payload in held.values()] == [each.text for each in TALK[:2]]
    finally:
        await memory.close("resolved")


async def test_a_server_with_a_file_of_its_own_is_refused_when_it_starts_with_what_others_said(
    tmp_path: Path,
) -> None:
    name = f"mcp:{SERVER} {tmp_path / 'notes.json'}"
    first, second = created(name), created(name)
    await first.open(namespace("mcp"))
    await play(first, TALK[:1])
    await first.close("resolved")
    with pytest.raises(BackendError, match=r"starts with 1 items of before; put \{folder\}"):
        await second.open(namespace("mcp", "another"))
    await second.close("cancelled")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            f"mcp:{SERVER} {{folder}}/notes.json tools",
            r"which tool .* is to add .* put\(kind, note\), ask\(about\)",
        ),
        (f"mcp[add=put search=ask]:{SERVER} {{folder}}/n tools", "which argument of put takes the text"),
        (f"mcp[add=keep.it]:{SERVER} {{folder}}/n", "which tool .* is to add"),
        ("mcp:no-such-program --really", "cannot be started: FileNotFoundError"),
        (f"mcp:{sys.executable} -c 'raise SystemExit(1)'", "cannot be started"),
    ],
)
async def test_what_cannot_be_used_is_said_in_one_sentence(name: str, says: str) -> None:
    memory = created(name)
    with pytest.raises(BackendError, match=says) as raised:
        await memory.open(namespace("mcp"))
    assert "\n" not in str(raised.value)
    await memory.close("cancelled")


@pytest.mark.parametrize("name", ["mcp:", "mcp[add]:server", "mcp[add=a.b]:"])
def test_a_name_that_names_no_server_or_tool_is_refused(name: str) -> None:
    with pytest.raises(BackendError, match=r"expected .mcp:COMMAND.|There is no backend"):
        check_backend_name(name)
        created(name)


async def test_named_tools_plain_text_and_a_failing_tool() -> None:
    memory = created(OTHER_TOOLS)
    await memory.open(namespace("mcp"))
    try:
        await play(memory, TALK)
        recall = await memory.recall("Where does Marta work?", 3, 400)
        assert "Nimbus Labs" in recall.context and "1" in recall.turns_in_context
        assert (await memory.snapshot()).points == {}, "it has no tool that lists"
        with pytest.raises(BackendError, match="the tool put failed"):
            await memory.observe(exchange(9, "This is unbearable.", "Oh."))
    finally:
        await memory.close("resolved")
