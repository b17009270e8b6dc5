"""Playing: how far a run was played, playing a live one further, and stepping automatically."""

from __future__ import annotations

from collections.abc import Callable

from textual.timer import Timer

from memreplay.engine.events import AskEvent, ReplayEvent
from memreplay.timeline.timeline import Timeline
from memreplay.tui.controllers import ReplayHost
from memreplay.tui.widgets.workers import LivePlayer

_SPEEDS = (1, 4, 16)
_SECONDS_BETWEEN_PAINTS = 0.1

Stopping = Callable[[int], Callable[[], None] | None]
"""Given a position that was just played: what to do on stopping there, or None to play on."""


class Playback:
    """Knows how far a run was played. A recording has no ``player``: all of it was."""

    def __init__(
        self, timeline: Timeline, player: LivePlayer | None, seconds_per_turn: float, host: ReplayHost
    ) -> None:
        self.seconds_per_turn = seconds_per_turn
        self.following = player is not None
        """True if the cursor stays at the frontier of a live run while it is played."""
        self._timeline = timeline
        self._player = player
        self._host = host
        self._played = 0
        self._stopping: Stopping | None = None
        self._autoplay: Timer | None = None
        self._speed = 0
        self._pending_paint: Timer | None = None

    @property
    def is_live(self) -> bool:
        """Return whether an engine can play further turns."""
        return self._player is not None and not self._player.run.over

    @property
    def frontier(self) -> int:
        """Return the last position that was played."""
        if self.is_live:
            return self._played
        # Turns that an interrupted run never played can be read, too.
        return max(self._timeline.reached, self._timeline.last_turn)

    @property
    def _end(self) -> int:
        """Return the last position that can be played."""
        return self._player.run.end if self._player is not None and self.is_live else self.frontier

    @property
    def autoplay_label(self) -> str:
        """Return the speed of stepping automatically; empty while paused."""
        return f"▶ playing ×{_SPEEDS[self._speed]}" if self._autoplay is not None else ""

    # ---- playing on ----------------------------------------------------------------------------------------

    def advance(self, turns: int) -> None:
        """Move forward; at the frontier of a live run, have the engine play these turns."""
        # A live cursor that follows the frontier may lag behind it until the next paint.
        if self._host.cursor == self.frontier or (self.is_live and self.following):
            self._play(turns)
        else:
            self._host.move_to(self._host.cursor + turns)

    def play_all(self) -> None:
        """Have the engine play the remaining turns, then ask the questions."""
        if self._player is not None and self.is_live:
            self._host.show_problem("")
            self._player.play_all()
            self._host.paint_header()

    def play_until(self, stopping: Stopping) -> bool:
        """Have the engine play turn by turn until one stops it. False if no turn is left to play."""
        if not self.is_live or self._played >= self._end:
            return False
        self._stopping = stopping
        self._host.move_to(self.frontier)
        self._play(1)
        return True

    def _play(self, turns: int) -> None:
        if self._player is not None and self.is_live:
            self.following = True
            self._host.show_problem("")
            self._player.play_to(max(self._player.run.target, self._played) + turns)

    def stop(self) -> None:
        """Stop playing and asking."""
        self._stopping = None
        self.pause()
        if self._player is not None:
            self._player.stop()

    # ---- automatic steps -----------------------------------------------------------------------------------

    def autoplay(self) -> None:
        """Start stepping automatically; if already doing so, go faster, and pause after the highest speed."""
        if self._autoplay is None:
            self._speed = 0
        elif self._speed + 1 < len(_SPEEDS):
            self._autoplay.stop()
            self._speed += 1
        else:
            self.pause()
            return
        self._autoplay = self._host.set_interval(self.seconds_per_turn / _SPEEDS[self._speed], self._tick)
        self._tick()
        self._host.paint_header()

    def pause(self) -> None:
        """Stop stepping automatically."""
        if self._autoplay is not None:
            self._autoplay.stop()
            self._autoplay = None
        self._host.paint_header()

    def _tick(self) -> None:
        if self._host.cursor >= self._end:
            self.pause()
        elif self._player is None or not self._player.busy:
            self.advance(1)

    # ---- news from the engine ------------------------------------------------------------------------------

    def on_replay_event(self, event: ReplayEvent) -> None:
        """Show answers as they arrive."""
        if isinstance(event, AskEvent):
            self._paint_soon()

    def on_turn_played(self, position: int) -> None:
        """The engine played a turn: stop there, play the next one, or show it."""
        self._played = position
        if self._stopping is not None:
            stop = self._stopping(position)
            if stop is None and position < self._end:
                self._paint_soon()
                self._play(1)
                return
            self._stopping = None
            self._catch_up()
            if stop is not None:
                stop()
        elif self._player is not None and position < self._player.run.target:
            self._paint_soon()
        else:
            self._catch_up()

    def on_engine_idle(self, position: int) -> None:
        """The engine has nothing left to do for now."""
        self._played = position
        self._catch_up()

    def on_failure(self, sentence: str) -> None:
        """The engine cannot continue."""
        self._host.show_problem(sentence)
        self.pause()

    def _paint_soon(self) -> None:
        """Paint a few times a second, however fast the engine plays."""
        if self._pending_paint is None:
            self._pending_paint = self._host.set_timer(_SECONDS_BETWEEN_PAINTS, self._catch_up)

    def _catch_up(self) -> None:
        """Show how far the engine is."""
        if self._pending_paint is not None:
            self._pending_paint.stop()
            self._pending_paint = None
        if self.following and self._host.cursor != self._played:
            self._host.move_to(self._played)
        else:
            self._host.paint_progress()
