"""A memory of somebody else's: found by its name, refused in words, and shown although it uses no store of ours."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from memory_backends.base import BackendError, MemoryBackend, StoreLostError
from memory_backends.contract.trial import TALK
from memory_backends.plugins import PluginError
from memory_backends.registry import (
    UnknownBackendError,
    check_backend_name,
    create_backend,
    known_backends,
    texts_to_embed,
)
from memory_backends.resources import Resources
from memory_backends.snapshots import plain
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import MemoryOperation, MemoryTrace
from memreplay.conversations.models import exchanges_of
from memreplay.conversations.registry import load
from memreplay.engine.events import BackendFailed, ReplayEvent, StoreOperated
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.timeline.fold import MISSING
from memreplay.timeline.timeline import Timeline
from tests.stubs.answering import ScriptedAnswerer
from tests.stubs.memory import TickingClock, WordEmbedder, count_words, exchange, fold, namespace, play

STUBS = "tests.stubs.plugins"


def created(name: str) -> MemoryBackend:
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
    )
    return create_backend(name, resources, {})


async def replayed(name: str) -> tuple[Timeline, list[ReplayEvent], dict[int, dict[str, object]]]:
    """A conversation played to a plug-in, with what its own snapshot showed after every turn."""
    conversation = next(iter(load(["identity-01"])))
    memory, events = created(name), []
    session = ReplaySession(
        conversation, {name: memory}, ScriptedAnswerer(), ReplayPlan(run_id="run", models=("m",)), events.append
    )
    await session.open()
    shown = {}
    while await session.step():
        snapshot = await memory.snapshot()
        shown[session.position] = plain(snapshot.model_dump())
    await session.close("resolved")
    return Timeline(conversation, events), events, shown


@pytest.mark.parametrize("name", ["Bare", "HalfOurs"])
async def test_what_a_plug_in_keeps_can_be_stepped_through_though_it_traces_nothing(name: str) -> None:
    timeline, events, shown = await replayed(f"{STUBS}:{name}")
    assert len(shown) == timeline.last_turn
    for turn in (*shown, *reversed(shown)):
        assert plain(timeline.snapshot_at(f"{STUBS}:{name}", turn).model_dump()) == shown[turn]
    phases = {event.operation.phase for event in events if isinstance(event, StoreOperated)}
    assert phases == {"open", "observe"}


async def test_a_text_that_begins_anew_and_a_key_that_goes_are_seen_at_their_turn() -> None:
    name = f"{STUBS}:Bare"
    timeline, _, _ = await replayed(name)
    assert [piece for _, piece in timeline.log_at(name, "summary", 6)] == ["6 turns so far"]
    assert timeline.state_at(name, "passing", 2) == 2
    assert timeline.state_at(name, "passing", 4) is MISSING


async def test_what_the_memory_traces_itself_is_not_told_twice() -> None:
    _, events, _ = await replayed(f"{STUBS}:HalfOurs")
    commands = [event.operation.command for event in events if isinstance(event, StoreOperated) and event.turn == 2]
    assert sorted(commands) == ["snapshot", "upsert"]


async def test_a_snapshot_that_fails_costs_the_panel_and_not_the_memory() -> None:
    _, events, shown = await _without_snapshots()
    assert not [event for event in events if isinstance(event, BackendFailed)]
    errors = {event.operation.error for event in events if isinstance(event, StoreOperated)}
    assert errors == {"OSError: the disk is gone"}
    assert shown == exchanges_of(next(iter(load(["identity-01"]))))[-1].turn_number


async def test_what_is_lost_between_two_writes_is_no_deletion_of_the_memory() -> None:
    memory = created(f"{STUBS}:Losing")
    await memory.open(namespace("losing"))
    for each in TALK[:3]:
        await memory.observe(each)
    await asyncio.sleep(0.1)
    with pytest.raises(StoreLostError, match="lost 1 of the 1 items"):
        await memory.observe(TALK[3])


@pytest.mark.parametrize(
    ("name", "problem"),
    [("Hoarding", "more than 200,000 values"), ("Nesting", "more than 250 values inside each other")],
)
async def test_of_a_memory_that_holds_too_much_nothing_is_said(name: str, problem: str) -> None:
    memory = created(f"{STUBS}:{name}")
    await memory.open(namespace("hoarding"))
    await memory.observe(TALK[0])
    assert not (await memory.snapshot()).is_known and not memory.description.is_known
    errors = [entry.error for entry in memory.trace.drain() if isinstance(entry, MemoryOperation) and entry.error]
    assert errors and problem in errors[0]


async def _without_snapshots() -> tuple[None, list[ReplayEvent], int]:
    conversation = next(iter(load(["identity-01"])))
    events: list[ReplayEvent] = []
    memories = {"plug": created(f"{STUBS}:SnapshotFails")}
    session = ReplaySession(
        conversation, memories, ScriptedAnswerer(), ReplayPlan(run_id="run", models=("m",)), events.append
    )
    await session.open()
    await session.play()
    return None, events, session.position


async def test_an_answer_of_the_wrong_kind_is_refused_in_words() -> None:
    memory = created(f"{STUBS}:GivesText")
    await memory.open(namespace("plug"))
    with pytest.raises(BackendError, match=r"recall\(\) returned a str, not a Recall"):
        await memory.recall("Where?", 5, 100)


async def test_what_its_own_stores_do_is_on_the_account_of_the_phase() -> None:
    memory = created(f"{STUBS}:HalfOurs")
    await memory.open(namespace("plug"))
    await play(memory, TALK[:1])
    operations = [entry for entry in memory.trace.drain() if isinstance(entry, MemoryOperation)]
    upserts = [entry for entry in operations if entry.command == "upsert"]
    assert [(entry.phase, entry.turns, entry.actor) for entry in upserts] == [("observe", ("1", "2"), "HalfOurs")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere.to.be_found:Memory", "no module 'nowhere'"),
        (f"{STUBS}.deeper:Memory", "there is no module"),
        (f"{STUBS}:Absent", "there is no Absent in tests.stubs.plugins"),
        (f"{STUBS}:a_function", "is not a class"),
        (f"{STUBS}:NoMemory", r"it has no open\(\), it has no observe\(\)"),
        (f"{STUBS}:WantsMuch", "its __init__ requires redis, qdrant"),
        ("tests.stubs.fails_on_import:Memory", r"RuntimeError: half configured \(fails_on_import.py, line 3\)"),
    ],
)
def test_what_cannot_be_plugged_in_is_refused_before_anything_is_built(name: str, says: str) -> None:
    with pytest.raises(PluginError, match=says):
        check_backend_name(name)


def test_a_failing_constructor_is_reported_with_its_place() -> None:
    with pytest.raises(PluginError, match=r"cannot be created: ValueError: no licence \(plugins.py, line \d+\)"):
        created(f"{STUBS}:FailsToBeMade")


@pytest.mark.parametrize("name", ["rag:keywrod", "hybird", "a b:C", "module:", ":Class", "../x:Y"])
def test_a_misspelt_name_is_not_looked_for_among_modules(name: str) -> None:
    with pytest.raises(UnknownBackendError, match="full_context"):
        check_backend_name(name)


@pytest.fixture
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that announces a memory."""
    facts = tmp_path / "diary-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: diary\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        f"[memreplay.backends]\ndiary = {STUBS}:Bare\nbroken = nowhere:Memory\nrag = {STUBS}:Bare\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("announced")
