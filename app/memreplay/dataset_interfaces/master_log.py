"""The log of a run: what was said and replied, and what models were asked. One JSON object a line.

The form is that of GoodAI's ``master_log.jsonl``, so that their logs can be read and ours too.
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
    """What a line of the log tells."""

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
    """A line. ``timestamp`` is a simulated time without time zone, ``test_id`` empty where no test is meant."""

    type: EventType
    timestamp: datetime
    test_id: str
    data: dict[str, Any]

    def to_json(self) -> str:
        """The line, without its end."""
        seconds = self.timestamp.replace(tzinfo=UTC).timestamp()
        line = {"type": int(self.type), "timestamp": seconds, "test_id": self.test_id, "data": self.data}
        return json.dumps(line, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> LogEvent:
        """The line, read; ``ValueError`` where it is none."""
        try:
            entry = json.loads(line)
            seconds = float(entry["timestamp"])
            moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
            return cls(EventType(entry["type"]), moment, str(entry["test_id"]), dict(entry["data"]))
        except (KeyError, TypeError, OverflowError, OSError) as error:
            raise ValueError(f"is no event of a run ({error!r})") from None

    def spoken(self) -> str | None:
        """``"Test (time): message"`` or ``"Agent (time): message"``; None where nothing was said."""
        speaker = _SPEAKERS.get(self.type)
        return f"{speaker} ({self.timestamp}): {self.data['message']}" if speaker else None


class MasterLog:
    """Events in the order in which they happened."""

    def __init__(self, events: Iterable[LogEvent] = ()) -> None:
        self.events: list[LogEvent] = []
        self._spoken: list[str] = []
        for event in events:
            self.append(event)

    def append(self, event: LogEvent) -> None:
        """Add what has just happened."""
        self.events.append(event)
        spoken = event.spoken()
        if spoken is not None:
            self._spoken.append(spoken)

    def messages(self, test_id: str = "") -> list[str]:
        """What was said, in two entries an exchange; by one test where its id is given."""
        if not test_id:
            return list(self._spoken)
        return [text for event in self.of(test_id) if (text := event.spoken()) is not None]

    def of(self, test_id: str) -> Iterator[LogEvent]:
        """The events of one test."""
        return (event for event in self.events if event.test_id == test_id)


def read_master_log(path: Path) -> list[LogEvent]:
    """The events of a log file; a line that was being written when the run died is left out.

    Raises :class:`DatasetError` where another line is broken.
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
            raise DatasetError(path, f"line {number}", f"is broken ({error})", "an event of a run") from None
    return events


EventSink = Callable[[LogEvent], None]
"""Takes each event as soon as it has happened, for example to write it to disk."""
