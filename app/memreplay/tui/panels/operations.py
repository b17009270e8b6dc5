"""The trace page: store commands with their durations, and raw events as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

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
from memreplay.tui.document import LazyDocument
from memreplay.tui.panels.panel import View, lines_view, placeholder, short_key, waiting
from memreplay.tui.text import Line, Span, line, one_line

_MOST_TIMED = 100
"""Summing durations loads every command, and the last turn has those of all questions."""
_MOST_LINES_OF_AN_EVENT = 400


def operations_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """The store commands executed at exactly this position, in order, with their durations."""
    operations = timeline.operations_at(backend, cursor)
    if not operations:
        return lines_view("operations", placeholder(waiting(cursor, "no store was used at this turn")))
    note = f"{len(operations):,}"
    if len(operations) <= _MOST_TIMED:
        note += f" · {sum(operation.ms for operation in operations):.1f} ms"
    short = partial(short_key, conversation_id=timeline.conversation.id, backend=backend)
    document = LazyDocument(len(operations), lambda place: [_operation_line(operations[place], short)], guessed=2)
    return View("operations", document, note)


def _operation_line(operation: MemoryOperation, short: Callable[[str], str]) -> Line:
    """A store command: store, command, key, effect, duration and actor. Raw events hold key and actor in full."""
    effect = _effect(operation.change)
    spans = [
        Span(f"{operation.store:<7}", "dim"),
        Span(f"{one_line(operation.command)} ", "strong"),
        Span(short(operation.key)),
        Span(f"{f'  {effect}' if effect else ''}  {operation.ms:.1f} ms · {short(operation.actor)}", "dim"),
    ]
    if operation.error is not None:
        spans.append(Span(f"  ! {one_line(operation.error)}", "bad"))
    return Line(tuple(spans), hang=7)


def _effect(change: Change | None) -> str:
    match change:
        case None:
            return ""
        case ReadChange(found=found, size=size):
            return f"{size:,} bytes" if found else "not found"
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


def raw_events_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Every event of one architecture at exactly this position, as recorded."""
    events = timeline.events_at(backend, cursor)
    if not events:
        return lines_view("raw events", placeholder("nothing happened at this turn"), note="0")
    document = LazyDocument(len(events), lambda place: list(_event_lines(events[place])), guessed=12)
    return View("raw events", document, f"{len(events):,}")


def _event_lines(event: ReplayEvent) -> Iterator[Line]:
    """An event: its kind, then its JSON."""
    yield line(Span(event.kind, "title"))
    text = json.dumps(event.model_dump(mode="json", exclude={"kind"}), ensure_ascii=False, indent=2).split("\n")
    for part in text[1:-1][:_MOST_LINES_OF_AN_EVENT]:
        yield line(Span(one_line(part)), hang=len(part) - len(part.lstrip()) + 2)
    if len(text) - 2 > _MOST_LINES_OF_AN_EVENT:
        yield line(Span(f"… {len(text) - 2 - _MOST_LINES_OF_AN_EVENT:,} more lines", "dim"))
