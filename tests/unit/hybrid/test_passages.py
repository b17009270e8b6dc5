"""Excerpts: whole turns of one session in order, under one date, gaps marked, never over the budget."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_backends.base import Message
from memory_backends.hybrid.passages import REACH, TURNS_PER_HIT, passages_of
from memory_backends.hybrid.verbatim import Channels, RankedTurn
from memory_backends.retrieval.rendering import BETWEEN_HITS
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
            likeness=(0.5,),
        )
        for rank, place in enumerate(places)
    ]


@given(places=st.permutations(range(30)), context_tokens=st.integers(20, 300), top_k=st.integers(1, 5))
def test_a_passage_says_where_its_turns_stand_and_in_which_order_they_were_taken(places, context_tokens, top_k):
    turns = ranked(*places)
    ranks = {str(place): rank for rank, place in enumerate(places, start=1)}
    for passage in passages_of(turns, top_k, context_tokens, count_words):
        for excerpt in passage.excerpts:
            assert passage.text[excerpt.start : excerpt.end] == f"Ada: saying number {excerpt.turn}"
            assert excerpt.rank == ranks[excerpt.turn]
        assert tuple(excerpt.turn for excerpt in passage.excerpts) == passage.turns


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


def test_what_does_not_fit_is_reported():
    line = count_words("[1 January 2024, 00:00]\nAda: saying number 0" + BETWEEN_HITS)
    (passage,) = passages_of(ranked(0, 1), 1, line, count_words)
    assert passage.turns == ("0",)
    assert [message.turn_id for message in passage.left_out] == ["1"]


def too_long(text: str, likeness: tuple[float, ...]) -> RankedTurn:
    (turn,) = ranked(3)
    return replace(turn, message=turn.message.model_copy(update={"text": text}), likeness=likeness)


def test_of_a_turn_that_is_too_long_its_nearest_sentences_stand_and_it_does_not_count_as_told():
    said = "It was very late by then. We ate at Nonna's place. Then it rained on all of us. We took the tram."
    turn = too_long(said + " Nobody knew the way home from there." * 9, (0, 0.9, 0.1, 0.8, *(0,) * 9))
    (passage,) = passages_of([turn], 1, 68, count_words)
    assert passage.text.startswith("[1 January 2024, 00:00]\nAda: … We ate at Nonna's place.")
    assert "We took the tram. …" in passage.text
    assert (passage.turns, passage.turns_in_part) == ((), ("3",))
    assert [message.turn_id for message in passage.left_out] == ["3"]


def test_a_part_has_the_room_of_one_turn_of_an_exchange_and_only_the_best_stand_in_part():
    long = too_long("One two three four. " * 40, (0.5,) * 40)
    parts = passages_of([long, *ranked(15)], 2, 160, count_words)
    assert 20 < count_words(parts[0].text) <= 40
    assert parts[1].turns == ("15",)
    (passage,) = passages_of([*ranked(4, 5), long], 1, 80, count_words)
    assert (passage.turns, passage.turns_in_part) == (("4", "5"), ())


def test_a_passage_that_is_full_takes_only_what_lies_between_its_turns():
    first, second = passages_of(ranked(0, 1, 2, 3, 4, 6, 7, 8, 5), 5, 10_000, count_words)
    assert first.turns == ("0", "1", "2", "3", "4", "5", "6")
    assert second.turns == ("7", "8")
    (only,) = passages_of(ranked(*range(8)), 1, 10_000, count_words)
    assert only.turns == ("0", "1", "2", "3", "4", "5"), "what does not fit is left to other hits, and here is none"


@settings(max_examples=150, deadline=None)
@given(places=st.permutations(range(40)), top_k=st.integers(1, 6), context_tokens=st.integers(0, 300))
def test_passages_never_overlap_and_never_cost_more_than_the_budget(places, top_k, context_tokens):
    passages = [
        passage for passage in passages_of(ranked(*places), top_k, context_tokens, count_words) if passage.has_room
    ]
    text = BETWEEN_HITS.join(passage.text for passage in passages)
    assert len(passages) <= top_k
    assert count_words(text) <= context_tokens
    turns = [turn for passage in passages for turn in passage.turns]
    assert len(turns) == len(set(turns)) <= top_k * TURNS_PER_HIT
    spans = sorted((min(passage.taken), max(passage.taken)) for passage in passages)
    assert all(before[1] < after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize("context_tokens", [0, 3])
def test_without_room_for_any_turn_the_best_is_there_to_be_seen_as_cut(context_tokens):
    (passage,) = passages_of(ranked(7), 1, context_tokens, count_words)
    assert not passage.has_room and passage.turns == ("7",)
