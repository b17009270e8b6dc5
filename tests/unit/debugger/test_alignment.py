"""Two recordings are laid against each other by what was said."""

from __future__ import annotations

import pytest

from memory_backends.stores.trace import MemoryOperation, PatchChange, PatchStep
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.debugger.alignment import divergence, turns_in_both
from memreplay.engine.events import StoreOperated, TurnPlayed
from memreplay.timeline.timeline import Timeline


def conversation(*texts: str) -> Conversation:
    turns = tuple(
        Turn(id=f"t{number}", number=number, session=1, role="user", speaker=None, text=text)
        for number, text in enumerate(texts, start=1)
    )
    return Conversation(id="c", dataset="c", sessions=(Session(number=1, id="1"),), turns=turns, questions=())


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("abc", "abc", 3),
        ("abc", "xabyc", 3),
        ("axbc", "abc", 3),
        ("aaa", "aa", 2),
        ("abcd", "dabc", 3),
        ("abcde", "xaceb", 3),
        ("", "ab", 0),
    ],
)
def test_turns_that_say_the_same_in_the_same_order_are_in_both(left: str, right: str, expected: int) -> None:
    assert turns_in_both(conversation(*left), conversation(*right)) == expected


def replay(*steps: PatchStep) -> Timeline:
    """One turn, at which a memory changed its state in these steps."""
    operation = MemoryOperation(
        store="redis",
        command="SET",
        key="personal_state:a",
        change=PatchChange(steps=steps),
        ms=0.1,
        phase="observe",
        actor="a",
    )
    event = StoreOperated(conversation="c", turn=1, backend="hybrid", operation=operation)
    return Timeline(conversation("a"), [TurnPlayed(conversation="c", turn=1), event])


def test_two_runs_that_differ_only_in_when_they_wrote_do_not_diverge() -> None:
    kept = PatchStep(op="add", path="/name", value="Ana", replaced=None)
    first, second = (
        PatchStep(op="replace", path="/last_updated", value=f"2026-01-05T09:30:0{at}.000Z", replaced=None)
        for at in (1, 2)
    )
    assert divergence(replay(kept, first), replay(kept, second), "hybrid").turn is None
    assert divergence(replay(kept, first), replay(kept), "hybrid").turn is None, "written within one millisecond"
    assert divergence(replay(kept, first), replay(first), "hybrid").turn == 1
