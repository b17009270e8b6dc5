"""Having the engine play on at the frontier of a live run, and taking in what it tells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from textual import on
from textual.timer import Timer

from memreplay.engine.events import AnswerScored, ConversationClosed, QuestionAsked
from memreplay.tui.launch import RunHandle
from memreplay.tui.screens.asking import AskingScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.workers import LivePlayer

_SECONDS_BETWEEN_PAINTS = 0.1


class PlayingScreen(AskingScreen):
    """Knows how far a run was played. Without an engine all of it was."""

    def __init__(self, source: ReplaySource, seconds_a_turn: float, assemble: Callable[[], RunHandle]) -> None:
        self.player = LivePlayer(source) if source.assembly is not None else None
        tell = self.player.tell if self.player is not None else None
        super().__init__(source.timeline, seconds_a_turn, assemble, tell)
        self._played = 0
        self._following = True
        self._continuing = False
        self._late: Timer | None = None

    # ---- what a subclass shows -----------------------------------------------------------------------------

    @abstractmethod
    def on_replay_event(self) -> None:
        """Something is on record that was not before."""

    @abstractmethod
    def conversation_closed(self) -> None:
        """The conversation has ended in a memory."""

    @abstractmethod
    def grow_to(self, turns: int) -> None:
        """So many turns were played: there may be more of them than were known."""

    @abstractmethod
    def paint_progress(self) -> None:
        """Show what does not depend on the cursor alone: how far it was played, and what was answered."""

    # ---- how far it was played -----------------------------------------------------------------------------

    @property
    def frontier(self) -> int:
        """The last position that can be looked at without playing on."""
        return self._played if self.is_live else self.timeline.reached

    @property
    def is_at_frontier(self) -> bool:
        """Whether a step leads on beyond the frontier; so too before the screen has caught up with it."""
        return self.cursor == self.frontier or (self.is_live and self._following)

    @property
    def end(self) -> int:
        """The last position that playing by itself goes to."""
        return self.player.run.end if self.player is not None and self.is_live else self.timeline.reached

    @property
    def is_live(self) -> bool:
        """Whether there is an engine that can play on."""
        return self.player is not None and not self.player.run.over

    # ---- playing on ----------------------------------------------------------------------------------------

    def move_to(self, position: int) -> None:
        """Look at a position; nothing is executed by it."""
        super().move_to(position)
        self._following = self.cursor == self.frontier

    def play_on(self, turns: int) -> None:
        """Have the engine play so many turns more."""
        if self.player is not None and self.is_live:
            self._following = True
            self.query_one("#trouble", Bar).display = False
            self.player.play_to(max(self.player.run.target, self._played) + turns)

    def play_to_the_end(self) -> None:
        """Have the engine play all that is left and ask the questions."""
        if self.player is not None and self.is_live:
            self.query_one("#trouble", Bar).display = False
            self.player.play_all()
            self.paint_header()

    def is_busy(self) -> bool:
        """Whether the engine is playing."""
        return self.player is not None and self.player.busy

    def action_stop(self) -> None:
        """Stop playing and asking."""
        self._continuing = False
        self.asker.stop()
        self.pause()
        if self.player is not None:
            self.player.stop()

    def no_stop_ahead(self) -> None:
        """No watch stops before the frontier: a live run plays until one does."""
        if not self.is_live or self._played >= self.end:
            super().no_stop_ahead()
            return
        self._continuing = True
        self.move_to(self.frontier)
        self.play_on(1)

    # ---- what the engine tells -----------------------------------------------------------------------------

    @on(LivePlayer.Happened)
    def _happened(self, message: LivePlayer.Happened) -> None:
        event = message.event
        self.timeline.append(event)
        self.on_replay_event()
        match event:
            case QuestionAsked() | AnswerScored():
                self._catch_up_soon()
            case ConversationClosed():
                self.conversation_closed()
            case _:
                pass

    @on(LivePlayer.Reached)
    def _reached(self, message: LivePlayer.Reached) -> None:
        assert self.player is not None
        self._played = message.position
        if self._continuing:
            self._continue_from(message.position)
        elif message.position < self.player.run.target:
            self._catch_up_soon()
        else:
            self._catch_up()

    def _continue_from(self, position: int) -> None:
        """Stop where a watch fires; else play one turn more."""
        stop = self.stop_at(position)
        self._continuing = stop is None and position < self.end
        if stop is not None:
            self._catch_up()
            self.stopped(stop)
        elif self._continuing:
            self._catch_up_soon()
            self.play_on(1)
        else:
            self._catch_up()

    def _catch_up_soon(self) -> None:
        """Show where the engine is, some times a second however fast it goes."""
        if self._late is None:
            self._late = self.set_timer(_SECONDS_BETWEEN_PAINTS, self._catch_up)

    def _catch_up(self) -> None:
        if self._late is not None:
            self._late.stop()
            self._late = None
        self.grow_to(self._played)
        if self._following:
            self.cursor = self._played
        self.paint_progress()

    @on(LivePlayer.Rested)
    def _rested(self, message: LivePlayer.Rested) -> None:
        self._played = message.position
        self._catch_up()
        if message.completed:
            self.paint()
            self.action_results()

    @on(LivePlayer.Failed)
    def _failed(self, message: LivePlayer.Failed) -> None:
        self.pause()
        trouble = self.query_one("#trouble", Bar)
        trouble.display = True
        trouble.say(Span(f"! {one_line(message.sentence)}", "bad"))
        self.paint_header()
