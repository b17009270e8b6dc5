"""The log of a run, and how a run resumes by it: messages, replies and model calls, one JSON object per line.

The format is that of GoodAI's ``master_log.jsonl``, so both programs can read both logs.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any

from memreplay.errors import DatasetError, UsageError
from memreplay.files import read_text
from memreplay.goodai.actions import AgentReply, LlmAsked
from memreplay.goodai.language_model import NO_MODEL, LanguageModel, LLMReply, LLMRequest
from memreplay.llm.tokens import TokenCounter, token_counter

count_tokens: TokenCounter = token_counter("cl100k_base")
"""Counts the cl100k tokens of a text."""


class EventType(IntEnum):
    """The type of a log line."""

    SEND_MESSAGE = 0
    BEGIN = 1
    END = 2
    SEND_FILL = 3
    RESPONSE_MESSAGE = 4
    RESPONSE_FILL = 5
    WAIT = 6
    SUITE_RESET = 7
    LLM_CALL = 8
    REGISTER_CALLBACK = 9
    DEREGISTER_CALLBACK = 10


_SPEAKERS = {
    EventType.SEND_MESSAGE: "Test",
    EventType.SEND_FILL: "Test",
    EventType.RESPONSE_MESSAGE: "Agent",
    EventType.RESPONSE_FILL: "Agent",
}


@dataclass(frozen=True)
class LogEvent:
    """A line. ``timestamp`` is a naive simulated time; ``test_id`` is empty if the event belongs to no test."""

    type: EventType
    timestamp: datetime
    test_id: str
    data: dict[str, Any]

    def to_json(self) -> str:
        """Return the line without its line break."""
        seconds = self.timestamp.replace(tzinfo=UTC).timestamp()
        line = {"type": int(self.type), "timestamp": seconds, "test_id": self.test_id, "data": self.data}
        return json.dumps(line, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> LogEvent:
        """Parse a line; raises ``ValueError`` if it is invalid."""
        try:
            entry = json.loads(line)
            seconds = float(entry["timestamp"])
            moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
            kind, data = EventType(entry["type"]), dict(entry["data"])
            if kind in _SPEAKERS and not isinstance(data.get("message"), str):
                raise KeyError("message")
            return cls(kind, moment, str(entry["test_id"]), data)
        except (KeyError, TypeError, OverflowError, OSError) as error:
            raise ValueError(f"is not an event of a run ({error!r})") from None

    def spoken(self) -> str | None:
        """``"Test (time): message"`` or ``"Agent (time): message"``; None if the event is not a message."""
        speaker = _SPEAKERS.get(self.type)
        return f"{speaker} ({self.timestamp}): {self.data['message']}" if speaker else None


class MasterLog:
    """Events in chronological order."""

    def __init__(self, events: Iterable[LogEvent] = ()) -> None:
        self.events: list[LogEvent] = []
        self._spoken: list[str] = []
        for event in events:
            self.append(event)

    def append(self, event: LogEvent) -> None:
        self.events.append(event)
        spoken = event.spoken()
        if spoken is not None:
            self._spoken.append(spoken)

    def messages(self, test_id: str = "") -> list[str]:
        """Return the messages and replies, of one test if its id is given."""
        if not test_id:
            return list(self._spoken)
        return [text for event in self.of(test_id) if (text := event.spoken()) is not None]

    def of(self, test_id: str) -> Iterator[LogEvent]:
        """Return the events of one test."""
        return (event for event in self.events if event.test_id == test_id)


def read_master_log(path: Path) -> list[LogEvent]:
    """Read a log file. Ignores an incomplete last line, which is what an interrupted run leaves.

    Raises :class:`DatasetError` if another line is invalid.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(path, "", f"cannot be read ({error})", "the log of a run") from None
    lines = text.split("\n")
    complete, rest = lines[:-1], lines[-1]
    events = []
    for number, line in enumerate(complete + ([rest] if rest.endswith("}") else []), start=1):
        if not line.strip():
            continue
        try:
            events.append(LogEvent.from_json(line))
        except ValueError as error:
            if number > len(complete):
                break
            raise DatasetError(path, f"line {number}", f"is invalid ({error})", "an event of a run") from None
    return events


EventSink = Callable[[LogEvent], None]
"""Receives each event as it happens, for example to write it to disk."""


