"""Memories that are kept for later runs, in a folder that several processes use at once."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Event, Thread

from memory_backends.plugins import PluginAdapter
from memreplay.conversations.registry import load
from memreplay.runtime.kept_memories import KeptMemories
from tests.stubs.noting_memory import Noting

WRITERS, TIMES = 2, 40


async def test_other_processes_keep_memories_in_the_same_folder_meanwhile(tmp_path: Path) -> None:
    ended = Event()

    def keep_and_remove(place: Path) -> None:
        while not ended.is_set():
            (place / "memory" / "points").mkdir(parents=True)
            for number in range(20):
                (place / "memory" / "points" / f"{number}.bin").write_bytes(b"x")
            shutil.rmtree(place)

    others = [Thread(target=keep_and_remove, args=(tmp_path / f"{number}.part",)) for number in range(WRITERS)]
    for each in others:
        each.start()
    warnings: list[str] = []
    (conversation,) = load(["identity-01"])
    name = f"{Noting.__module__}:Noting"
    try:
        for number in range(TIMES):
            kept = KeptMemories(tmp_path, {"embedder": number, "api_base": None}, conversation, warnings.append)
            await kept.keep(PluginAdapter(name, Noting()), len(conversation.turns), [])
            assert kept.has_whole(name)
    finally:
        ended.set()
        for each in others:
            each.join()
    assert not warnings
