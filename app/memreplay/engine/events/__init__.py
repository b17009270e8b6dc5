"""Everything that happens in a replay, as frozen events. Panels, recorder and report see this one stream.

``turn`` is the position of the cursor at which an event belongs: 0 before the first turn, 1…N at that turn (the
questions asked after the last turn stand at N), N + 1 when the conversation is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field, TypeAdapter

from memreplay.engine.events.replay import (
    ASK_KINDS,
    AnswerScored,
    AskEvent,
    BackendEvent,
    BackendFailed,
    BackgroundWorkSettled,
    ConversationClosed,
    ConversationOpened,
    Event,
    FactsExtracted,
    Observed,
    Perceived,
    PromotionDecided,
    QuestionAsked,
    ReplyReceived,
    StoreOperated,
    TurnPlayed,
    event_of,
)
from memreplay.engine.events.tests import (
    AgentReplied,
    BenchmarkModelAsked,
    ClockSet,
    MemoryCleared,
    MessagePart,
    MessageSaid,
    TestBegan,
    TestScored,
    TestWaited,
)

__all__ = [
    "ASK_KINDS",
    "REPLAY_EVENT",
    "AgentReplied",
    "AnswerScored",
    "AskEvent",
    "BackendEvent",
    "BackendFailed",
    "BackgroundWorkSettled",
    "BenchmarkModelAsked",
    "ClockSet",
    "ConversationClosed",
    "ConversationOpened",
    "Event",
    "EventSink",
    "FactsExtracted",
    "MemoryCleared",
    "MessagePart",
    "MessageSaid",
    "Observed",
    "Perceived",
    "PromotionDecided",
    "QuestionAsked",
    "ReplayEvent",
    "ReplyReceived",
    "StoreOperated",
    "TestBegan",
    "TestScored",
    "TestWaited",
    "TurnPlayed",
    "event_of",
]

ReplayEvent = Annotated[
    ConversationOpened
    | TurnPlayed
    | Perceived
    | StoreOperated
    | PromotionDecided
    | FactsExtracted
    | Observed
    | BackgroundWorkSettled
    | BackendFailed
    | QuestionAsked
    | ReplyReceived
    | AnswerScored
    | MessageSaid
    | AgentReplied
    | TestBegan
    | TestWaited
    | ClockSet
    | MemoryCleared
    | BenchmarkModelAsked
    | TestScored
    | ConversationClosed,
    Field(discriminator="kind"),
]

EventSink = Callable[[ReplayEvent], None]
"""Takes an event in; when it returns from a :class:`ReplyReceived`, the reply is safe."""

REPLAY_EVENT: TypeAdapter[ReplayEvent] = TypeAdapter(ReplayEvent)
"""Reads an event back from its JSON form."""
