"""Two recordings are laid against each other by what was said."""

from __future__ import annotations

import pytest

from memory_backends.stores.trace import MemoryOperation, PatchChange, PatchStep
from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.debugger.alignment import TurnAlignment, diverges_at
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
        ("abc", "abc", [0, 1, 2, 3, 4]),
        ("abc", "xabyc", [0, 2, 3, 5, 6]),
        ("axbc", "abc", [0, 1, 1, 2, 3, 4]),
        ("aaa", "aa", [0, 1, 2, 2, 3]),
        ("abcd", "dabc", [0, 2, 3, 4, 4, 5]),
        ("", "ab", [0, 3]),
    ],
)
def test_turns_go_with_the_turns_that_say_the_same(left: str, right: str, expected: list[int]) -> None:
    alignment = TurnAlignment(conversation(*left), conversation(*right))
    assert [alignment.to_right(position) for position in range(len(left) + 2)] == expected


def test_turns_that_are_the_same_go_together_wherever_they_stand() -> None:
    alignment = TurnAlignment(conversation(*"abcde"), conversation(*"xaceb"))
    assert alignment.paired == 3
    assert [alignment.to_right(position) for position in (1, 3, 5)] == [2, 3, 4]


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
    assert diverges_at(replay(kept, first), replay(kept, second), "hybrid") is None
    assert diverges_at(replay(kept, first), replay(kept), "hybrid") is None, "written within one millisecond"
    assert diverges_at(replay(kept, first), replay(first), "hybrid") == 1
