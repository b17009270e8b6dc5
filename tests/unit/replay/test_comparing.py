"""A diff holds both states, marks what differs and nothing else, and folds the rest."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.replay.comparing import DiffLine, Folded, changed_count, diff_states, fold_unchanged
from app.replay.pointers import MISSING, value_in

json = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
states = st.dictionaries(st.sampled_from("abcd"), json, max_size=4)


@settings(deadline=None)
@given(states, states)
def test_every_line_tells_the_truth_of_both_sides(before: Any, after: Any) -> None:
    for line in diff_states(before, after):
        if line.sign == "~":
            assert line.before != line.after
        assert (line.before is None) == (line.sign == "+")
        assert (line.after is None) == (line.sign == "−")
        if line.sign in "+~":
            assert value_in(after, line.path) is not MISSING


@settings(deadline=None)
@given(states, states)
def test_nothing_is_marked_exactly_where_the_states_are_the_same(before: Any, after: Any) -> None:
    same = repr(sorted(before.items())) == repr(sorted(after.items()))
    assert changed_count(diff_states(before, before)) == 0
    if same:
        assert changed_count(diff_states(before, after)) == 0
    elif before != after:
        assert changed_count(diff_states(before, after)) > 0


def test_a_key_that_changed_has_before_and_after_on_one_line() -> None:
    before = {"status": "active", "data": {"city": "Barcelona", "port": 6543}, "gone": 1}
    after = {"status": "active", "data": {"city": "Girona", "port": 6543, "name": "Marta"}}
    lines = {".".join(line.path): (line.sign, line.before, line.after) for line in diff_states(before, after)}
    assert lines["data.city"] == ("~", '"Barcelona"', '"Girona"')
    assert lines["data.name"] == ("+", None, '"Marta"')
    assert lines["gone"] == ("−", "1", None)
    assert lines["status"] == (" ", '"active"', '"active"')


def test_an_item_that_left_a_list_does_not_change_those_behind_it() -> None:
    lines = diff_states({"n": ["a", "b", "c"]}, {"n": ["b", "c", "d"]})
    assert [(line.sign, line.before or line.after) for line in lines if line.sign != " "] == [
        ("−", '"a"'),
        ("+", '"d"'),
    ]


def test_a_state_that_begins_or_ends_is_all_new_or_all_gone() -> None:
    assert {line.sign for line in diff_states(MISSING, {"a": 1, "b": 2})} == {"+"}
    assert {line.sign for line in diff_states({"a": 1}, MISSING)} == {"−"}
    assert diff_states(MISSING, MISSING) == ()


def test_true_and_one_are_two_values() -> None:
    (line,) = diff_states({"a": True}, {"a": 1})
    assert (line.sign, line.before, line.after) == ("~", "true", "1")


def test_unchanged_stretches_fold_and_open_again() -> None:
    before = {f"k{number:02}": number for number in range(20)}
    lines = diff_states(before, before | {"k10": "new"})
    rows = fold_unchanged(lines)
    assert [len(row.lines) if isinstance(row, Folded) else row.sign for row in rows] == [
        8, " ", " ", "~", " ", " ", 7,
    ]  # fmt: skip
    assert [line for row in rows for line in (row.lines if isinstance(row, Folded) else [row])] == list(lines)
    opened = fold_unchanged(lines, opened=frozenset({0}))
    assert sum(isinstance(row, Folded) for row in opened) == 1
    assert all(isinstance(row, DiffLine) for row in opened[:13])
