"""The contents of an architecture's stores, the commands and decisions that wrote it, and the raw events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from memory_backends.stores.trace import (
    AppendChange,
    Change,
    ExpireChange,
    MemoryOperation,
    PatchChange,
    PromotionDecision,
    PublishChange,
    ReadChange,
    RemoveChange,
    SearchChange,
    SignificanceFactors,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.engine.events import ReplayEvent
from memreplay.timeline.fold import MISSING, Path
from memreplay.timeline.timeline import Ledger, Timeline
from memreplay.views.document import LazyDocument
from memreplay.views.panels import DiffBase, View, lines_view, placeholder, short_key, waiting
from memreplay.views.panels.state_lines import StateLines, folded, state_lines
from memreplay.views.subjects import DecisionSubject, StoredSubject, ValueSubject
from memreplay.views.text import Line, Span, Tone, line, one_line, paragraphs

_ROWS_OF_TEXT = 4
_LOG_PIECES = 6


def state_view(name: str, prefix: str, timeline: Timeline, backend: str, cursor: int, base: DiffBase) -> View:
    """The JSON states under a key prefix, diffed against the base; the first change is scrolled into view."""
    keys = [key for key in timeline.state_keys(backend) if key.startswith(prefix)]
    lines: list[Line] = []
    in_view: int | None = None
    shown: list[str] = []
    changed: str | None = None
    for key in keys:
        state = _state(timeline, backend, key, cursor, base)
        if not state.lines:
            continue
        shown.append(key)
        if len(keys) > 1:
            lines.append(line(Span(short_key(key, timeline.conversation.id, backend), "title")))
        if in_view is None and state.first_change is not None:
            in_view, changed = len(lines) + state.first_change, key
        lines += _with_subjects(state, backend, key)
    others = f" (+{len(shown) - 1})" if len(shown) > 1 else ""
    key = short_key((changed or shown[0]) if shown else "", timeline.conversation.id, backend)
    # The state's own name says what the beginning of its key does.
    words = key.removeprefix(prefix).removeprefix(prefix.rstrip(":")).lstrip(":")
    title = " · ".join(part for part in (name, words) if part) + others
    return lines_view(title, lines or placeholder(waiting(cursor, "not written yet")), in_view=in_view)


def _state(timeline: Timeline, backend: str, key: str, cursor: int, base: DiffBase) -> StateLines:
    # Read the earlier state first: folding forward from it takes one step.
    before = timeline.state_at(backend, key, base.position_before(cursor))
    after = timeline.state_at(backend, key, cursor)
    if base.kind in ("off", "architecture"):
        return state_lines(after, after)
    return folded(state_lines(before, after)) if base.folds else state_lines(before, after)


def _with_subjects(state: StateLines, backend: str, key: str) -> list[Line]:
    """The lines of a state; each leads to the value at its path."""
    return [
        one if one.about is None else replace(one, about=ValueSubject(backend, key, cast("Path", one.about)))
        for one in state.lines
    ]


def written_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """The points written to the collections at exactly this position, and how many points they hold."""
    lines: list[Line] = []
    counts: dict[str, int] = {}
    for name in timeline.collections(backend):
        history = timeline.collection(backend, name)
        counts[name] = history.count_at(cursor)
        for point in history.written_at(cursor):
            lines += _point_lines(backend, name, point)
    shown = lines or placeholder(waiting(cursor, "nothing was written at this turn"))
    return lines_view("written at this turn", shown, note=_points_words(counts))


def _points_words(counts: Mapping[str, int]) -> str:
    """How many points the collections hold, all together and each."""
    if not counts:
        return ""
    total = sum(counts.values())
    words = f"{total:,} {'point' if total == 1 else 'points'} stored"
    if len(counts) == 1:
        return f"{words} · in {one_line(next(iter(counts)))}"
    return " · ".join([words, *(f"{one_line(name)}: {count:,}" for name, count in counts.items())])


def _point_lines(backend: str, collection: str, point: StoredPoint) -> Iterator[Line]:
    """A written point: its collection and id, then its payload, field by field."""
    replaced = point.replaced is not None
    head = Span(f"{'~' if replaced else '+'} {one_line(collection)}", "changed" if replaced else "added")
    about = StoredSubject(backend, collection, point.id, ())
    yield line(head, Span(f"  {one_line(point.id)}", "dim"), hang=2, about=about)
    for key, value in point.payload.items():
        if key == "id":
            continue
        changed = point.replaced is not None and point.replaced.get(key) != value
        sign = Span("~ ", "changed") if changed else Span("  ")
        text = value if isinstance(value, str) else _json(value)
        yield line(sign, Span(f"{one_line(key)}: ", "key"), one_line(text), hang=4, most=_ROWS_OF_TEXT)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def stores_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Everything in the stores of any architecture, whatever it calls its keys and collections."""
    lines = [
        *_states(timeline, backend, cursor),
        *_logs(timeline, backend, cursor),
        *_collections(timeline, backend, cursor),
    ]
    return lines_view("stores", lines or placeholder(waiting(cursor, "this memory has written to no store")))


