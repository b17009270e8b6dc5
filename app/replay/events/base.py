"""What events have in common."""

from __future__ import annotations

from app.conversations.models import Frozen


class Event(Frozen):
    """What all events carry."""

    conversation: str
    turn: int


class BackendEvent(Event):
    """An event of one memory architecture."""

    backend: str


class AskEvent(BackendEvent):
    """An event of one question put to one backend through one model.

    ``by_hand`` marks a question that the user asked at a position of the cursor, beside the scheduled ones.
    """

    model: str
    question_id: str
    repeat: int = 0
    by_hand: bool = False
