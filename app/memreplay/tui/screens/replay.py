"""The replay: one cursor, the conversation at the left, each architecture's memory at the right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, Concatenate, ParamSpec

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.notifications import SeverityLevel
from textual.screen import Screen, ScreenResultType

from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.errors import MemreplayError
from memreplay.scoring.attribution import Attributor
from memreplay.timeline.timeline import Answer
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.controllers.breakpoints import Breakpoints
from memreplay.tui.controllers.forking import Forking
from memreplay.tui.controllers.inspection import Inspection
from memreplay.tui.controllers.navigation import Navigation
from memreplay.tui.controllers.playback import Playback
from memreplay.tui.controllers.questions import Asking, Lifetimes, Marking
from memreplay.tui.controllers.search import Bookmarks, Search
from memreplay.tui.launch import RunHandle
from memreplay.tui.requests import ContinueWanted, Destination, WriterWanted
from memreplay.tui.screens import KeyBar, PlaceScreen
from memreplay.tui.screens.dialogs import PickScreen, TextScreen
from memreplay.tui.screens.help import legend_lines
from memreplay.tui.sources import ReplaySource, commands_of
from memreplay.tui.widgets.architectures import Architectures
from memreplay.tui.widgets.conversation import AnswersView, ConversationView
from memreplay.tui.widgets.lines_view import Bar, LinesView, NoteBar
from memreplay.tui.widgets.strip import TimelineStrip
from memreplay.tui.widgets.workers import HandAsker, Happened, LivePlayer
from memreplay.views.panels import MARKED, DiffBase
from memreplay.views.panels.conversation import header_spans
from memreplay.views.panels.writer import no_writer_words
from memreplay.views.subjects import TurnSubject
from memreplay.views.text import line

P = ParamSpec("P")


def _calls(method_of: Callable[[ReplayScreen], Callable[P, None]]) -> Callable[Concatenate[ReplayScreen, P], None]:
    """Return an action that a controller carries out."""

    def action(screen: ReplayScreen, /, *args: P.args, **kwargs: P.kwargs) -> None:
        method_of(screen)(*args, **kwargs)

    return action


class ReplayScreen(PlaceScreen[None]):
    """Lays out the widgets of a replay, and connects keys, clicks and the engine's messages to its controllers.

    ``assemble`` builds the run that answers questions asked by hand, when the first one is asked. A live run plays
    to the position ``play_to`` at once.
    """

    PLACE: ClassVar[Place] = "replay"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]

    def __init__(
        self,
        source: ReplaySource,
        seconds_per_turn: float,
        assemble: Callable[[], Awaitable[RunHandle]],
        *,
        play_to: int = 0,
    ) -> None:
        super().__init__()
        self.source = source
        self.timeline = timeline = source.timeline
        self.player = LivePlayer(source, play_to) if source.handle is not None else None
        self._asker = HandAsker(timeline.conversation, assemble, self.player.emit if self.player else None)
        self.strip = TimelineStrip(timeline, id="strip")
        self.conversation = ConversationView(timeline, live=self.player is not None, id="conversation")
        self.answers = AnswersView(timeline, id="answers")
        self.architectures = Architectures(timeline, source.backends, id="architectures")

        retrievals = RetrievalIndex(timeline)
        self.playback = Playback(timeline, self.player, seconds_per_turn, self)
        self.navigation = Navigation(timeline, self.playback, self.architectures, self)
        self.inspection = Inspection(
            source, retrievals, self.navigation, self.conversation, self.architectures, self
        )
        self.breakpoints = Breakpoints(source, retrievals, self.playback, self.navigation, self.architectures, self)
        self.search = Search(timeline, self.navigation, self.conversation, self.answers, self.architectures, self)
        self.bookmarks = Bookmarks(source, self.navigation, self.strip, self)
        self.asking = Asking(timeline, source.backends, self._asker, self.inspection.explain, source.settings, self)
        self.marking = Marking(source, self)
        self.forking = Forking(source, self)
        self.lifetimes = Lifetimes(source, self.strip, self)

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield NoteBar("! ", "bad", "bad", id="trouble")
        yield self.strip
        yield NoteBar("↳ ", "accent", "plain", id="found")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self.conversation
                yield self.answers
            yield self.architectures
        if self.player is not None:
            yield self.player
        yield self._asker
        yield KeyBar()

    def on_mount(self) -> None:
        """Start before the first turn; a recording starts at it, so that there is something to see."""
        self.architectures.display = self.source.shows_memory
        self.set_class(not self.source.shows_memory, "-without-memory")
        self.bookmarks.show()
        self.breakpoints.load()
        self.conversation.focus(scroll_visible=False)
        if self.player is None:
            self.strip.show_lifetimes(self.source.place.lives)
            self.bookmarks.open(self.source.place.turn)
        if self.source.not_shown:
            self.report(self.source.not_shown, "warning")
        self.paint()

    # ---- the cursor ----------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """Return the position that every panel shows: 0 before the first turn, then the turn's number."""
        return self.navigation.cursor

    @property
    def frontier(self) -> int:
        return self.playback.frontier

    @property
    def base(self) -> DiffBase:
        return self.inspection.base

    def move_to(self, position: int) -> None:
        self.navigation.move_to(position)

    def go(self, destination: Destination | None, reopen: Callable[[], None] | None = None) -> None:
        """Go where another screen sends the user. Going back from there calls ``reopen``."""
        self.inspection.go(destination, reopen)

    def cursor_moved(self) -> None:
        self.source.place.turn = self.cursor
        self.announce("")
        self.paint()

    # ---- painting ------------------------------------------------------------------------------------------

    def paint(self) -> None:
        self.conversation.move_to(self.cursor, self.frontier)
        self.architectures.move_to(self.cursor, self.base)
        self.paint_progress()

    def paint_progress(self) -> None:
        self.paint_header()
        stopped_at = self.source.stopped_at
        self.strip.move_to(self.cursor, self.frontier if stopped_at is None else stopped_at)
        self.conversation.grow_to(self.frontier)
        self.answers.move_to(self.cursor)

    def paint_header(self) -> None:
        progress = self.playback.autoplay_label or self.asking.progress
        if self.source.stopped_at is not None and not progress:
            progress = f"interrupted at turn {self.source.stopped_at} · {self.source.how_it_continues}"
        if self.player is not None and not progress:
            progress = self.player.progress
        spans = header_spans(
            self.timeline,
            self.cursor,
            mode=self.source.mode,
            progress="  ".join(part for part in (progress, *self._modes, self.base.words) if part),
            settings=self.source.settings_in_short,
        )
        self.query_one("#header", Bar).say(*spans)

    @property
    def _modes(self) -> list[str]:
        """Return what changes how keys act or how the screen looks."""
        count = self.navigation.count_shown
        return [
            f"count {count}" if count else "",
            "by significance (s)" if self.conversation.by_significance else "",
        ]

    def announce(self, note: str) -> None:
        self.query_one("#found", NoteBar).set(note)

    def show_problem(self, sentence: str) -> None:
        self.query_one("#trouble", NoteBar).set(sentence)

    def report(self, sentence: str, severity: SeverityLevel = "information") -> None:
        self.notify(sentence, severity=severity, markup=False)

    def open_screen(
        self, screen: Screen[ScreenResultType], then: Callable[[ScreenResultType | None], None] | None = None
    ) -> None:
        self.app.push_screen(screen, then)

    @property
    def focused_view(self) -> LinesView | None:
        return self.focused if isinstance(self.focused, LinesView) else None

    # ---- actions -------------------------------------------------------------------------------------------

    action_digit = _calls(lambda screen: screen.navigation.digit)
    action_step = _calls(lambda screen: screen.navigation.step)
    action_back = _calls(lambda screen: screen.navigation.back)
    action_first = _calls(lambda screen: screen.navigation.first)
    action_last = _calls(lambda screen: screen.navigation.last)
    action_next_eventful = _calls(lambda screen: screen.navigation.next_eventful)
    action_previous_eventful = _calls(lambda screen: screen.navigation.previous_eventful)
    action_next_session = _calls(lambda screen: screen.navigation.next_session)
    action_previous_session = _calls(lambda screen: screen.navigation.previous_session)
    action_go_to = _calls(lambda screen: screen.navigation.go_to)
    action_return = _calls(lambda screen: screen.navigation.jump_back)
    action_play = _calls(lambda screen: screen.playback.autoplay)
    action_write = _calls(lambda screen: screen.inspection.follow_selected)
    action_biography = _calls(lambda screen: screen.inspection.show_biography)
    action_compare = _calls(lambda screen: screen.inspection.compare)
    action_beside = _calls(lambda screen: screen.inspection.show_side_by_side)
    action_browser = _calls(lambda screen: screen.inspection.browse)
    action_results = _calls(lambda screen: screen.inspection.show_results)
    action_run = _calls(lambda screen: screen.inspection.show_run)
    action_next_page = _calls(lambda screen: screen.inspection.next_page)
    action_watch = _calls(lambda screen: screen.breakpoints.add)
    action_watches = _calls(lambda screen: screen.breakpoints.open_list)
    action_continue = _calls(lambda screen: screen.breakpoints.run_forward)
    action_continue_back = _calls(lambda screen: screen.breakpoints.run_backward)
    action_search = _calls(lambda screen: screen.search.open)
    action_next_match = _calls(lambda screen: screen.search.next_match)
    action_previous_match = _calls(lambda screen: screen.search.previous_match)
    action_bookmark = _calls(lambda screen: screen.bookmarks.edit)
    action_bookmarks = _calls(lambda screen: screen.bookmarks.open_list)
    action_ask = _calls(lambda screen: screen.marking.mark if screen.source.is_captured else screen.asking.ask)
    action_fork = _calls(lambda screen: screen.forking.fork)
    action_lifetimes = _calls(lambda screen: screen.lifetimes.choose)

    def action_stop(self) -> None:
        self._asker.stop()
        self.playback.stop()

    def action_writer(self) -> None:
        """Ask the writer again about a fact that it lost here, and that an answer lacked."""
        self.run_worker(self._find_lost_fact(), group="writer", exclusive=True)

    async def _find_lost_fact(self) -> None:
        here, backend = self.cursor, self.architectures.focused_backend
        backends = self.timeline.backends if backend is None else (backend,)
        if problem := no_writer_words(self.timeline, backends):
            self.report(problem)
            return

        def find() -> Answer | None:
            from memreplay.runtime.changes import is_wrong
            from memreplay.runtime.rewriting import facts_lost_by

            attributor = Attributor(self.timeline)
            for answer in [*self.timeline.answers()]:
                if answer.asked.backend in backends and is_wrong(answer):
                    facts = facts_lost_by(self.timeline, answer, attributor)
                    if any(fact.finding.at == here for fact in facts):
                        return answer
            return None

        answer = await asyncio.to_thread(find)
        question = self.timeline.question(answer.asked.question_id) if answer is not None else None
        if answer is None or question is None:
            self.report("No answer went wrong by what the writer lost at this turn.")
        else:
            self.post_message(WriterWanted(self.timeline, question, answer, None))

    def action_significance(self) -> None:
        self.conversation.toggle_significance()
        self.paint()

    def action_enlarge(self) -> None:
        if self.focused is not None:
            self.maximize(self.focused)

    def watch_maximized(self) -> None:
        """Show the texts of an enlarged panel in full."""
        self.call_after_refresh(self.paint)

    @property
    def picture_name(self) -> str:
        return f"{self.timeline.conversation.id}-turn-{self.cursor}"

    def action_go_live(self) -> None:
        """Continue an interrupted recording where it stopped."""
        if self.source.handle is not None:
            self.report("This run is live already: space plays the next turn.")
        elif not self.source.shows_memory:
            self.report("This run was imported from another program, which alone can continue it.")
        elif self.source.path is None or not self.source.is_unfinished:
            asks = " a asks it a question." if self.timeline.conversation.can_be_replayed else ""
            self.report(f"This recording is finished: there is nothing left to play.{asks}")
        else:
            self.post_message(ContinueWanted(self.source))

    def _close_innermost(self) -> bool:
        """Close what was opened last on this screen: a count, search marks, bars, a diff. False if nothing is."""
        if self.navigation.drop_count() or self.search.clear():
            self.announce("")
        elif self.strip.lives:
            self.strip.show_lifetimes({})
            self.source.place.lives = {}
        elif self.base != MARKED:
            self.inspection.base = MARKED
        elif self.navigation.came_from_a_screen:
            self.navigation.jump_back()
        else:
            return False
        self.paint()
        return True

    def action_leave(self) -> None:
        """Close the innermost thing, then leave a recording at once; ask first while a run is live."""
        if self._close_innermost():
            return
        if self.player is None or self.player.run.over:
            self.dismiss()
            return
        stay = "stay"
        leave = f"leave: interrupted at {self.player.run.position} of {self.timeline.last_turn}, L continues it"

        def chosen(index: int | None) -> None:
            if index == 1:
                self.dismiss()

        self.open_screen(PickScreen("leave this live run?", [stay, leave]), chosen)

    def action_legend(self) -> None:
        """Explain the signs on the screen, and the channels that each memory searches through."""
        self.open_screen(TextScreen("legend", legend_lines(self.timeline, self.source.all_not_shown)))

    def action_headless(self) -> None:
        """Show the commands that repeat this run without a screen."""
        if not self.source.shows_memory:
            self.report("This run was imported from another program: no command of memreplay repeats it.")
            return
        if self.source.is_captured:
            self.report("This is the recording of a running agent: no command of memreplay repeats it.")
            return
        try:
            commands = commands_of(self.source)
        except MemreplayError as error:
            self.report(str(error), "error")
            return
        self.app.copy_to_clipboard("\n".join(commands))
        self.open_screen(
            TextScreen("the same run without a screen (copied to the clipboard)", list(map(line, commands)))
        )

    # ---- clicks --------------------------------------------------------------------------------------------

    @on(LinesView.BlockClicked)
    def _clicked(self, message: LinesView.BlockClicked) -> None:
        if message.view is self.conversation:
            self.move_to(message.block + 1)
        elif message.view is self.answers:
            turn = self.answers.first_turn_of(message.block)
            if turn is not None:
                self.move_to(turn)

    @on(LinesView.Followed)
    def _followed(self, message: LinesView.Followed) -> None:
        if message.view is self.conversation and isinstance(message.subject, TurnSubject):
            self.navigation.jump(self.timeline.conversation.turns_by_id[message.subject.turn_id].number)
        else:
            self.inspection.follow(message.subject)

    @on(TimelineStrip.Sought)
    def _sought(self, message: TimelineStrip.Sought) -> None:
        self.move_to(message.position)

    # ---- the engine's messages -----------------------------------------------------------------------------

    @on(Happened)
    def _happened(self, message: Happened) -> None:
        event = message.event
        self.timeline.append(event)
        self.strip.refresh_marks()
        self.conversation.on_replay_event(event)
        self.answers.on_replay_event(event)
        self.search.on_replay_event()
        self.playback.on_replay_event(event)

    @on(LivePlayer.Reached)
    def _reached(self, message: LivePlayer.Reached) -> None:
        self.playback.on_turn_played(message.position)

    @on(LivePlayer.Rested)
    def _rested(self, message: LivePlayer.Rested) -> None:
        self.playback.on_engine_idle(message.position)
        if message.completed:
            self.paint()
            self.inspection.show_results()

    @on(LivePlayer.Failed)
    def _failed(self, message: LivePlayer.Failed) -> None:
        self.playback.on_failure(message.sentence)

    @on(HandAsker.Progressed)
    def _asking_progressed(self, message: HandAsker.Progressed) -> None:
        self.asking.on_progress(message.words)

    @on(HandAsker.Answered)
    def _answered(self, message: HandAsker.Answered) -> None:
        self.asking.on_answered(message.position, message.question)

    @on(HandAsker.Failed)
    def _asking_failed(self, message: HandAsker.Failed) -> None:
        self.report(message.sentence, "error")
