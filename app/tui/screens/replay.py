"""The replay: one cursor, the conversation at the left, each architecture's memory at the right."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Footer

from app.replay.annotations import Annotations
from app.replay.events import AnswerScored, ConversationClosed, QuestionAsked, TestScored
from app.tui.launch import LiveAssembly
from app.tui.replay_source import ReplaySource
from app.tui.screens.asking import AskingScreen
from app.tui.screens.test_scores import TestScoresScreen
from app.tui.text import Span, one_line
from app.tui.views.answers import answers_view
from app.tui.views.conversation import closing_of
from app.tui.views.header import header_spans
from app.tui.views.tests import document_of, first_turn_of, scores_view
from app.tui.widgets.architectures import Architectures
from app.tui.widgets.bars import Bar
from app.tui.widgets.lines_view import LinesView
from app.tui.widgets.live_player import LivePlayer
from app.tui.widgets.strip import TimelineStrip

_SECONDS_BETWEEN_PAINTS = 0.1
_NOTHING_SAID = "step: a first message"


class ReplayScreen(AskingScreen):
    """Follows one cursor through a timeline; at the frontier of a live one it has the engine play on."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]

    def __init__(self, source: ReplaySource, seconds_a_turn: float, assemble: Callable[[], LiveAssembly]) -> None:
        self.player = LivePlayer(source) if source.assembly is not None else None
        tell = self.player.tell if self.player is not None else None
        super().__init__(source.timeline, seconds_a_turn, assemble, tell)
        self.source = source
        self.architectures = Architectures(self.timeline, source.backends, id="architectures")
        self.strip = TimelineStrip(self.timeline, id="strip")
        self._conversing = self.timeline.conversation.conversing
        self._document = document_of(self.timeline)
        self._played = 0
        self._following = True
        self._continuing = False
        self._late: Timer | None = None

    # ---- what stands on the screen -------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Header, timeline, conversation and answers, architectures, keys."""
        yield Bar(id="header")
        yield Bar(id="trouble")
        yield self.strip
        yield Bar(id="found")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield LinesView(id="conversation")
                yield LinesView(id="answers")
            yield self.architectures
        if self.player is not None:
            yield self.player
        yield self.asker
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Begin at the beginning; a recording begins at its first turn, so that there is something to see."""
        conversation = self.query_one("#conversation", LinesView)
        conversation.border_title = Content("conversation")
        conversation.border_subtitle = Content(_NOTHING_SAID if self._conversing and self.is_live else "")
        for name in ("#trouble", "#found", "#answers"):
            self.query_one(name).display = False
        self.architectures.display = self.source.shows_memory
        self.set_class(not self.source.shows_memory, "-without-memory")
        self._document.closed = closing_of(self.timeline)
        self.marks_changed()
        self.load_watches()
        conversation.show(self._document)
        conversation.focus(scroll_visible=False)
        if self.player is None:
            self.cursor = min(1, self.frontier)
        self.paint()

    @property
    def frontier(self) -> int:
        """The last position that can be looked at without playing on."""
        return self._played if self.is_live else self.timeline.reached

    @property
    def end(self) -> int:
        """The last position that playing by itself goes to."""
        return self.player.run.end if self.player is not None and self.is_live else self.timeline.reached

    @property
    def is_live(self) -> bool:
        """Whether there is an engine that can play on."""
        return self.player is not None and not self.player.run.over

    @property
    def annotations(self) -> Annotations:
        """Bookmarks and watches, saved with the recording where that can be."""
        return self.source.annotations

    def paint(self) -> None:
        """Show everything at the cursor."""
        self.paint_header()
        self.strip.move_to(self.cursor, self.frontier)
        self._document.cursor = self.cursor
        conversation = self.query_one("#conversation", LinesView)
        conversation.relay()
        conversation.bring_into_view(max(0, self.cursor - 1))
        self.architectures.move_to(self.cursor, self.base)
        self._paint_answers()

    def paint_header(self) -> None:
        """Show where the cursor is, and what is going on."""
        progress = self.playing or self.asking
        if self.player is not None and not progress:
            progress = self.player.progress
        spans = header_spans(
            self.timeline,
            self.cursor,
            live=self.player is not None,
            progress="  ".join(part for part in (progress, self.base.words) if part),
            settings=self.source.settings_in_short,
        )
        self.query_one("#header", Bar).say(*spans)

    def _paint_answers(self) -> None:
        answers = self.query_one("#answers", LinesView)
        first_ask = self.timeline.marks.next(-1, {"question"})
        answers.display = self._conversing or (first_ask is not None and first_ask <= self.cursor)
        if answers.display:
            view = (scores_view if self._conversing else answers_view)(self.timeline, self.cursor)
            answers.border_title = Content(view.title)
            answers.show(view.document, in_view=view.in_view)

    def watch_cursor(self) -> None:
        """Every panel follows."""
        self.say("")
        self.paint()

    def strip_changed(self) -> None:
        """Something was asked by hand: show it."""
        self.strip.happened()
        self.strip.move_to(self.cursor, self.frontier)
        self._paint_answers()

    def marks_changed(self) -> None:
        """Show the bookmarks on the strip."""
        self.timeline.marks.set_bookmarks(bookmark.turn for bookmark in self.annotations.bookmarks())
        self.strip.happened()
        self.strip.move_to(self.cursor, self.frontier)

    def choose_turns(self, turn_ids: frozenset[str]) -> None:
        """Mark turns as those the user came for."""
        self._document.chosen = turn_ids

    def action_significance(self) -> None:
        """Colour the conversation by significance, or not."""
        self._document.by_significance = not self._document.by_significance
        self.paint()

    # ---- moving --------------------------------------------------------------------------------------------

    def move_to(self, position: int) -> None:
        """Look at a position; nothing is executed by it."""
        super().move_to(position)
        self._following = self.cursor == self.frontier

    def play_on(self, turns: int) -> None:
        """Have the engine play so many turns more."""
        if self.player is not None and self.is_live:
            self._following = True
            self.player.play_to(max(self.player.run.target, self._played) + turns)

    def play_to_the_end(self) -> None:
        """Have the engine play all that is left and ask the questions."""
        if self.player is not None and self.is_live:
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

    @on(LinesView.BlockClicked)
    def _clicked(self, message: LinesView.BlockClicked) -> None:
        if message.view.id == "conversation":
            self.move_to(message.block + 1)
        elif message.view.id == "answers" and self._conversing:
            self.move_to(first_turn_of(self.timeline, message.block))

    @on(TimelineStrip.Sought)
    def _sought_on_strip(self, message: TimelineStrip.Sought) -> None:
        self.move_to(message.position)

    # ---- panels, and what lies over them -------------------------------------------------------------------

    def focus_architecture(self, number: int) -> None:
        """Show an architecture by its 1-based place, and focus it."""
        self.architectures.focus_one(number - 1)

    def action_enlarge(self) -> None:
        """Give the focused panel the whole screen."""
        if self.focused is not None:
            self.maximize(self.focused)

    def action_results(self) -> None:
        """Open the results, as far as there are any."""
        if not self._conversing:
            super().action_results()
        elif any(isinstance(event, TestScored) for event in self.timeline.tests):
            self.app.push_screen(TestScoresScreen(self.timeline), self.go)
        else:
            self.notify("No test is over yet: G plays on to the end of all.", markup=False)

    # ---- what the engine tells -----------------------------------------------------------------------------

    @on(LivePlayer.Happened)
    def _happened(self, message: LivePlayer.Happened) -> None:
        event = message.event
        self.timeline.append(event)
        self.strip.happened()
        match event:
            case QuestionAsked() | AnswerScored():
                self._catch_up_soon()
            case ConversationClosed():
                self._document.closed = closing_of(self.timeline)
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
        self._document.grow_to(self._played)
        if self._played:
            self.query_one("#conversation", LinesView).border_subtitle = Content("")
        if self._following:
            self.cursor = self._played
        self.paint_header()
        self.strip.move_to(self.cursor, self.frontier)
        self._paint_answers()

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