_REPLIES = {EventType.RESPONSE_MESSAGE, EventType.RESPONSE_FILL}


class Journal:
    """The events of an interrupted run that have not been replayed yet; empty for a new run."""

    def __init__(self, events: Iterable[LogEvent] = ()) -> None:
        self._events: deque[LogEvent] = deque()
        self._model_replies: defaultdict[str, deque[LLMReply]] = defaultdict(deque)
        for event in events:
            if event.type is EventType.LLM_CALL:
                data = event.data
                reply = LLMReply(data["response"], data.get("cost_usd"), data.get("error"))
                self._model_replies[event.test_id].append(reply)
            else:
                self._events.append(event)

    def matches(self, event: LogEvent) -> bool:
        """Return whether this is the next recorded event, which is then consumed.

        Raises :class:`UsageError` if the log has a different event here: it is from other tests.
        """
        if not self._events:
            return False
        known = self._events[0]
        if (known.type, known.test_id, known.data) != (event.type, event.test_id, event.data):
            raise UsageError(
                f"The log to resume from does not fit these tests: it has {_shown(known)} where this run has "
                f"{_shown(event)}"
            )
        self._events.popleft()
        return True

    def agent_reply(self) -> AgentReply | None:
        """Return the recorded reply to the message that was just matched."""
        if not self._events or self._events[0].type not in _REPLIES:
            return None
        data = self._events[0].data
        return AgentReply(str(data["message"]), data.get("error"))

    def model_reply(self, test_id: str) -> LLMReply | None:
        """Return the recorded reply to the test's next model call."""
        replies = self._model_replies[test_id]
        return replies.popleft() if replies else None


def _shown(event: LogEvent) -> str:
    said = str(event.data.get("message", ""))
    return f"{event.type.name} of {event.test_id or 'no test'}" + (f" ({said[:40]!r})" if said else "")


HALF_EXCHANGE = timedelta(seconds=5)
"""The simulated duration of a message, and of a reply."""


class RunRecord:
    """The state that all tests of a run share."""

    def __init__(self, start: datetime, journal: Journal, sink: EventSink | None) -> None:
        self.log = MasterLog()
        self.now = start
        self.tokens = 0
        self.characters = 0
        self.journal = journal
        self._sink = sink

    def add(self, kind: EventType, test_id: str = "", **data: Any) -> None:
        """Log an event, and pass it to the sink unless an interrupted run already did."""
        event = LogEvent(kind, self.now, test_id, data)
        known = kind is not EventType.LLM_CALL and self.journal.matches(event)
        self.log.append(event)
        if not known:
            self._emit(event)

    def add_reused(self, kind: EventType, test_id: str, **data: Any) -> None:
        """Log an event that an interrupted run already passed to the sink."""
        self.log.append(LogEvent(kind, self.now, test_id, data))

    def count(self, text: str) -> None:
        """Count the tokens of a message and advance the clock."""
        self.tokens += count_tokens(text)
        self.characters += len(text)
        self.now += HALF_EXCHANGE

    def _emit(self, event: LogEvent) -> None:
        if self._sink is not None:
            self._sink(event)


class LoggedModel:
    """Logs the model calls of datasets, and answers them from the log of an interrupted run as long as it lasts.

    ``asked`` are the calls that have not been yielded yet; ``test_id`` is the calling test.
    """

    def __init__(self, model: LanguageModel | None, record: RunRecord) -> None:
        self._model = model
        self._record = record
        self.test_id = ""
        self.asked: list[LlmAsked] = []

    def __call__(self, request: LLMRequest) -> LLMReply:
        """Call the model. The reply or error is logged before it is used."""
        known = self._record.journal.model_reply(self.test_id)
        reply = known or self._ask(request)
        failure = {} if reply.error is None else {"error": reply.error}
        add = self._record.add_reused if known else self._record.add
        add(EventType.LLM_CALL, self.test_id, response=reply.text, cost_usd=reply.cost_usd, **failure)
        self.asked.append(
            LlmAsked(self.test_id, request.model, reply.text, reply.error, reply.cost_usd, known is not None)
        )
        return reply

    def _ask(self, request: LLMRequest) -> LLMReply:
        if self._model is None:
            return LLMReply(None, error=NO_MODEL)
        return self._model(request)
