"""Delta debugging of conversations, with a test in the place of a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from memreplay.conversations.models import Conversation, Question, Session, Turn, exchanges_of
from memreplay.debugger.shrink import Shrinking, StopShrinking, minimal, only_question, with_turns

T = TypeVar("T")


def one_by_one(fails: Callable[[T], bool]) -> Callable[[Sequence[T]], Awaitable[int | None]]:
    """Return the port of the search that tries what is proposed in order."""

    async def first_failing(proposals: Sequence[T]) -> int | None:
        return next((place for place, proposal in enumerate(proposals) if fails(proposal)), None)

    return first_failing


@given(st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, size - 1)))))
def test_parts_that_are_all_needed_are_left_and_no_others(drawn: tuple[int, set[int]]) -> None:
    size, needed = drawn

    def fails(parts: Sequence[int]) -> bool:
        return needed <= set(parts)

    assert asyncio.run(minimal(range(size), one_by_one(fails))) == sorted(needed)


@given(st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=4))
def test_none_of_the_parts_can_be_left_out_alone_however_many_are_tried_at_once(ways: list[set[int]]) -> None:
    def fails(parts: Sequence[int]) -> bool:
        return any(way <= set(parts) for way in ways)

    kept = asyncio.run(minimal(range(12), one_by_one(fails)))
    assert all(asyncio.run(minimal(range(12), one_by_one(fails), at_once)) == kept for at_once in (2, 3, 7))
    assert any(way <= set(kept) for way in ways)
    assert not any(any(way <= set(kept) - {part} for way in ways) for part in kept)


def conversation(sessions: int = 10, exchanges: int = 4) -> Conversation:
    turns: list[Turn] = []
    for session in range(1, sessions + 1):
        for exchange in range(1, exchanges + 1):
            said = {
                "user": f"Say {session} and {exchange}. The weather is fine today.",
                "assistant": "I see. Go on.",
            }
            for role in ("user", "assistant"):
                number = len(turns) + 1
                turns.append(
                    Turn(id=f"t{number}", number=number, session=session, role=role, speaker=None, text=said[role])
                )
    turns[10] = turns[10].model_copy(update={"text": "It rains. Well, my cat is Luna. It is late."})
    question = Question(
        id="q",
        kind="recall",
        type="recall",
        text="Who is the cat?",
        expected="Luna",
        evidence=("t11",),
        evidence_role="supports",
    )
    numbered = tuple(Session(number=number, id=str(number)) for number in range(1, sessions + 1))
    return Conversation(id="c", dataset="c", sessions=numbered, turns=tuple(turns), questions=(question,))


def fails_by_two_others(candidate: Conversation) -> bool:
    """Fail where a turn says 9, and there are four exchanges."""
    says = any("Say 9" in turn.text for turn in candidate.turns)
    return says and len(exchanges_of(candidate)) >= 4


def shrunk(whole: Conversation, at_once: int = 1) -> Conversation:
    shrinking = Shrinking(whole, one_by_one(fails_by_two_others), at_once=at_once)
    asyncio.run(shrinking.run())
    return shrinking.best


def test_the_evidence_stays_with_its_id_and_the_clause_that_has_the_answer() -> None:
    best = shrunk(conversation())
    assert best.turns_by_id["t11"].text == "my cat is Luna."
    assert [turn.number for turn in best.turns] == list(range(1, len(best.turns) + 1))
    assert {session.number for session in best.sessions} == {turn.session for turn in best.turns}


def test_no_summary_is_kept_which_no_memory_is_given() -> None:
    whole = conversation()
    told = tuple(session.model_copy(update={"summary": "They talk."}) for session in whole.sessions)
    summarised = whole.model_copy(update={"sessions": told})
    assert {session.summary for session in only_question(summarised, whole.questions[0]).sessions} == {None}


def test_no_exchange_of_the_result_can_be_removed() -> None:
    best = shrunk(conversation())
    assert len(best.turns) <= 5 and fails_by_two_others(best)
    for exchange in exchanges_of(best):
        kept = {turn.id: turn.text for turn in best.turns if turn.id not in exchange.turn_ids}
        if "t11" in kept:
            assert not fails_by_two_others(with_turns(best, kept))


def test_words_go_that_nothing_needs() -> None:
    said = sorted(turn.text for turn in shrunk(conversation()).turns)
    assert "Say 9" in said and "my cat is Luna." in said
    assert all(len(text.split()) <= 2 for text in said if "Luna" not in text)


def test_the_same_conversation_shrinks_to_the_same_one_however_many_are_tried_at_once() -> None:
    once = shrunk(conversation())
    assert all(shrunk(conversation(), at_once) == once for at_once in (1, 2, 5))


@dataclass
class Dated:
    """A conversation in dated sessions, of which a test says how many exchanges or facts it needs."""

    fails: Callable[[Conversation], bool]
    whole: Conversation = field(default_factory=lambda: dated(conversation(sessions=2, exchanges=8)))

    def shrunk(self) -> Conversation:
        assert self.fails(self.whole)
        shrinking = Shrinking(self.whole, one_by_one(self.fails))
        asyncio.run(shrinking.run())
        return shrinking.best


def dated(undated: Conversation) -> Conversation:
    sessions = tuple(each.model_copy(update={"date": datetime(2024, 5, each.number)}) for each in undated.sessions)
    return undated.model_copy(update={"sessions": sessions})


def test_exchanges_that_are_all_needed_keep_one_turn_each_in_sessions_of_their_own() -> None:
    best = Dated(lambda candidate: len(exchanges_of(candidate)) >= 6).shrunk()
    assert len(best.turns) == len(best.sessions) == 6
    undated = conversation(sessions=1, exchanges=8)
    one = Dated(lambda candidate: len(exchanges_of(candidate)) >= 6, undated).shrunk()
    assert len(one.sessions) == 1 and len(one.turns) > 6


def test_one_turn_says_what_several_said() -> None:
    def fails(candidate: Conversation) -> bool:
        said = " ".join(turn.text for turn in candidate.turns)
        return all(f"Say 1 and {number}" in said for number in (1, 2, 3, 4))

    best = Dated(fails).shrunk()
    assert sorted(turn.text for turn in best.turns if turn.id != "t11") == [
        "Say 1 and 1. Say 1 and 2. Say 1 and 3. Say 1 and 4."
    ]


def test_a_search_that_is_stopped_leaves_the_smallest_conversation_so_far() -> None:
    tries = 0

    def fails(candidate: Conversation) -> bool:
        nonlocal tries
        tries += 1
        if tries > 8:
            raise StopShrinking("enough")
        return fails_by_two_others(candidate)

    shrinking = Shrinking(conversation(), one_by_one(fails))
    try:
        asyncio.run(shrinking.run())
    except StopShrinking as stop:
        assert str(stop) == "enough"
    assert len(shrinking.best.turns) < 80 and fails_by_two_others(shrinking.best)
