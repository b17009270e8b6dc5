"""All that a memory of unknown make keeps, in one panel: states, ends of logs, points written at the turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from memory_backends.stores.trace import StoredPoint
from memreplay.timeline.fold import MISSING, Path
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.panel import MARKED, Base, View, lines_view, nothing
from memreplay.tui.panels.state_lines import StateLines, folded, state_lines
from memreplay.tui.subjects import StoredSubject, ValueSubject
from memreplay.tui.text import Line, Span, Tone, line, one_line, paragraphs

_ROWS_OF_TEXT = 4


class StatePanel:
    """The JSON states whose keys begin with a prefix, with what changed at the position."""

    def __init__(self, timeline: Timeline, backend: str, name: str, prefix: str, weight: int) -> None:
        self.name = name
        self.weight = weight
        self._timeline = timeline
        self._backend = backend
        self._prefix = prefix

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The states at the position, with what changed since the base; the first change is brought into view."""
        keys = [key for key in self._timeline.state_keys(self._backend) if key.startswith(self._prefix)]
        lines: list[Line] = []
        in_view: int | None = None
        shown: list[str] = []
        changed: str | None = None
        for key in keys:
            state = self._state(key, cursor, base)
            if not state.lines:
                continue
            shown.append(key)
            if len(keys) > 1:
                lines.append(line(Span(one_line(key), "title")))
            if in_view is None and state.first_change is not None:
                in_view, changed = len(lines) + state.first_change, key
            lines += about_state(state, self._backend, key)
        others = f" (+{len(shown) - 1})" if len(shown) > 1 else ""
        title = f"{self.name}{others} · {one_line(changed or shown[0])}" if shown else self.name
        return lines_view(title, lines or nothing("not written yet"), in_view=in_view)

    def _state(self, key: str, cursor: int, base: Base) -> StateLines:
        # The earlier one first: folding forward from it is one step.
        before = self._timeline.state_at(self._backend, key, base.position_before(cursor))
        after = self._timeline.state_at(self._backend, key, cursor)
        if base.kind in ("off", "architecture"):
            return state_lines(after, after)
        return folded(state_lines(before, after)) if base.folds else state_lines(before, after)


def about_state(state: StateLines, backend: str, key: str) -> list[Line]:
    """The lines of a state, each about its place in the state of this key."""
    return [
        one if one.about is None else replace(one, about=ValueSubject(backend, key, cast(Path, one.about)))
        for one in state.lines
    ]


class WrittenPanel:
    """What was written to the collections at the position, and how many points they hold."""

    name = "written"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The points written at exactly this position."""
        lines: list[Line] = []
        counts: list[str] = []
        for name in self._timeline.collections(self._backend):
            history = self._timeline.collection(self._backend, name)
            counts.append(f"{one_line(name)}: {history.count_at(cursor):,}")
            for point in history.written_at(cursor):
                lines += point_lines(self._backend, name, point)
        shown = lines or nothing("nothing was written at this turn")
        return lines_view("written at this turn", shown, note=" · ".join(counts))


def point_lines(backend: str, collection: str, point: StoredPoint) -> Iterator[Line]:
    """A written point: its collection and id, then its payload, field by field."""
    head = Span(f"+ {one_line(collection)}", "added")
    if point.replaced is not None:
        head = Span(f"~ {one_line(collection)}", "changed")
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


_PIECES_OF_A_LOG = 6


class StoresPanel:
    """All stores of one memory, whatever it calls its keys and collections."""

    name = "stores"

    def __init__(self, timeline: Timeline, backend: str, weight: int) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """What the stores hold at the position."""
        lines = [*self._states(cursor), *self._logs(cursor), *self._collections(cursor)]
        return lines_view(self.name, lines or nothing("this memory has put nothing into a store"))

    def _states(self, cursor: int) -> list[Line]:
        lines: list[Line] = []
        for key in self._timeline.state_keys(self._backend):
            before = self._timeline.state_at(self._backend, key, cursor - 1)
            after = self._timeline.state_at(self._backend, key, cursor)
            if before is not MISSING or after is not MISSING:
                state = about_state(state_lines(before, after), self._backend, key)
                lines += [line(Span(one_line(key), "title")), *state]
        return lines

    def _logs(self, cursor: int) -> list[Line]:
        lines: list[Line] = []
        for key in self._timeline.log_keys(self._backend):
            pieces = self._timeline.log_at(self._backend, key, cursor)
            lines.append(line(Span(one_line(key), "title"), Span(f"  {len(pieces):,} appended", "dim")))
            for turn, text in pieces[-_PIECES_OF_A_LOG:]:
                tone: Tone = "added" if turn == cursor else "plain"
                lines += paragraphs(text.removesuffix("\n"), tone, indent=2)
        return lines

    def _collections(self, cursor: int) -> list[Line]:
        lines: list[Line] = []
        for name in self._timeline.collections(self._backend):
            history = self._timeline.collection(self._backend, name)
            count = history.count_at(cursor)
            lines.append(line(Span(one_line(name), "title"), Span(f"  {count:,} points", "dim")))
            for point in history.written_at(cursor):
                lines += point_lines(self._backend, name, point)
        return lines
