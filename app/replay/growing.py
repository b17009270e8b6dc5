"""A conversation that comes about while it is played: what was said so far, from the events that tell it."""

from __future__ import annotations

from typing import Any

from app.conversations.models import Conversation, Session
from app.replay.events import ClockSet, MessageSaid


def grown(conversation: Conversation, event: MessageSaid | ClockSet) -> Conversation:
    """The conversation with a message more, or with the session that begins when the clock is set."""
    match event:
        case MessageSaid():
            return _with(conversation, turns=(*conversation.turns, event.message))
        case ClockSet():
            session = Session(number=event.session, id=str(event.session), date=event.after)
            return _with(conversation, sessions=(*conversation.sessions, session))


def _with(conversation: Conversation, **changed: Any) -> Conversation:
    """A copy without what was worked out of the old one; its parts are valid, and are not gone through again."""
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    return Conversation.model_construct(**fields | changed)
