"""Memories that people use keep the contract, with the real libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from memory_backends.base import MemoryBackend, Snapshot
from memory_backends.contract import Subject, check_memory
from memory_backends.contract.trial import TALK, Clock, WordEmbedder, count_words, play
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from tests.conftest import REPOSITORY
from tests.stubs.memory import TickingClock, namespace

LIBRARIES = {"mem0": "mem0", "chroma": "chromadb", "langgraph": "langgraph", "graphiti": "graphiti_core"}
KEPT = ("mem0", "chroma", "langgraph")
EXCUSED = {"mem0": {"verbatim"}}
"""mem0 finds nothing in a text of control characters alone, since its search has a threshold."""


def is_installed(module: str) -> bool:
    """Whether it is, without importing it: mem0 sends telemetry unless we are the first to import it."""
    return find_spec(module) is not None


def strip_ids(snapshot: Snapshot) -> list[object]:
    """What a memory holds, without ids and times of writing."""
    hidden = {"created_at", "updated_at"}
    points = (points for stores in snapshot.points.values() for points in stores.values())
    return [
        {name: value for name, value in payload.items() if name not in hidden}
        for held in points
        for payload in held.values()
    ]


def made(name: str, clock: Clock | None = None) -> MemoryBackend:
    connections = RedisConnection.embedded(), QdrantConnection.embedded()
    return create_backend(name, Resources(*connections, WordEmbedder(), count_words, clock or TickingClock()), {})


@pytest.mark.parametrize("name", LIBRARIES)
async def test_every_promise_is_kept(name: str) -> None:
    if not is_installed(LIBRARIES[name]):
        pytest.skip(f"{name} is not installed")
    connections = RedisConnection.embedded(), QdrantConnection.embedded()

    def make(clock: Clock) -> MemoryBackend:
        return create_backend(name, Resources(*connections, WordEmbedder(), count_words, clock), {})

    broken = {found.rule.name: found.broken async for found in check_memory(Subject(name, make)) if found.broken}
    assert broken.keys() <= EXCUSED.get(name, set()), broken


@pytest.mark.parametrize("name", KEPT)
async def test_a_filled_memory_that_was_saved_answers_alike_in_another_run(name: str, tmp_path: Path) -> None:
    if not is_installed(LIBRARIES[name]):
        pytest.skip(f"{name} is not installed")
    filled, loaded = made(name), made(name)
    assert filled.can_be_kept
    await filled.open(namespace(name))
    await play(filled, TALK[:4])
    await filled.save(tmp_path)
    await loaded.open(namespace(name, run="run2"))
    await loaded.load(tmp_path)
    loaded.trace.drain()
    assert await loaded.snapshot() == await filled.snapshot()
    question = "Where does Marta work?"
    assert await loaded.recall(question, 5, 400) == await filled.recall(question, 5, 400)
    for memory in (filled, loaded):
        await play(memory, TALK[3:])
    texts = [sorted(map(str, strip_ids(await memory.snapshot()))) for memory in (filled, loaded)]
    assert len(texts[0]) > 4 and texts[0] == texts[1], "it goes on from there, and doubles nothing"


USED_BY_ITSELF = """
import asyncio, socket, sys

def refused(*address, **options):
    print("reached for", address, file=sys.__stdout__)
    raise OSError("no network")

socket.getaddrinfo = socket.socket.connect = refused
from memory_backends.contract.trial import TALK, play
from tests.contract.test_libraries import made
from tests.stubs.memory import namespace

async def use(name):
    memory = made(name)
    await memory.open(namespace(name))
    await play(memory, TALK)
    assert (await memory.recall("Where does Marta work?", 3, 400)).hits
    await memory.close("resolved")

for name in sys.argv[1:]:
    asyncio.run(use(name))
"""


def test_no_library_reaches_for_the_network_or_writes_into_the_home_folder(tmp_path: Path) -> None:
    """In a process of its own, since telemetry is sent by a thread, or when the process ends."""
    installed = [name for name, module in LIBRARIES.items() if is_installed(module)]
    ran = subprocess.run(
        [sys.executable, "-c", USED_BY_ITSELF, *installed],
        cwd=REPOSITORY,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'app'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert list(tmp_path.iterdir()) == []
