"""What a memory kept of a turn, folded from what it did to its stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memory_backends.hybrid.backend import HybridBackend
from memory_backends.stores.trace import Change, MemoryOperation, PatchChange, PatchStep, WriteChange
from memreplay.engine.events import ConversationOpened, ReplayEvent, StoreOperated
from memreplay.scoring.kept import Provenance, Supersession
from tests.unit.scoring.planted import SAID, played, question, real

KEY = "shared_state:run/c/hybrid"


async def provenance_of(backend: str, at: int = len(SAID)) -> Provenance:
    timeline = await played(question(), real(backend), {}, at=at)
    return Provenance(event for turn in range(at + 1) for event in timeline.events_at(backend, turn))


def written(*changes: Change, key: str = KEY, error: str | None = None) -> Iterator[ReplayEvent]:
    yield ConversationOpened(conversation="c", backend="hybrid", turn=0, memory=HybridBackend.description)
    for number, change in enumerate(changes, start=1):
        operation = MemoryOperation(
            store="redis", command="SET", key=key, change=change, ms=0.1, phase="observe", actor="a",
            turns=(str(number),), error=error,
        )  # fmt: skip
        yield StoreOperated(conversation="c", backend="hybrid", turn=number, operation=operation)


def slot(turn: str, value: str) -> dict[str, Any]:
    return {"value": value, "turn": turn, "said_by": "User"}


async def test_rag_keeps_the_words_of_every_turn() -> None:
    kept = await provenance_of("rag")
    assert all([one.verbatim and one.holds for one in kept.kept_of(str(turn))] == [True] for turn in range(1, 9))
    assert kept.observed == {str(turn) for turn in range(1, 9)}


async def test_what_was_not_said_yet_is_not_kept() -> None:
    kept = await provenance_of("full_context", at=4)
    assert kept.kept_of("4") and not kept.kept_of("5")


async def test_hybrid_keeps_words_beside_facts_and_a_corrected_fact_holds_no_longer() -> None:
    kept = await provenance_of("hybrid")
    first = kept.kept_of("1")
    assert [one.holds for one in first if one.verbatim] == [True]
    assert {one.holds for one in first if not one.verbatim} == {False}
    assert {one.holds for one in kept.kept_of("5")} == {True}
    assert kept.supersessions == [Supersession("blue", frozenset("1"), frozenset("5"))]


async def test_what_an_agent_notes_for_itself_keeps_nothing() -> None:
    state = {"scratchpad": {"turn": "1"}, "promotion_candidates": {"1.1": {"sources": ["1"]}}}
    assert not Provenance(written(WriteChange(value=state), key="personal_state:planner")).is_traced


def test_a_slot_keeps_the_turn_that_filled_it_until_another_value_takes_its_place() -> None:
    empty = WriteChange(value={"shared_data": {"city": slot("1", "Lugo")}})
    moved = PatchChange(
        steps=(
            PatchStep(op="replace", path="/shared_data/city/turn", value="2", replaced="1"),
            PatchStep(op="replace", path="/shared_data/city/value", value="Vigo", replaced="Lugo"),
        )
    )
    kept = Provenance(written(empty, moved))
    assert [(one.superseded, one.removed) for one in kept.kept_of("1")] == [(True, False)]
    assert [one.holds for one in kept.kept_of("2")] == [True]


def test_a_slot_that_made_room_is_removed_and_one_of_several_values_keeps_all() -> None:
    several = {"values": [slot("1", "tea"), slot("2", "rye")]}
    state = WriteChange(value={"shared_data": {"likes": several, "city": slot("3", "Lugo")}})
    room = PatchChange(steps=(PatchStep(op="remove", path="/shared_data/city", replaced=slot("3", "Lugo")),))
    kept = Provenance(written(state, room))
    assert [one.removed for one in kept.kept_of("3")] == [True]
    assert [one.holds for turn in ("1", "2") for one in kept.kept_of(turn)] == [True, True]


def test_another_key_keeps_the_turns_on_whose_account_it_was_written() -> None:
    text = Provenance(written(WriteChange(value="User: hi"), WriteChange(value="User: hi\nAI: ho"), key="notes"))
    assert [[one.verbatim for one in text.kept_of(turn)] for turn in ("1", "2", "3")] == [[True], [True], []]
    state = Provenance(written(WriteChange(value={"mood": "good"}), key="profile"))
    assert [one.verbatim for one in state.kept_of("1")] == [False]


def test_a_command_that_failed_kept_nothing() -> None:
    state = WriteChange(value={"shared_data": {"city": slot("1", "Lugo")}})
    assert not Provenance(written(state, error="connection lost")).is_traced
