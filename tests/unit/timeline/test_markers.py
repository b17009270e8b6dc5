"""Ticks are counted right at any width, and moves go from tick to tick."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.timeline.event_store import EventSummary
from memreplay.timeline.markers import MARK_KINDS, Markers, column_of
from memreplay.timeline.navigation import (
    next_interesting,
    next_session,
    previous_interesting,
    previous_session,
    repeated,
)
from memreplay.timeline.timeline import Timeline

EMPTY = Conversation(id="c", dataset="c", sessions=(), turns=(), questions=())


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 60), st.integers(0, 50))
def test_the_columns_of_a_strip_hold_every_mark_once(errors: list[int], width: int, last: int) -> None:
    marks = Markers(EMPTY)
    for number, turn in enumerate(errors):
        marks.apply(EventSummary(number, turn, "b", "backend_failed"))
        if number == len(errors) // 2:
            marks.columns(width, last)  # what was counted before must not be believed after
    columns = marks.columns(width, last)
    assert [column.first for column in columns[1:]] == [column.last + 1 for column in columns[:-1]]
    assert (columns[0].first, columns[-1].last, len(columns)) == (0, last, min(width, last + 1))
    for column in columns:
        assert column.counts.get("error", 0) == sum(column.first <= turn <= column.last for turn in errors)
        for turn in range(column.first, column.last + 1):
            assert columns[column_of(turn, width, last)] == column


def test_a_run_is_marked_as_its_events_say(timeline: Timeline) -> None:
    end = timeline.last_turn
    ledger = [decision.decision for _, decision in timeline.ledger("hybrid").until(timeline.reached)]
    (whole,) = timeline.marks.columns(1, timeline.reached)
    assert whole.counts["promotion"] == sum(decision in ("ADD", "UPDATE") for decision in ledger)
    assert whole.counts.get("drop", 0) == sum(decision in ("DROP", "NO-OP") for decision in ledger)
    assert (
        whole.counts["question"] == timeline.marks.at(end)["question"] == 3 * len(timeline.conversation.questions)
    )
    evidence = {turn for question in timeline.conversation.questions for turn in question.evidence}
    assert whole.counts["evidence"] == len(evidence)
    assert "write" not in timeline.marks.at(1), "what a read path notes down is no write"
    assert timeline.marks.at(2)["write"]


def test_bookmarks_are_those_that_were_set_last() -> None:
    marks = Markers(EMPTY)
    marks.set_bookmarks([3, 1, 3])
    assert marks.at(3) == {"bookmark": 2}
    marks.set_bookmarks([2])
    assert (marks.at(3), marks.at(2)) == ({}, {"bookmark": 1})


def test_interesting_turns_are_walked_both_ways(timeline: Timeline) -> None:
    forward, cursor = [], 0
    while (position := next_interesting(timeline, cursor)) is not None:
        forward.append(cursor := position)
    backward, cursor = [], timeline.reached + 1
    while (position := previous_interesting(timeline, cursor, MARK_KINDS)) is not None:
        backward.append(cursor := position)
    evidence = [
        turn.number for turn in timeline.conversation.turns if timeline.marks.at(turn.number).get("evidence")
    ]
    assert set(evidence) <= set(forward) <= {*backward, *forward}
    assert forward == sorted(forward)


def test_what_was_not_reached_is_not_moved_to() -> None:
    conversation = next(iter(load(["identity-01"])))
    assert next_interesting(Timeline(conversation), 0) is None


def test_a_count_repeats_a_move_as_far_as_it_goes(timeline: Timeline) -> None:
    once = partial(next_interesting, timeline)
    third = once(once(once(0) or 0) or 0)
    assert repeated(once, 0, 3) == third
    assert repeated(once, 0, 10_000) == previous_interesting(timeline, timeline.reached + 1)
    assert repeated(once, timeline.reached, 2) is None


@pytest.mark.parametrize(
    ("cursor", "onward", "back"), [(0, 1, None), (1, 4, None), (3, 4, 1), (4, None, 1), (6, None, 4)]
)
def test_sessions_are_moved_by(cursor: int, onward: int | None, back: int | None) -> None:
    conversation = next(iter(load(["identity-01"])))
    turns = tuple(turn.model_copy(update={"session": 1 + (turn.number > 3)}) for turn in conversation.turns[:6])
    timeline = Timeline(conversation.model_copy(update={"turns": turns, "questions": ()}))
    assert next_session(timeline, cursor) == onward
    assert previous_session(timeline, cursor) == back
