"""The replay: one cursor, the conversation at the left, each architecture's memory at the right."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Footer

from memreplay.engine.events import TestScored
from memreplay.timeline.annotations import Annotations
from memreplay.tui.housekeeping import QuietGarbage
from memreplay.tui.launch import RunHandle
from memreplay.tui.panels.answers import answers_view
from memreplay.tui.panels.conversation import closing_of, header_spans
from memreplay.tui.panels.tests import document_of, first_turn_of, scores_view
from memreplay.tui.requests import RunWanted
from memreplay.tui.screens.playing import PlayingScreen
from memreplay.tui.screens.tests import TestScoresScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.widgets.architectures import Architectures
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.tui.widgets.strip import TimelineStrip

_SECONDS_UNTIL_AT_REST = 1.0
_NOTHING_SAID = "step: a first message"


class ReplayScreen(PlayingScreen):
    """Follows one cursor through a timeline; at the frontier of a live one it has the engine play on."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]

    def __init__(self, source: ReplaySource, seconds_a_turn: float, assemble: Callable[[], RunHandle]) -> None:
        super().__init__(source, seconds_a_turn, assemble)
        self.source = source
        self.architectures = Architectures(self.timeline, source.backends, id="architectures")
        self.strip = TimelineStrip(self.timeline, id="strip")
        self._conversing = self.timeline.conversation.conversing
        self._document = document_of(self.timeline)
        self._garbage = QuietGarbage()

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
        self._garbage.begin()
        self._resting = self.set_interval(_SECONDS_UNTIL_AT_REST, self._at_rest, pause=True)
        if self.player is None:
            self.cursor = min(1, self.frontier)
        self.paint()

    def on_unmount(self) -> None:
        """Let everything be collected again."""
        self._garbage.end()

    def _at_rest(self) -> None:
        """The cursor has not moved for a while."""
        self._resting.pause()
        self._garbage.rest()

    @property
    def annotations(self) -> Annotations:
        """Bookmarks and watches, saved with the recording where that can be."""
        return self.source.annotations

    def paint(self) -> None:
        """Show everything at the cursor."""
        self.paint_header()
        self.strip.move_to(self.cursor, self.frontier)
        self._document.cursor = self.cursor
        self.query_one("#conversation", LinesView).show(self._document, in_view=max(0, self.cursor - 1))
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
        self._resting.reset()
        self.say("")
        self.paint()

    def on_replay_event(self) -> None:
        """The strip tells of it when it is painted next."""
        self.strip.on_replay_event()

    def conversation_closed(self) -> None:
        """Below the last turn stands how it ended."""
        self._document.closed = closing_of(self.timeline)

    def grow_to(self, turns: int) -> None:
        """Show as many."""
        self._document.grow_to(turns)
        if turns:
            self.query_one("#conversation", LinesView).border_subtitle = Content("")

    def paint_progress(self) -> None:
        """Show header, strip and answers."""
        self.paint_header()
        self.strip.move_to(self.cursor, self.frontier)
        self._paint_answers()

    def strip_changed(self) -> None:
        """Something was asked by hand: show it."""
        self.strip.on_replay_event()
        self.paint_progress()

    def marks_changed(self) -> None:
        """Show the bookmarks on the strip."""
        self.timeline.marks.set_bookmarks(bookmark.turn for bookmark in self.annotations.bookmarks())
        self.strip.on_replay_event()
        self.strip.move_to(self.cursor, self.frontier)

    def choose_turns(self, turn_ids: frozenset[str]) -> None:
        """Mark turns as those the user came for."""
        self._document.chosen = turn_ids

    def action_significance(self) -> None:
        """Colour the conversation by significance, or not."""
        self._document.by_significance = not self._document.by_significance
        self.paint()

    # ---- seeking -------------------------------------------------------------------------------------------

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

    def action_run(self) -> None:
        """List every question of the whole run."""
        if self.source.path is None:
            self.notify("A live run is one conversation: r lists all its questions.", markup=False)
        else:
            self.minimize()
            self.post_message(RunWanted(self.source.path))
