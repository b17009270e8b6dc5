"""Folding the changes gives the value at any position, however one jumps about."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.replay.fold import MISSING, CollectionHistory, LogHistory, StateHistory
from memory_backends.operations import (
    AppendChange,
    PatchChange,
    PatchStep,
    RemoveChange,
    StoredPoint,
    UpsertChange,
    WriteChange,
)

states = st.dictionaries(
    st.sampled_from("abcd"), st.integers() | st.lists(st.text(max_size=3), max_size=3), max_size=4
)


def patch(old: Any, new: Any, keyframe: bool) -> PatchChange:
    steps = tuple(PatchStep(op=s["op"], path=s["path"], value=s.get("value")) for s in _plain(old, new))
    return PatchChange(steps=steps, keyframe=new if keyframe else None)


def _plain(old: Any, new: Any) -> list[dict[str, Any]]:
    steps = [{"op": "remove", "path": f"/{key}"} for key in old if key not in new]
    steps += [{"op": "add" if k not in old else "replace", "path": f"/{k}", "value": new[k]} for k in new]
    assert jsonpatch.apply_patch(old, steps) == new
    return steps


@given(st.lists(states, min_size=1, max_size=12), st.lists(st.integers(0, 30), max_size=20), st.integers(1, 5))
def test_a_state_at_any_position_is_what_was_last_written(
    written: list[Any], visits: list[int], keyframe_every: int
) -> None:
    history = StateHistory()
    history.add(1, WriteChange(value=written[0]))
    for index in range(1, len(written)):
        change = patch(written[index - 1], written[index], keyframe=index % keyframe_every == 0)
        history.add(2 * index + 1, change)
    for turn in visits:
        expected = MISSING if turn == 0 else written[min((turn - 1) // 2, len(written) - 1)]
        assert history.value_at(turn) == expected
        assert history.changed_at(turn) == (turn % 2 == 1 and (turn - 1) // 2 < len(written))


def test_a_removed_state_is_missing_and_may_come_back() -> None:
    history = StateHistory()
    history.add(1, WriteChange(value={"a": 1}))
    history.add(3, RemoveChange(count=1))
    history.add(5, WriteChange(value={"a": 2}))
    assert [history.value_at(turn) for turn in range(6)] == [
        MISSING,
        {"a": 1},
        {"a": 1},
        MISSING,
        MISSING,
        {"a": 2},
    ]


def test_a_log_grows_and_a_gap_in_it_is_noticed() -> None:
    log = LogHistory()
    log.add(2, AppendChange(offset=0, text="User: ¿qué?\n"))
    log.add(4, AppendChange(offset=len("User: ¿qué?\n".encode()), text="AI: sí\n"))
    assert log.value_at(1) is MISSING
    assert log.value_at(3) == "User: ¿qué?\n"
    assert log.value_at(9) == "User: ¿qué?\nAI: sí\n"
    assert log.size_at(4) == len("User: ¿qué?\nAI: sí\n".encode())
    with pytest.raises(ValueError, match="append at byte 99"):
        log.add(6, AppendChange(offset=99, text="x"))


def test_points_are_counted_and_replaced_by_id() -> None:
    points = CollectionHistory()
    points.add(
        2, UpsertChange(points=(StoredPoint(id="a", payload={"v": 1}), StoredPoint(id="b", payload={"v": 2})))
    )
    points.add(4, UpsertChange(points=(StoredPoint(id="a", payload={"v": 3}, replaced={"v": 1}),)))
    points.add(6, RemoveChange(count=1, ids=("b",)))
    assert [points.count_at(turn) for turn in (1, 2, 4, 6)] == [0, 2, 2, 1]
    assert points.points_at(5) == {"a": {"v": 3}, "b": {"v": 2}}
    assert points.points_at(6) == {"a": {"v": 3}}
    assert [point.id for point in points.written_at(4)] == ["a"]
