"""What the stores of a memory hold: its JSON states, and the points that were written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from app.replay.pointers import Path
from app.replay.timeline import Timeline
from app.tui.subjects import StoredSubject, ValueSubject
from app.tui.text import Line, Span, line, one_line
from app.tui.views.base import MARKED, Base
from app.tui.views.state_lines import StateLines, folded, state_lines
from app.tui.views.view import View, lines_view, nothing
from memory_backends.operations import StoredPoint

_ROWS_OF_TEXT = 4


class StatePanel:
    """The JSON states of one kind, such as ``personal_state``, with what changed at the position."""

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
    about = StoredSubject(backend, "qdrant", collection, point.id, ())
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
