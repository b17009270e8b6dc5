"""The store commands of a turn, one line each."""

from __future__ import annotations

from app.replay.timeline import Timeline
from app.tui.document import MadeDocument
from app.tui.text import Line, Span, one_line
from app.tui.views.base import MARKED, Base
from app.tui.views.view import View, lines_view, nothing
from memory_backends.operations import (
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
