"""Everything that happens in a replay, as frozen events. Panels, recorder and report read the same stream.

``turn`` is the cursor position of an event: 0 before the first turn, 1…N at that turn (questions asked after the
last turn have N), N + 1 when the conversation is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field, TypeAdapter

from memreplay.engine.events.replay import (
    ASK_KINDS,
    AnswerJudged,
    AnswerScored,
    AskEvent,
    BackendEvent,
    BackendFailed,
    BackgroundWorkSettled,
    ConversationClosed,
    ConversationOpened,
    Event,
    FactsExtracted,
    ModelCalled,
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
    extended,
)

__all__ = [
    "ASK_KINDS",
    "REPLAY_EVENT",
    "AgentReplied",
    "AnswerJudged",
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
    "ModelCalled",
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
    "extended",
]

ReplayEvent = Annotated[
    ConversationOpened
    | TurnPlayed
    | Perceived
    | StoreOperated
    | PromotionDecided
    | FactsExtracted
    | ModelCalled
    | Observed
    | BackgroundWorkSettled
    | BackendFailed
    | QuestionAsked
    | ReplyReceived
    | AnswerJudged
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
"""Consumes an event. When it returns from a :class:`ReplyReceived`, the reply is on disk."""

REPLAY_EVENT: TypeAdapter[ReplayEvent] = TypeAdapter(ReplayEvent)
"""Validates an event in JSON form."""
