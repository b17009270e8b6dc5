"""Replies that an earlier attempt at a run of tests has paid for. They are reused instead of calling a model."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from memreplay.engine.events import AgentReplied, BenchmarkModelAsked, ReplayEvent, TestScored
from memreplay.errors import UsageError
from memreplay.goodai.master_log import EventType, LogEvent

_Event = TypeVar("_Event", AgentReplied, BenchmarkModelAsked)

Moved = Callable[[AgentReplied | BenchmarkModelAsked, int], None]
"""Called with a reply that is now used at another turn, and that turn."""


class KnownReplies:
    """Recorded replies by the message that they answer, in their original order.

    ``--retry-errors`` may change what precedes a message, so it may be said at another turn than before; ``moved``
    is then called. With ``strict``, an unknown message at a turn with a recorded reply means that the tests differ.
    """

    def __init__(
        self,
        events: Iterable[ReplayEvent] = (),
        *,
        strict: bool = True,
        moved: Moved = lambda event, turn: None,
    ) -> None:
        self._strict, self._moved = strict, moved
        self._replies: defaultdict[tuple[str | None, str], deque[AgentReplied]] = defaultdict(deque)
        self._without_prompt: dict[int, AgentReplied] = {}
        self._turns: set[int] = set()
        self._calls: defaultdict[str, deque[BenchmarkModelAsked]] = defaultdict(deque)
        self.rejected: set[str] = set()
        """Unusable replies of the judge, which must not be served from a cache either."""
        for event in events:
            match event:
                case AgentReplied(prompt=()):
                    self._without_prompt[event.turn] = event
                case AgentReplied():
                    self._replies[event.test_id, event.prompt[-1].content].append(event)
                    self._turns.add(event.turn)
                case BenchmarkModelAsked(used=True):
                    self._calls[event.test_id].append(event)
                case BenchmarkModelAsked(reply=str(text)):
                    self.rejected.add(text)
                case _:
                    pass

    @property
    def judged(self) -> list[LogEvent]:
        """Return the unused calls of the datasets' model, as events of the scheduler's log."""
        return [_logged(call) for calls in self._calls.values() for call in calls]

    def reply(self, turn: int, test_id: str | None, message: str) -> AgentReplied | None:
        """Return the next reply to a message, if one is known.

        Raises:
            UsageError: the recorded reply at this turn answers another message.
        """
        if (failed := self._without_prompt.pop(turn, None)) is not None:
            return failed
        known = self._replies[test_id, message]
        if known:
            return self._at(known.popleft(), turn)
        if self._strict and turn in self._turns:
            raise UsageError(
                f"the run to resume has another message at turn {turn}: its tests differ, or an attempt to fix it"
                " was interrupted; --retry-errors continues that attempt"
            )
        return None

    def called(self, test_id: str, turn: int) -> None:
        """Mark the next known call of a test as used at a turn."""
        if self._calls[test_id]:
            self._at(self._calls[test_id].popleft(), turn)

    def _at(self, event: _Event, turn: int) -> _Event:
        if event.turn != turn:
            self._moved(event, turn)
        return event


def failed_replies(events: Iterable[ReplayEvent]) -> tuple[list[AgentReplied], list[BenchmarkModelAsked]]:
    """Return what to ask again in a run: failed replies of the agent, and calls of the datasets' model.

    These calls are the failed ones, those that a test made after a failed reply of the agent, and the last one of a
    test that was not graded for another reason.
    """
    every = list(events)
    replies = [event for event in every if isinstance(event, AgentReplied) and event.reply.error is not None]
    failed_at = {event.test_id: event.turn for event in reversed(replies)}
    calls = [event for event in every if isinstance(event, BenchmarkModelAsked) and event.used and event.test_id]
    failed = [
        call
        for call in calls
        if call.error is not None or (call.test_id in failed_at and call.turn >= failed_at[call.test_id])
    ]
    retried = {call.test_id for call in failed} | set(failed_at)
    ungraded = {event.test_id for event in every if isinstance(event, TestScored) and event.score is None}
    last = {call.test_id: call for call in calls if call.test_id in ungraded - retried}
    return replies, [*failed, *last.values()]


def _logged(call: BenchmarkModelAsked) -> LogEvent:
    data = {"response": call.reply, "cost_usd": call.cost_usd, "error": call.error}
    return LogEvent(EventType.LLM_CALL, datetime.min, call.test_id, data)
