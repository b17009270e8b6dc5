"""What an earlier attempt at a run of tests has paid for: it is said again, and nobody is asked again."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from memreplay.dataset_interfaces.master_log import EventType, LogEvent
from memreplay.engine.events import AgentReplied, BenchmarkModelAsked, ReplayEvent, TestScored
from memreplay.errors import UsageError

_Event = TypeVar("_Event", AgentReplied, BenchmarkModelAsked)

Moved = Callable[[AgentReplied | BenchmarkModelAsked, int], None]
"""Is told of a reply that now stands at another turn."""


class KnownReplies:
    """Replies by what they answer, in the order in which they were given.

    What came before a message may have been mended since (``--retry-errors``): it may then be said at another turn
    than it was, and ``moved`` is told. With ``strict`` a message that no reply is known to, where there is one of
    its turn, is taken to be another test's.
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
        """Replies of the judge that were of no use: one that is kept elsewhere is not to be taken again."""
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
        """The calls of the datasets' model that are left, as the scheduler's log has them."""
        return [_logged(call) for calls in self._calls.values() for call in calls]

    def reply(self, turn: int, test_id: str | None, message: str) -> AgentReplied | None:
        """The next reply to a message, if there is one.

        Raises:
            UsageError: at this turn another message was replied to, and nobody said that something is different.
        """
        if (silent := self._without_prompt.pop(turn, None)) is not None:
            return silent
        known = self._replies[test_id, message]
        if known:
            return self._at(known.popleft(), turn)
        if self._strict and turn in self._turns:
            raise UsageError(
                f"the run to go on with said something else at turn {turn}: these are other tests, or an attempt to"
                " mend it was interrupted, which --retry-errors goes on with"
            )
        return None

    def called(self, test_id: str, turn: int) -> None:
        """The next known call of a test's was used at a turn."""
        if self._calls[test_id]:
            self._at(self._calls[test_id].popleft(), turn)

    def _at(self, event: _Event, turn: int) -> _Event:
        if event.turn != turn:
            self._moved(event, turn)
        return event


def failed_replies(events: Iterable[ReplayEvent]) -> tuple[list[AgentReplied], list[BenchmarkModelAsked]]:
    """What is to be asked again of a run: the agent's replies that were errors, and calls of the datasets' model.

    Those are calls that failed, those that a test made after a reply of the agent's was missing, and the last one
    of a test that was not graded for another reason: nothing came of it.
    """
    every = list(events)
    replies = [event for event in every if isinstance(event, AgentReplied) and event.reply.error is not None]
    spoiled = {event.test_id: event.turn for event in reversed(replies)}
    calls = [event for event in every if isinstance(event, BenchmarkModelAsked) and event.used and event.test_id]
    failed = [
        call
        for call in calls
        if call.error is not None or (call.test_id in spoiled and call.turn >= spoiled[call.test_id])
    ]
    mended = {call.test_id for call in failed} | set(spoiled)
    ungraded = {event.test_id for event in every if isinstance(event, TestScored) and event.score is None}
    last = {call.test_id: call for call in calls if call.test_id in ungraded - mended}
    return replies, [*failed, *last.values()]


def _logged(call: BenchmarkModelAsked) -> LogEvent:
    data = {"response": call.reply, "cost_usd": call.cost_usd, "error": call.error}
    return LogEvent(EventType.LLM_CALL, datetime.min, call.test_id, data)
