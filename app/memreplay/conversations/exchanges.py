"""Convert turns to the messages and exchanges that a memory receives."""

from __future__ import annotations

from collections.abc import Collection

from memory_backends.base import Exchange, Message
from memreplay.conversations.models import Conversation, Turn


def message_of(conversation: Conversation, turn: Turn) -> Message:
    """What the user or the assistant says as a message, with its label and the date of its session."""
    assert turn.role != "other"
    return Message(
        turn_id=turn.id,
        turn_number=turn.number,
        session=turn.session,
        role=turn.role,
        label=conversation.label_of(turn),
        text=turn.text,
        said_at=conversation.date_of(turn),
    )


def exchanges_of(conversation: Conversation, ends: Collection[int] = ()) -> tuple[Exchange, ...]:
    """Split the conversation into exchanges; every turn of user and assistant belongs to exactly one.

    An exchange begins at the start of a session and when the user speaks after the assistant. So consecutive turns
    of one role stay together, and a leading assistant turn or trailing user turn of a session forms its own
    exchange. One that ended at a turn in ``ends`` was complete before a branch departed there: what follows in the
    branch does not continue it.
    """
    groups: list[list[Message]] = []
    previous: Turn | None = None
    for turn in conversation.turns:
        if turn.role == "other":
            continue
        begins = (
            previous is None
            or previous.session != turn.session
            or previous.number in ends
            or (previous.role == "assistant" and turn.role == "user")
        )
        if begins:
            groups.append([])
        groups[-1].append(message_of(conversation, turn))
        previous = turn
    return tuple(Exchange(messages=tuple(group)) for group in groups)
