"""A biography lines up what the events say of one turn, stage by stage."""

from __future__ import annotations

import pytest

from memory_backends.records import KNOWLEDGE_COLLECTION
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.debugger.biography import (
    answerable_from,
    biographies,
    biography,
    memory_at_last,
    retrieval_outcome,
)
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.engine.events import ReplayEvent
from memreplay.timeline.timeline import Timeline
from tests.unit.conftest import play


@pytest.fixture(scope="module")
def retrievals(timeline: Timeline) -> RetrievalIndex:
    index = RetrievalIndex(timeline)
    while not index.catch_up(7):
        pass
    return index


@pytest.mark.parametrize("backend", ["hybrid", "rag", "full_context"])
def test_every_turn_is_observed_when_its_exchange_ends_and_stored_verbatim(
    timeline: Timeline, retrievals: RetrievalIndex, backend: str
) -> None:
    for turn in timeline.conversation.turns:
        life = biography(timeline, retrievals, backend, turn)
        assert life.said_at == turn.number
        assert life.observed_at == turn.number + turn.number % 2
        assert life.written_at == life.observed_at
        assert [stored.form for stored in life.stored].count("verbatim") == 1


def test_every_decision_is_in_the_biographies_of_the_turns_it_was_made_from(
    timeline: Timeline, retrievals: RetrievalIndex
) -> None:
    told: set[tuple[int, str]] = set()
    for turn in timeline.conversation.turns:
        life = biography(timeline, retrievals, "hybrid", turn)
        staged = {one.candidate_id for one in life.staged}
        for one in life.judged:
            assert turn.id in one.decision.sources
            assert one.decision.candidate_id in staged
            told.add((one.turn, one.decision.candidate_id))
        kept = {one.decision.knowledge_id for one in life.judged if one.decision.knowledge_id}
        facts = {stored.item for stored in life.stored if stored.place == KNOWLEDGE_COLLECTION}
        assert kept <= facts  # others may hold the same answer
    ledger = timeline.ledger("hybrid").until(timeline.reached)
    assert told == {(turn, decision.candidate_id) for turn, decision in ledger}


async def test_a_superseded_fact_says_when_and_by_what() -> None:
    said = ["I live in Barcelona.", "Noted.", "I moved to Girona, I live in Girona now.", "Lovely."]
    turns = tuple(
        Turn(id=str(n), number=n, session=1, role="user" if n % 2 else "assistant", speaker=None, text=text)
        for n, text in enumerate(said, start=1)
    )
    moved = Conversation(id="c", dataset="c", sessions=(Session(number=1, id="1"),), turns=turns, questions=())
    events: list[ReplayEvent] = []
    await play(moved, events, ["hybrid"])
    timeline = Timeline(moved, events)
    before, after = (biography(timeline, RetrievalIndex(timeline), "hybrid", turns[at]) for at in (0, 2))
    (old,) = [one for one in before.stored if one.place == KNOWLEDGE_COLLECTION]
    (new,) = [one for one in after.stored if one.place == KNOWLEDGE_COLLECTION]
    assert (old.turn, old.superseded_at, old.successor) == (2, 4, new.item)
    assert (new.turn, new.superseded_at) == (4, None)
    slots = [one for life in (before, after) for one in life.stored if one.item == "/shared_data/user.city"]
    assert [(slot.turn, slot.superseded_at) for slot in slots] == [(2, 4), (4, None)]


def test_the_placings_are_those_of_the_read_paths(timeline: Timeline, retrievals: RetrievalIndex) -> None:
    for turn in timeline.conversation.turns:
        life = biography(timeline, retrievals, "hybrid", turn)
        ranks = {at: (rank, missed) for at, rank, missed in life.retrievals.ranks}
        for position in range(timeline.reached + 1):
            read = timeline.perceived_at("hybrid", position)
            if read is None or read.turn != position:
                assert position not in ranks
                continue
            cut = (cut for part in read.cut for cut in part.turns)
            retrieval = retrieval_outcome(position, turn.id, read.hits, read.missed, cut)
            if retrieval.reach == "not_found":
                assert position not in ranks
            elif retrieval.rank is not None:
                assert position in ranks
        for about in life.asked:
            question = timeline.question(about.question_id)
            assert question is not None
            assert turn.id in question.evidence
            assert about.outcome is not None


def test_a_question_can_be_answered_at_the_latest_where_its_last_evidence_is_written(
    timeline: Timeline, retrievals: RetrievalIndex
) -> None:
    known = timeline.conversation.turns_by_id
    for question in timeline.conversation.questions:
        lives = biographies(timeline, retrievals, "rag", question)
        last = max(known[turn].number for turn in question.evidence)
        memory = memory_at_last(timeline, "rag")
        start = answerable_from(timeline.conversation, memory, question)
        assert start is not None and start <= last + last % 2
        assert all(life.stored for life in lives)
