"""Excerpts: whole turns of one session in order, under one date, gaps marked, never over the budget."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_backends.base import Message
from memory_backends.hybrid.passages import REACH, TURNS_PER_HIT, passages_of
from memory_backends.hybrid.verbatim import Channels, RankedTurn
from memory_backends.rendering import BETWEEN_HITS
from tests.stubs.memory import count_words

NOTHING = Channels({}, {})


def ranked(*places: int, session_length: int = 20) -> list[RankedTurn]:
    """Turns in this order of rank. ``session_length`` turns make a session, each of its own date."""
    return [
        RankedTurn(
            exchange_id=f"point-{place // 2}",
            place=place,
            message=Message(
                turn_id=str(place),
                turn_number=place + 1,
                session=1 + place // session_length,
                role="user",
                label="Ada",
                text=f"saying number {place}",
                said_at=datetime(2024, 1, 1 + place // session_length),
            ),
            score=1 - rank / 100,
            found_by=NOTHING,
        )
        for rank, place in enumerate(places)
    ]


def test_turns_near_each_other_make_one_passage_in_order_with_gaps_marked():
    (passage,) = passages_of(ranked(4, 2, 5), 3, 1000, count_words)
    assert passage.turns == ("2", "4", "5")
    assert passage.text == (
        "[1 January 2024, 00:00]\nAda: saying number 2\n…\nAda: saying number 4\nAda: saying number 5"
    )


def test_a_turn_of_another_session_or_out_of_reach_begins_a_passage_of_its_own():
    passages = passages_of(ranked(18, 20, 18 - REACH - 1), 3, 1000, count_words)
    assert [passage.turns for passage in passages] == [("18",), ("20",), (str(18 - REACH - 1),)]


def test_past_the_limit_of_passages_only_neighbours_are_taken_in():
    passages = passages_of(ranked(0, 10, 1), 1, 1000, count_words)
    assert [passage.turns for passage in passages] == [("0", "1")]


def test_what_there_is_no_room_for_is_told():
    line = count_words("[1 January 2024, 00:00]\nAda: saying number 0" + BETWEEN_HITS)
    (passage,) = passages_of(ranked(0, 1), 1, line, count_words)
    assert passage.turns == ("0",)
    assert [message.turn_id for message in passage.left_out] == ["1"]


@settings(max_examples=150, deadline=None)
@given(places=st.permutations(range(40)), limit=st.integers(1, 6), budget=st.integers(0, 300))
def test_passages_never_overlap_and_never_cost_more_than_the_budget(places, limit, budget):
    passages = [passage for passage in passages_of(ranked(*places), limit, budget, count_words) if passage.has_room]
    text = BETWEEN_HITS.join(passage.text for passage in passages)
    assert len(passages) <= limit
    assert count_words(text) <= budget
    turns = [turn for passage in passages for turn in passage.turns]
    assert len(turns) == len(set(turns)) <= limit * TURNS_PER_HIT
    spans = sorted((min(passage.taken), max(passage.taken)) for passage in passages)
    assert all(before[1] < after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize("budget", [0, 3])
def test_without_room_for_any_turn_the_best_is_there_to_be_seen_as_cut(budget):
    (passage,) = passages_of(ranked(7), 1, budget, count_words)
    assert not passage.has_room and passage.turns == ("7",)
