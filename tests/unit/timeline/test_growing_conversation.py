"""A conversation that grows while it is played."""

from __future__ import annotations

from datetime import datetime

from memreplay.conversations.models import Conversation, Role, Turn
from memreplay.engine.events import MessageSaid
from memreplay.timeline.timeline import Timeline


def said(number: int, role: Role) -> MessageSaid:
    turn = Turn(id=str(number), number=number, session=1, role=role, speaker=None, text="…")
    return MessageSaid(
        conversation="c",
        turn=number,
        backend="rag",
        message=turn,
        said_at=datetime(2024, 1, 1),
        part="script",
        test_id=None,
    )


def test_the_end_of_an_exchange_moves_with_its_reply() -> None:
    timeline = Timeline(Conversation(id="c", dataset="c", sessions=(), turns=(), questions=()))
    timeline.append(said(1, "user"))
    assert timeline.observed_at("1") == 1
    timeline.append(said(2, "assistant"))
    assert timeline.observed_at("1") == timeline.observed_at("2") == 2
