"""All that a memory of unknown make keeps, in one panel: states, ends of logs, points written at the turn."""

from __future__ import annotations

from app.replay.fold import MISSING
from app.replay.timeline import Timeline
from app.tui.text import Line, Span, Tone, line, one_line, paragraphs
from app.tui.views.base import MARKED, Base
from app.tui.views.state_lines import state_lines
from app.tui.views.stores import about_state, point_lines
from app.tui.views.view import View, lines_view, nothing

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
