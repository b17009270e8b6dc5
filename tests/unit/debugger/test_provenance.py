"""Who wrote a value is the last write after which it was another than before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_backends.records import KNOWLEDGE_COLLECTION, VERBATIM_COLLECTION
from memory_backends.stores.trace import Change, MemoryOperation, PatchChange, WriteChange, patch_between
from memreplay.conversations.models import Conversation
from memreplay.debugger.provenance import hit_written_by, line_written_by, point_written_by, value_written_by
from memreplay.engine.events import StoreOperated
from memreplay.timeline.fold import MISSING, Path, value_in
from memreplay.timeline.timeline import Timeline

EMPTY = Conversation(id="c", dataset="c", sessions=(), turns=(), questions=())


def written(changes: list[Change]) -> Timeline:
    """A state after each change, one a position."""
    events = []
    for turn, change in enumerate(changes):
        operation = MemoryOperation(
            store="redis",
            command="SET",
            key="k",
            change=change,
            ms=0,
            phase="observe",
            actor="a",
            turns=(str(turn),),
        )
        events.append(StoreOperated(conversation="c", turn=turn, backend="b", operation=operation))
    return Timeline(EMPTY, events)


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    for name, item in value.items() if isinstance(value, dict) else ():
        yield from places(item, (*path, name))


leaves = st.integers(0, 3) | st.text("ab", max_size=1)
states = st.dictionaries(
    st.sampled_from("abc"), leaves | st.dictionaries(st.sampled_from("x/~"), leaves), max_size=3
)


@settings(deadline=None)
@given(st.lists(states, min_size=1, max_size=8))
def test_the_writer_of_a_value_is_the_last_that_changed_it(values: list[Any]) -> None:
    changes: list[Change] = [WriteChange(value=values[0])]
    for old, new in pairwise(values):
        steps = patch_between(old, new)
        assert steps is not None
        changes.append(PatchChange(steps=steps))
    timeline = written(changes)
    for turn, value in enumerate(values):
        for path in places(value):
            before = [value_in(values[at - 1], path) if at else MISSING for at in range(turn + 1)]
            last = max(at for at in range(turn + 1) if at == 0 or before[at] != value_in(values[at], path))
            origin = value_written_by(timeline, "b", "k", path, turn)
            assert origin is not None
            assert origin.turn == last
            assert timeline.operations_at("b", last)[origin.number] == origin.operation


@settings(deadline=None)
@given(st.lists(st.sampled_from(["push", "shift", "replace"]), max_size=12))
def test_an_item_of_a_list_is_followed_through_what_moves_it(moves: list[str]) -> None:
    items: list[str] = []
    state: dict[str, Any] = {"n": items}
    changes: list[Change] = [WriteChange(value={"n": []})]
    for turn, move in enumerate(moves, start=1):
        new = [*items, f"item {turn}"]
        if move == "shift":
            new = new[1:] if items else new
        elif move == "replace" and items:
            new = [*items[:-1], f"item {turn}"]
        steps = patch_between(state, {"n": new})
        assert steps is not None
        changes.append(PatchChange(steps=steps))
        items, state = new, {"n": new}
    timeline = written(changes)
    for index, item in enumerate(items):
        origin = value_written_by(timeline, "b", "k", ("n", str(index)), len(moves))
        assert origin is not None
        assert f"item {origin.turn}" == item


def test_nobody_wrote_what_is_not_there(timeline: Timeline) -> None:
    assert value_written_by(timeline, "hybrid", "no such key", (), 9) is None
    assert value_written_by(timeline, "hybrid", timeline.state_keys("hybrid")[0], ("scratchpad",), -1) is None


def test_a_point_leads_to_the_exchange_that_wrote_it_and_to_what_changed_it_since(timeline: Timeline) -> None:
    end = timeline.reached
    for number, (point_id, payload) in enumerate(
        timeline.collection("hybrid", VERBATIM_COLLECTION).points_at(end).items()
    ):
        (origin,) = point_written_by(timeline, "hybrid", VERBATIM_COLLECTION, point_id, end)
        assert payload["turn_number"] == number + 1
        assert origin.turn == int(payload["turns"][-1]) == 2 * (number + 1)
    facts = timeline.collection("hybrid", KNOWLEDGE_COLLECTION)
    for point_id in facts.points_at(end):
        origins = point_written_by(timeline, "hybrid", KNOWLEDGE_COLLECTION, point_id, end)
        assert [origin.turn for origin in origins] == [turn for turn, *_ in facts.writes_of(point_id, end)]


@pytest.mark.parametrize("backend", ["hybrid", "rag", "full_context"])
def test_every_hit_and_every_line_of_a_prompt_leads_to_a_write_of_the_turn_that_says_it(
    timeline: Timeline, backend: str
) -> None:
    lines = 0
    for answer in timeline.answers():
        if answer.asked.backend != backend:
            continue
        asked = answer.asked
        for hit in asked.hits:
            origins = hit_written_by(timeline, backend, hit, asked.turn)
            assert origins
            assert {turn for origin in origins for turn in origin.turns} & {*hit.turns, *hit.sources}
        for line in asked.prompt[0].segments[0].splitlines():
            found = line_written_by(timeline, backend, asked.hits, line, asked.turn)
            if found is None or found.said is None:
                continue
            lines += 1
            assert found.written is not None
            assert found.said.id in found.written.turns
            assert found.hit.in_prompt
    assert lines > 5
    assert line_written_by(timeline, backend, asked.hits, "nobody ever said this", asked.turn) is None
