"""The events of a position as they are recorded: JSON, one after another."""

from __future__ import annotations

import json
from collections.abc import Iterator

from memory_backends.stores.trace import (
    AppendChange,
    Change,
    ExpireChange,
    MemoryOperation,
    PatchChange,
    PublishChange,
    ReadChange,
    RemoveChange,
    SearchChange,
    UpsertChange,
    WriteChange,
)
from memreplay.engine.events import ReplayEvent
from memreplay.timeline.timeline import Timeline
from memreplay.tui.document import MadeDocument
from memreplay.tui.panels.panel import MARKED, Base, View, lines_view, nothing
from memreplay.tui.text import Line, Span, line, one_line

_MOST_SUMMED_UP = 100
"""Commands that are loaded for their durations: at the last turn there are those of all questions."""


class OperationsPanel:
    """The store commands of the position, in order, with their durations."""

    name = "operations"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The commands carried out at exactly this position."""
        operations = self._timeline.operations_at(self._backend, cursor)
        if not operations:
            return lines_view(self.name, nothing("no store was used at this turn"))
        note = f"{len(operations):,}"
        if len(operations) <= _MOST_SUMMED_UP:
            note += f" · {sum(operation.ms for operation in operations):.1f} ms"
        document = MadeDocument(len(operations), lambda place: [operation_line(operations[place])], guessed=2)
        return View(self.name, document, note)


def operation_line(operation: MemoryOperation) -> Line:
    """A store command: store, command, key, what it changed, how long it took and on whose account."""
    spans = [
        Span(f"{operation.store:<7}", "dim"),
        Span(f"{one_line(operation.command)} ", "strong"),
        Span(one_line(operation.key)),
        Span(f"  {_effect(operation.change)}  {operation.ms:.1f} ms · {one_line(operation.actor)}", "dim"),
    ]
    if operation.error is not None:
        spans.append(Span(f"  ! {one_line(operation.error)}", "bad"))
    return Line(tuple(spans), hang=7)


def _effect(change: Change | None) -> str:
    match change:
        case None:
            return ""
        case ReadChange(found=found, size=size):
            return f"{size:,} bytes" if found else "not there"
        case WriteChange():
            return "whole value"
        case PatchChange(steps=steps):
            return f"{len(steps)} changed"
        case AppendChange(offset=offset, text=text):
            return f"+{len(text.encode()):,} bytes at {offset:,}"
        case RemoveChange(count=count):
            return f"{count:,} removed"
        case PublishChange(receivers=receivers):
            return f"{receivers} listening"
        case ExpireChange(seconds=seconds):
            return f"in {seconds:,} s"
        case UpsertChange(points=points):
            return f"{len(points)} written"
        case SearchChange(found=hits, stored=stored):
            return f"{len(hits)} of {stored:,} found"


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