def _states(timeline: Timeline, backend: str, cursor: int) -> Iterator[Line]:
    for key in timeline.state_keys(backend):
        before = timeline.state_at(backend, key, cursor - 1)
        after = timeline.state_at(backend, key, cursor)
        if before is not MISSING or after is not MISSING:
            yield line(Span(one_line(key), "title"))
            yield from _with_subjects(state_lines(before, after), backend, key)


def _logs(timeline: Timeline, backend: str, cursor: int) -> Iterator[Line]:
    for key in timeline.log_keys(backend):
        pieces = timeline.log_at(backend, key, cursor)
        yield line(Span(one_line(key), "title"), Span(f"  {len(pieces):,} appended", "dim"))
        for turn, text in pieces[-_LOG_PIECES:]:
            tone: Tone = "added" if turn == cursor else "plain"
            yield from paragraphs(text.removesuffix("\n"), tone, indent=2)


def _collections(timeline: Timeline, backend: str, cursor: int) -> Iterator[Line]:
    for name in timeline.collections(backend):
        history = timeline.collection(backend, name)
        yield line(Span(one_line(name), "title"), Span(f"  {history.count_at(cursor):,} points", "dim"))
        for point in history.written_at(cursor):
            yield from _point_lines(backend, name, point)


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


_DECISION_SIGNS: Final[Mapping[str, tuple[str, Tone]]] = {
    "ADD": ("+ ADD   ", "added"),
    "UPDATE": ("~ UPDATE", "changed"),
    "NO-OP": ("= NO-OP ", "dim"),
    "DROP": ("− DROP  ", "removed"),
}
_MOST_DECISIONS = 100


def promotions_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """The candidates judged at exactly this position, and counts of all decisions up to it."""
    ledger = timeline.ledger(backend)
    lines = [one for decision in ledger.at(cursor) for one in _decision_lines(decision, cursor, backend)]
    shown = lines or placeholder("no candidate was judged at this turn")
    return lines_view("promotions", shown, note=_counts(ledger, cursor))


def ledger_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """The latest decisions up to the position, newest first."""
    ledger = timeline.ledger(backend)
    decided = ledger.until(cursor)
    lines: list[Line] = []
    previous: int | None = None
    for turn, decision in (decided[at] for at in range(len(decided) - 1, -1, -1)[:_MOST_DECISIONS]):
        if turn != previous:
            now = turn == cursor
            lines.append(line(Span(f"turn {turn}{' ← now' if now else ''}", "accent" if now else "dim")))
        lines += _decision_lines(decision, turn, backend)
        previous = turn
    if len(decided) > _MOST_DECISIONS:
        lines.append(line(Span(f"⋯ {len(decided) - _MOST_DECISIONS:,} earlier", "dim")))
    shown = lines or placeholder("no candidate has been judged yet")
    return lines_view("promotion ledger", shown, note=_counts(ledger, cursor))


def _counts(ledger: Ledger, cursor: int) -> str:
    counts = ledger.counts_until(cursor)
    return " · ".join(f"{name} {count}" for name in _DECISION_SIGNS if (count := counts.get(name)))


def _decision_lines(decision: PromotionDecision, turn: int, backend: str) -> Iterator[Line]:
    """Decision and score, content, why, and the factors of the score. The first line leads to the write."""
    sign, tone = _DECISION_SIGNS[decision.decision]
    yield line(
        Span(sign, tone),
        Span(f" {decision.score:.2f}", "value"),
        Span(f" of {decision.threshold:.2f}  ", "dim"),
        Span(one_line(decision.slot), "key") if decision.slot else "",
        Span(f"  from turn {one_line(', '.join(decision.sources))}", "dim"),
        hang=2,
        about=DecisionSubject.of(backend, turn, decision),
    )
    yield line("  ", one_line(decision.content), hang=2, most=4)
    yield line("  ", Span(one_line(decision.justification), "dim"), hang=2, most=3)
    yield line("  ", Span(_product(decision.factors), "dim"), hang=2)


def _product(factors: SignificanceFactors) -> str:
    return (
        f"certainty {factors.certainty:.2f} × impact {factors.impact:.2f}"
        f" × age {factors.age_decay:.2f} × recency {factors.recency_boost:.2f}"
    )
