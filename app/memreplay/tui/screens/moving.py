"""Moving one cursor through a timeline: by turns, by what happened, by sessions, by number, and by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from time import monotonic
from typing import ClassVar

from textual.binding import BindingType
from textual.reactive import var
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from memreplay.timeline.navigation import (
    Move,
    next_interesting,
    next_session,
    previous_interesting,
    previous_session,
    repeated,
)
from memreplay.timeline.timeline import Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens.dialogs import TypingScreen, export_screen
from memreplay.tui.screens.overlays import HelpScreen

_SECONDS_IT_LASTS = 1.5
_MOST_DIGITS = 6


class TypedCount:
    """Digits as they are typed. A number that was left alone for a while is forgotten."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._digits = ""
        self._typed_at = 0.0

    def add(self, digit: int) -> bool:
        """Take in a digit. True where a number begins with it."""
        begins = not self.pending
        self._digits = ("" if begins else self._digits) + str(digit)
        self._digits = self._digits[-_MOST_DIGITS:]
        self._typed_at = self._now()
        return begins

    @property
    def pending(self) -> bool:
        """Whether a number is being typed."""
        return bool(self._digits) and self._now() - self._typed_at <= _SECONDS_IT_LASTS

    def take(self) -> int | None:
        """The number, which is used up by this; None where none was typed, or it is 0."""
        number = int(self._digits) if self.pending else 0
        self._digits = ""
        return number or None


_SPEEDS = (1, 4, 16)


class MovingScreen(Screen[None]):
    """A screen with one cursor. What follows the cursor, and what lies beyond the frontier, is for its subclass."""

    PLACE: ClassVar[Place] = "replay"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    # Not a reactive: that would have the whole screen painted anew at every move.
    cursor: var[int] = var(0, init=False)

    def __init__(self, timeline: Timeline, seconds_a_turn: float) -> None:
        super().__init__()
        self.timeline = timeline
        self._count = TypedCount()
        self._seconds_a_turn = seconds_a_turn
        self._playing: Timer | None = None
        self._speed = 0
        self._focused_before_count: Widget | None = None

    # ---- what a subclass knows -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def frontier(self) -> int:
        """The last position that can be looked at without playing on."""

    @property
    @abstractmethod
    def is_at_frontier(self) -> bool:
        """Whether a step leads on beyond the frontier."""

    @property
    @abstractmethod
    def end(self) -> int:
        """The last position that playing by itself goes to."""

    @abstractmethod
    def play_on(self, turns: int) -> None:
        """Play so many turns beyond the frontier, where there are any."""

    @abstractmethod
    def is_busy(self) -> bool:
        """Whether turns are being played just now."""

    @abstractmethod
    def focus_architecture(self, number: int) -> None:
        """Show an architecture by its 1-based place, and focus it."""

    @abstractmethod
    def paint_header(self) -> None:
        """Show where the cursor is, and what is going on."""

    # ---- moving --------------------------------------------------------------------------------------------

    def move_to(self, position: int) -> None:
        """Look at a position; nothing is executed by it."""
        self.cursor = max(0, min(position, self.frontier))

    def action_digit(self, digit: int) -> None:
        """Focus an architecture; where a movement follows, it was the beginning of a count."""
        if self._count.add(digit):
            self._focused_before_count = self.focused
            self.focus_architecture(digit)

    def _times(self) -> int | None:
        """The count that was typed before this movement. The focus goes back to where it was before."""
        was_typed = self._count.pending
        count = self._count.take()
        if was_typed and self._focused_before_count is not None:
            self._focused_before_count.focus(scroll_visible=False)
        return count

    def action_step(self) -> None:
        """Turns on; at the live frontier they are played."""
        turns = self._times() or 1
        if self.is_at_frontier:
            self.play_on(turns)
        else:
            self.move_to(self.cursor + turns)

    def action_back(self) -> None:
        """Turns back."""
        self.move_to(self.cursor - (self._times() or 1))

    def action_first(self) -> None:
        """Before the first turn; with a count, to that turn."""
        self.move_to(self._times() or 0)

    def action_last(self) -> None:
        """To the end; with a count, to that turn. What is left of a live run is played, and the questions asked."""
        count = self._times()
        if count is not None:
            self.move_to(count)
            return
        self.move_to(self.frontier)
        self.play_to_the_end()

    def play_to_the_end(self) -> None:
        """Play all that is left; a recording has nothing left to play."""

    def action_next_eventful(self) -> None:
        """To the next turn at which something interesting happened."""
        self._move_by(lambda at: next_interesting(self.timeline, at), self.frontier)

    def action_previous_eventful(self) -> None:
        """To the previous such turn."""
        self._move_by(lambda at: previous_interesting(self.timeline, at), 0)

    def action_next_session(self) -> None:
        """To the next session."""
        self._move_by(lambda at: next_session(self.timeline, at), self.frontier)

    def action_previous_session(self) -> None:
        """To the beginning of this session, or of the one before."""
        self._move_by(lambda at: previous_session(self.timeline, at), 0)

    def _move_by(self, move: Move, otherwise: int) -> None:
        reached = repeated(move, self.cursor, self._times() or 1)
        self.move_to(otherwise if reached is None else reached)

    def action_go_to(self) -> None:
        """To a turn by its number."""
        last = self.frontier

        def refusal(text: str) -> str | None:
            return None if text.isdecimal() and int(text) <= last else f"A number from 0 to {last}."

        self.app.push_screen(TypingScreen("go to turn", f"0 to {last}", refusal=refusal), self._go_to)

    def _go_to(self, text: str | None) -> None:
        if text is not None:
            self.move_to(int(text))

    # ---- playing by itself ---------------------------------------------------------------------------------

    @property
    def playing(self) -> str:
        """What is said of playing by itself; empty where it does not."""
        return f"▶ playing ×{_SPEEDS[self._speed]}" if self._playing is not None else ""

    def action_play(self) -> None:
        """Step by itself; again: faster, and at last pause."""
        if self._playing is None:
            self._speed = 0
        elif self._speed + 1 < len(_SPEEDS):
            self._playing.stop()
            self._speed += 1
        else:
            self.pause()
            return
        self._playing = self.set_interval(self._seconds_a_turn / _SPEEDS[self._speed], self._play_on)
        self._play_on()
        self.paint_header()

    def _play_on(self) -> None:
        if self.cursor >= self.end:
            self.pause()
        elif not self.is_busy():
            self.action_step()

    def pause(self) -> None:
        """Stop playing by itself."""
        if self._playing is not None:
            self._playing.stop()
            self._playing = None
        self.paint_header()

    # ---- what any screen does ------------------------------------------------------------------------------

    def action_export(self) -> None:
        """Save the screen as a picture."""
        export_screen(self, f"{self.timeline.conversation.id}-turn-{self.cursor}")

    def action_help(self) -> None:
        """All keys."""
        self.app.push_screen(HelpScreen())

    def action_leave(self) -> None:
        """Back to the start."""
        self.dismiss()
