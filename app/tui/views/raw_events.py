"""The events of a position as they are recorded: JSON, one after another."""

from __future__ import annotations

import json
from collections.abc import Iterator

from app.replay.events import ReplayEvent
from app.replay.timeline import Timeline
from app.tui.document import MadeDocument
from app.tui.text import Line, Span, line, one_line
from app.tui.views.base import MARKED, Base
from app.tui.views.view import View, lines_view, nothing

_MOST_LINES_OF_AN_EVENT = 400


class RawEventsPanel:
    """Everything that one architecture did at exactly the position, as it was recorded."""

    name = "raw events"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The events of the position, in order."""
        events = self._timeline.events_at(self._backend, cursor)
        if not events:
            return lines_view(self.name, nothing("nothing happened here at this turn"), note="0")
        document = MadeDocument(len(events), lambda place: list(event_lines(events[place])), guessed=12)
        return View(self.name, document, f"{len(events):,}")


def event_lines(event: ReplayEvent) -> Iterator[Line]:
    """An event: its kind, then its JSON."""
    yield line(Span(event.kind, "title"))
    text = json.dumps(event.model_dump(mode="json", exclude={"kind"}), ensure_ascii=False, indent=2).split("\n")
    for part in text[1:-1][:_MOST_LINES_OF_AN_EVENT]:
        yield line(Span(one_line(part)), hang=len(part) - len(part.lstrip()) + 2)
    if len(text) - 2 > _MOST_LINES_OF_AN_EVENT:
        yield line(Span(f"… {len(text) - 2 - _MOST_LINES_OF_AN_EVENT:,} more lines", "dim"))
