"""The replay: one cursor, the conversation at the left, each architecture's memory at the right."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer

from app.conversations.models import Question
from app.replay.events import AnswerScored, ConversationClosed, QuestionAsked
from app.tui.actions import bindings_of
from app.tui.export import export_screen
from app.tui.replay_source import ReplaySource
from app.tui.screens.help import HelpScreen
from app.tui.screens.results import ResultsScreen
from app.tui.text import Span, one_line
from app.tui.views.answers import AnswersTable, answers_view
from app.tui.views.conversation import closing_of
from app.tui.views.header import header_spans
from app.tui.views.tests import document_of, first_turn_of, scores_view
from app.tui.widgets.architectures import Architectures
from app.tui.widgets.bars import Bar
from app.tui.widgets.lines_view import LinesView
from app.tui.widgets.live_player import LivePlayer

_SECONDS_BETWEEN_PAINTS = 0.1


class ReplayScreen(Screen[None]):
    """Follows one cursor through a timeline; at the frontier of a live one it has the engine play on."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("replay")
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]
    cursor: reactive[int] = reactive(0, init=False)

    def __init__(self, source: ReplaySource, seconds_a_turn: float) -> None:
        super().__init__()
        self.source = source
        self.timeline = source.timeline
        self.player = LivePlayer(source) if source.assembly is not None else None
        self.architectures = Architectures(self.timeline, source.backends, id="architectures")
        self._conversing = self.timeline.conversation.conversing
        self._document = document_of(self.timeline)
        self._seconds_a_turn = seconds_a_turn
        self._playing: Timer | None = None
        self._played = 0
        self._following = True
        self._late: Timer | None = None

    # ---- what stands on the screen -------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Header, conversation and answers, architectures, keys."""
        yield Bar(id="header")
        yield Bar(id="trouble")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield LinesView(id="conversation")
                yield LinesView(id="answers")
            yield self.architectures
        if self.player is not None:
            yield self.player
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Begin at the beginning; a recording begins at its first turn, so that there is something to see."""
        conversation = self.query_one("#conversation", LinesView)
        conversation.border_title = Content("conversation")
        self.query_one("#trouble").display = False
        self.query_one("#answers", LinesView).display = False
        self._document.closed = closing_of(self.timeline)
        conversation.show(self._document)
        conversation.focus(scroll_visible=False)
        if self.player is None:
            self.cursor = min(1, self.frontier)
        self.paint()

    @property
    def frontier(self) -> int:
        """The last position that can be looked at without playing on."""
        if self.player is not None and not self.player.run.over:
            return self._played
        return self.timeline.reached

    def paint(self) -> None:
        """Show everything at the cursor."""
        self._paint_header()
        self._document.cursor = self.cursor
        conversation = self.query_one("#conversation", LinesView)
        conversation.relay()
        conversation.bring_into_view(max(0, self.cursor - 1))
        self.architectures.move_to(self.cursor)
        self._paint_answers()

    def _paint_header(self) -> None:
        progress = "▶ playing" if self._playing is not None else ""
        if self.player is not None and not progress:
            progress = self.player.progress
        spans = header_spans(
            self.timeline,
            self.cursor,
            live=self.player is not None,
            progress=progress,
            settings=self.source.settings_in_short,
        )
        self.query_one("#header", Bar).say(*spans)

    def _paint_answers(self) -> None:
        answers = self.query_one("#answers", LinesView)
        asked = any(answer.asked.turn <= self.cursor for answer in self.timeline.answers())
        answers.display = asked or self._conversing
        if answers.display:
            view = (scores_view if self._conversing else answers_view)(self.timeline, self.cursor)
            answers.border_title = Content(view.title)
            answers.show(view.document, in_view=view.in_view)

    def watch_cursor(self) -> None:
        """Every panel follows."""
        self.paint()

    # ---- moving --------------------------------------------------------------------------------------------

    def move_to(self, position: int) -> None:
        """Look at a position; nothing is executed by it."""
        self.cursor = max(0, min(position, self.frontier))
        self._following = self.cursor == self.frontier

    def action_step(self) -> None:
        """One on; at the live frontier the next turn is played."""
        if self.cursor < self.frontier:
            self.move_to(self.cursor + 1)
        elif self.player is not None and not self.player.run.over:
            self._following = True
            self.player.play_to(max(self.player.run.target, self._played) + 1)

    def action_back(self) -> None:
        """One back."""
        self.move_to(self.cursor - 1)

    def action_first(self) -> None:
        """Before the first turn."""
        self.move_to(0)

    def action_last(self) -> None:
        """To the end; what is left of a live run is played, and the questions asked."""
        self.move_to(self.frontier)
        if self.player is not None and not self.player.run.over:
            self.player.play_all()
            self._paint_header()

    def action_next_eventful(self) -> None:
        """To the next turn at which a memory changed."""
        position = self.timeline.next_eventful(self.cursor)
        self.move_to(self.frontier if position is None else position)

    def action_previous_eventful(self) -> None:
        """To the previous turn at which a memory changed."""
        self.move_to(self.timeline.previous_eventful(self.cursor) or 0)

    def action_play(self) -> None:
        """Step by itself, or pause."""
        if self._playing is None:
            self._playing = self.set_interval(self._seconds_a_turn, self._play_on)
            self._play_on()
        else:
            self._pause()
        self._paint_header()

    def _play_on(self) -> None:
        live = self.player is not None and not self.player.run.over
        end = self.timeline.last_turn if live else self.timeline.reached
        if self.cursor >= end and not (live and self._conversing):
            self._pause()
        elif self.player is None or not self.player.busy:
            self.action_step()

    def _pause(self) -> None:
        if self._playing is not None:
            self._playing.stop()
            self._playing = None
        self._paint_header()

    def action_stop(self) -> None:
        """Stop playing and asking."""
        self._pause()
        if self.player is not None:
            self.player.stop()

    @on(LinesView.BlockClicked)
    def _clicked(self, message: LinesView.BlockClicked) -> None:
        if message.view.id == "conversation":
            self.move_to(message.block + 1)
        elif message.view.id == "answers" and self._conversing:
            self.move_to(first_turn_of(self.timeline, message.block))
        elif message.view.id == "answers":
            self.look_at_evidence(self.timeline.conversation.questions[message.block])

    # ---- architectures, results ----------------------------------------------------------------------------

    def action_focus_architecture(self, number: int) -> None:
        """Show an architecture by its 1-based place, and focus it."""
        self.architectures.focus_one(number - 1)

    def action_enlarge(self) -> None:
        """Give the focused panel the whole screen."""
        if self.focused is not None:
            self.maximize(self.focused)

    def action_results(self) -> None:
        """Open the results, as far as there are any."""
        table = AnswersTable(self.timeline, self.timeline.last_turn)
        if self._conversing or not len(table):
            nothing_yet = "No question was asked yet: G plays on to the questions."
            scores = scores_view(self.timeline, self.timeline.reached).title if self._conversing else nothing_yet
            self.notify(scores, markup=False)
            return
        self.app.push_screen(ResultsScreen(self.timeline.conversation, table), self.look_at_evidence)

    def look_at_evidence(self, question: Question | None) -> None:
        """Move to where the answer of a question was said."""
        if question is None:
            return
        known = self.timeline.conversation.turns_by_id
        turns = [known[turn] for turn in question.evidence if turn in known]
        self._document.chosen = frozenset(turn.id for turn in turns)
        if not turns:
            self.notify("No turn is named as the evidence of this question.", markup=False)
            return
        self.move_to(turns[0].number)
        self.paint()

    def action_export(self) -> None:
        """Save the screen as a picture."""
        export_screen(self, f"{self.timeline.conversation.id}-turn-{self.cursor}")

    def action_help(self) -> None:
        """All keys."""
        self.app.push_screen(HelpScreen())

    def action_leave(self) -> None:
        """Back to the start."""
        self.dismiss()

    # ---- what the engine tells -----------------------------------------------------------------------------

    @on(LivePlayer.Happened)
    def _happened(self, message: LivePlayer.Happened) -> None:
        event = message.event
        self.timeline.append(event)
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
        if message.position < self.player.run.target:
            self._catch_up_soon()
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
        if self._following:
            self.cursor = self._played
        self._paint_header()
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
        self._pause()
        trouble = self.query_one("#trouble", Bar)
        trouble.display = True
        trouble.say(Span(f"! {one_line(message.sentence)}", "bad"))
        self._paint_header()
