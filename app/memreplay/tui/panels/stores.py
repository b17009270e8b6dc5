"""What the stores of an architecture hold: JSON states, logs, and points written to collections."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from memory_backends.stores.trace import StoredPoint
from memreplay.timeline.fold import MISSING, Path
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.panel import DiffBase, View, lines_view, placeholder, short_key, waiting
from memreplay.tui.panels.state_lines import StateLines, folded, state_lines
from memreplay.tui.subjects import StoredSubject, ValueSubject
from memreplay.tui.text import Line, Span, Tone, line, one_line, paragraphs

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
        one if one.about is None else replace(one, about=ValueSubject(backend, key, cast(Path, one.about)))
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
