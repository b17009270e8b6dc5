"""Folding the changes gives the value at any position, however one jumps about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_backends.stores.trace import (
    Change,
    PatchChange,
    RemoveChange,
    StoredPoint,
    UpsertChange,
    WriteChange,
    patch_between,
)
from memreplay.timeline.fold import MISSING, CollectionHistory, LogHistory, StateHistory

states = st.dictionaries(
    st.sampled_from("abcd"),
    st.integers()
    | st.lists(st.text(max_size=3), max_size=3)
    | st.dictionaries(st.sampled_from(["x", "~/", "0"]), st.integers(), max_size=2),
    max_size=4,
)


class Changes:
    """The changes of one place as an archive would give them: the reference is the place in the list."""

    def __init__(self, make: Callable[[Callable[[int], Change]], Any]) -> None:
        self._kept: list[Change] = []
        self.history = make(self._kept.__getitem__)

    def add(self, turn: int, change: Change) -> None:
        self._kept.append(change)
        ref = len(self._kept) - 1
        match change:
            case UpsertChange(points=points):
                self.history.add(turn, ref, [point.id for point in points])
            case RemoveChange(ids=ids) if isinstance(self.history, CollectionHistory):
                self.history.remove(turn, ref, ids)
            case PatchChange(steps=steps, keyframe=keyframe):
                self.history.add(turn, ref, [step.path for step in steps], whole=keyframe is not None)
            case _:
                self.history.add(turn, ref, [""], whole=True)


def patch(old: Any, new: Any, keyframe: bool) -> PatchChange:
    steps = patch_between(old, new)
    assert steps is not None
    plain = [step.model_dump(include={"op", "path", "value"}) for step in steps]
    assert jsonpatch.apply_patch(old, plain) == new
    return PatchChange(steps=steps, keyframe=new if keyframe else None)


@settings(deadline=None)
@given(st.lists(states, min_size=1, max_size=12), st.lists(st.integers(0, 30), max_size=20), st.integers(1, 5))
def test_a_state_at_any_position_is_what_was_last_written(
    written: list[Any], visits: list[int], keyframe_every: int
) -> None:
    changes = Changes(StateHistory)
    changes.add(1, WriteChange(value=written[0]))
    for index in range(1, len(written)):
        change = patch(written[index - 1], written[index], keyframe=index % keyframe_every == 0)
        changes.add(2 * index + 1, change)
    for turn in visits:
        expected = MISSING if turn == 0 else written[min((turn - 1) // 2, len(written) - 1)]
        assert changes.history.value_at(turn) == expected
        assert changes.history.changed_at(turn) == (turn % 2 == 1 and (turn - 1) // 2 < len(written))


def test_a_value_that_was_looked_at_is_not_changed_by_looking_further() -> None:
    first = {"a": {"b": [1, 2]}, "c": 0}
    second = {"a": {"b": [1, 2, 3]}, "c": 0}
    changes = Changes(StateHistory)
    changes.add(1, WriteChange(value=first))
    changes.add(2, patch(first, second, keyframe=False))
    looked_at = changes.history.value_at(1)
    assert changes.history.value_at(2) == second
    assert looked_at == {"a": {"b": [1, 2]}, "c": 0}


def test_a_removed_state_is_missing_and_may_come_back() -> None:
    changes = Changes(StateHistory)
    changes.add(1, WriteChange(value={"a": 1}))
    changes.add(3, RemoveChange(count=1))
    changes.add(5, WriteChange(value={"a": 2}))
    assert [changes.history.value_at(turn) for turn in range(6)] == [
        MISSING,
        {"a": 1},
        {"a": 1},
        MISSING,
        MISSING,
        {"a": 2},
    ]


def test_a_log_grows_and_a_gap_in_it_is_noticed() -> None:
    log = LogHistory()
    log.add(2, 0, 0, "User: ¿qué?\n")
    log.add(4, 1, len("User: ¿qué?\n".encode()), "AI: sí\n")
    assert log.value_at(1) is MISSING
    assert log.value_at(3) == "User: ¿qué?\n"
    assert log.value_at(9) == "User: ¿qué?\nAI: sí\n"
    assert log.size_at(4) == len("User: ¿qué?\nAI: sí\n".encode())
    assert log.pieces_at(3) == [(2, "User: ¿qué?\n")]
    assert log.pieces_at(9)[-1] == (4, "AI: sí\n")
    with pytest.raises(ValueError, match="append at byte 99"):
        log.add(6, 2, 99, "x")


def test_points_are_counted_and_replaced_by_id() -> None:
    changes = Changes(CollectionHistory)
    changes.add(
        2, UpsertChange(points=(StoredPoint(id="a", payload={"v": 1}), StoredPoint(id="b", payload={"v": 2})))
    )
    changes.add(4, UpsertChange(points=(StoredPoint(id="a", payload={"v": 3}, replaced={"v": 1}),)))
    changes.add(6, RemoveChange(count=1, ids=("b",)))
    points: CollectionHistory = changes.history
    assert [points.count_at(turn) for turn in (1, 2, 4, 6)] == [0, 2, 2, 1]
    assert points.points_at(5) == {"a": {"v": 3}, "b": {"v": 2}}
    assert points.points_at(6) == {"a": {"v": 3}}
    assert [point.id for point in points.written_at(4)] == ["a"]
    assert [(turn, point.payload) for turn, _, point in points.writes_of("a", 9)] == [(2, {"v": 1}), (4, {"v": 3})]


def test_points_that_were_removed_at_a_position_are_as_they_were_before() -> None:
    changes = Changes(CollectionHistory)
    changes.add(
        2, UpsertChange(points=(StoredPoint(id="a", payload={"v": 1}), StoredPoint(id="b", payload={"v": 2})))
    )
    changes.add(4, RemoveChange(count=2, ids=("a", "b")))
    changes.add(4, UpsertChange(points=(StoredPoint(id="b", payload={"v": 3}),)))
    points: CollectionHistory = changes.history
    assert [point.payload for point in points.removed_at(4)] == [{"v": 1}], "b was only replaced"
    assert points.removed_at(2) == points.removed_at(5) == []