def test_a_memory_that_a_package_announces_is_listed_beside_ours_and_takes_no_name_of_ours() -> None:
    names: Sequence[str] = known_backends()
    assert {"hybrid", "diary", "broken"} < set(names)
    assert names.count("rag") == 1
    assert created("diary").name == "diary"
    assert type(created("rag")).__name__ == "RagBackend"
    with pytest.raises(PluginError, match="no module 'nowhere'"):
        check_backend_name("broken")


def test_a_class_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_memory.py").write_text(f"from {STUBS} import Bare\n\nclass Mine(Bare):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert isinstance(created("my_own_memory:Mine").trace, MemoryTrace)


async def test_keyframes_keep_the_fold_of_a_long_conversation_short_and_right() -> None:
    memory = created(f"{STUBS}:Bare")
    await memory.open(namespace("plug"))
    for number in range(80):
        await play(memory, [TALK[number % len(TALK)]])
    entries = memory.trace.drain()
    assert plain(fold(entries).model_dump()) == plain((await memory.snapshot()).model_dump())


@pytest.mark.parametrize(
    ("class_name", "texts"),
    [("SaysWhatItEmbeds", ["USER: HELLO.\nAI: HI."]), ("FailsToSayWhatItEmbeds", []), ("Bare", [])],
)
def test_what_a_plug_in_says_it_will_embed_is_embedded_ahead(class_name: str, texts: list[str]) -> None:
    assert texts_to_embed([f"{STUBS}:{class_name}"], [exchange(1, "Hello.", "Hi.")]) == texts
