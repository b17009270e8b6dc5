"""The log of a run: messages, replies and model calls. One JSON object per line.

The format is that of GoodAI's ``master_log.jsonl``, so both programs can read both logs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any

from memreplay.errors import DatasetError
from memreplay.files import read_text


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
        """The line without its line break."""
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
        """The messages and replies, of one test if its id is given."""
        if not test_id:
            return list(self._spoken)
        return [text for event in self.of(test_id) if (text := event.spoken()) is not None]

    def of(self, test_id: str) -> Iterator[LogEvent]:
        """The events of one test."""
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
