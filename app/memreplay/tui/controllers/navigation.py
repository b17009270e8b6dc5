"""Moving the cursor: by turns, sessions, events and numbers, and back from a jump."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from memreplay.timeline.navigation import (
    Move,
    next_interesting,
    next_session,
    previous_interesting,
    previous_session,
    repeated,
)
from memreplay.timeline.timeline import Timeline
from memreplay.tui.controllers import COUNT_TIMEOUT_SECONDS, ReplayHost, TypedCount
from memreplay.tui.controllers.playback import Playback
from memreplay.tui.screens.dialogs import TypingScreen
from memreplay.tui.widgets.architectures import Architectures
from memreplay.tui.widgets.lines_view import LinesView


@dataclass(frozen=True)
class _Jump:
    """The start of a jump."""

    cursor: int
    focused: LinesView | None
    reopen: Callable[[], None] | None = None


class Navigation:
    """Owns the cursor, and remembers where jumps started."""

    def __init__(
        self, timeline: Timeline, playback: Playback, architectures: Architectures, host: ReplayHost
    ) -> None:
        self.cursor = 0
        self._timeline = timeline
        self._playback = playback
        self._architectures = architectures
        self._host = host
        self._count = TypedCount()
        self._focused_before_count: LinesView | None = None
        self._jumps: list[_Jump] = []

    @property
    def frontier(self) -> int:
        """Return the last position that was played."""
        return self._playback.frontier

    def move_to(self, position: int) -> None:
        """Move to the nearest position that was played. This executes nothing."""
        before, self.cursor = self.cursor, max(0, min(position, self._playback.frontier))
        self._playback.following = self._playback.is_live and self.cursor == self._playback.frontier
        if self.cursor != before:
            self._host.cursor_moved()

    # ---- counts --------------------------------------------------------------------------------------------

    def digit(self, digit: int) -> None:
        """Focus an architecture by its number. A movement right after it takes the digits as its count."""
        if self._count.add(digit):
            self._focused_before_count = self._host.focused_view
            if self._architectures.display:
                self._architectures.focus_one(digit - 1)
        self._host.paint_header()
        self._host.set_timer(COUNT_TIMEOUT_SECONDS, self._host.paint_header)

    @property
    def count_shown(self) -> str:
        """Return the count that is being typed; empty if none is."""
        return self._count.shown

    def _take_count(self) -> int | None:
        """Return the count typed before this movement. The focus returns to where it was before the first digit."""
        was_pending = self._count.pending
        count = self._count.take()
        if was_pending and self._focused_before_count is not None:
            self._focused_before_count.focus(scroll_visible=False)
        return count

    def drop_count(self) -> bool:
        """Forget the count that is being typed. Returns whether there was one."""
        return self._take_count() is not None

    # ---- movements -----------------------------------------------------------------------------------------

    def step(self) -> None:
        self._playback.advance(self._take_count() or 1)

    def back(self) -> None:
        self.move_to(self.cursor - (self._take_count() or 1))

    def first(self) -> None:
        """Before the first turn; with a count, to that turn."""
        self.move_to(self._take_count() or 0)

    def last(self) -> None:
        """Go to the end, which in a live run plays the remaining turns and asks; with a count, to that turn."""
        count = self._take_count()
        if count is not None:
            self.move_to(count)
        else:
            if self.cursor == self._playback.frontier and not self._playback.is_live:
                self._host.report("This is the end of the recording. r shows the answers.")
            self.move_to(self._playback.frontier)
            self._playback.play_all()

    def next_eventful(self) -> None:
        self._repeat(lambda at: next_interesting(self._timeline, at), self._playback.frontier)

    def previous_eventful(self) -> None:
        self._repeat(lambda at: previous_interesting(self._timeline, at), 0)

    def next_session(self) -> None:
        self._repeat(lambda at: next_session(self._timeline, at), self._playback.frontier)

    def previous_session(self) -> None:
        self._repeat(lambda at: previous_session(self._timeline, at), 0)

    def _repeat(self, move: Move, otherwise: int) -> None:
        reached = repeated(move, self.cursor, self._take_count() or 1)
        self.move_to(otherwise if reached is None else reached)

    def go_to(self) -> None:
        """Ask for a turn number and move there."""
        last = self._playback.frontier

        def refusal(text: str) -> str | None:
            return None if text.isdecimal() and int(text) <= last else f"A number from 0 to {last}."

        def typed(text: str | None) -> None:
            if text is not None:
                self.move_to(int(text))

        self._host.open_screen(TypingScreen("go to turn", f"0 to {last}", refusal=refusal), typed)

    # ---- jumps ---------------------------------------------------------------------------------------------

    def jump(self, position: int, backend: str | None = None, note: str = "") -> None:
        """Move to a position, focus an architecture and explain why. :meth:`jump_back` undoes it."""
        self._jumps.append(_Jump(self.cursor, self._host.focused_view))
        self.move_to(position)
        if backend is not None:
            self._host.minimize()
            self._architectures.show_backend(backend)
        self._host.announce(note)

    def on_return(self, reopen: Callable[[], None]) -> None:
        """Going back from the last jump also opens the screen again that caused it."""
        if self._jumps:
            self._jumps[-1] = replace(self._jumps[-1], reopen=reopen)

    @property
    def came_from_a_screen(self) -> bool:
        """Return whether going back opens the screen again that led here."""
        return bool(self._jumps) and self._jumps[-1].reopen is not None

    def jump_back(self) -> None:
        """Return to where the last jump started."""
        if not self._jumps:
            self._host.report("You came here step by step: there is no jump to go back from.")
            return
        jump = self._jumps.pop()
        self.move_to(jump.cursor)
        if jump.focused is not None and jump.focused.is_attached:
            jump.focused.focus(scroll_visible=False)
        if jump.reopen is not None:
            jump.reopen()
