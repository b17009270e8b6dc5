"""The app: opens screens, and ends a live run properly when the user leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual import on, work
from textual.actions import ActionParseResult
from textual.dom import DOMNode

from memreplay.conversations.catalog import Catalog, ListedConversation, listed
from memreplay.errors import MemreplayError, UsageError
from memreplay.numbers import counted, whole_share
from memreplay.tui.launch import Launch, RunHandle
from memreplay.tui.requests import (
    AgainstWanted,
    BranchWanted,
    ComparisonWanted,
    ContinueWanted,
    ForkWanted,
    MarkWanted,
    ResultsWanted,
    ShrinkWanted,
    VisitWanted,
    WhatIfWanted,
    WriterWanted,
)
from memreplay.tui.screens.dialogs import ConversationScreen, OpeningScreen, PickScreen, opening
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.terminal import TerminalApp, loaded
from memreplay.tui.tour import Tour
from memreplay.views.text import one_line

if TYPE_CHECKING:
    from memreplay.conversations.models import Conversation
    from memreplay.runtime.shrinking import Case, Tried
    from memreplay.settings import Settings
    from memreplay.timeline.timeline import Timeline
    from memreplay.trust import Consent
    from memreplay.tui.live import LiveRun
    from memreplay.tui.screens.replay import ReplayScreen
    from memreplay.tui.sources import ReplayPlace, ReplaySource
    from memreplay.views.panels.results import ResultsChoice

T = TypeVar("T")

_SECONDS_PER_TURN = 0.8
_SECONDS_OF_A_STEP = 3600.0
_SECONDS_OF_A_RESULT = 20.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_WITHOUT_A_LIST = 0.4
"""A list that is read within this time is shown once, when it is complete."""
_SECONDS_TO_STOP = 2.0
_WHICH = "which conversation?"
_SCREENS = ("memreplay.recording.reader", "memreplay.tui.screens.replay", "memreplay.tui.screens.regression")


class MemreplayApp(TerminalApp):
    """memreplay in a terminal. ``seconds_a_turn`` is how long autoplay stays at a turn."""

    def __init__(self, launch: Launch, seconds_a_turn: float = _SECONDS_PER_TURN) -> None:
        super().__init__(launch.keys, launch.theme)
        self._launch = launch
        self._start = StartScreen(launch)
        self._seconds_per_turn = seconds_a_turn
        self._run: LiveRun | None = None
        self._leaving = asyncio.Lock()
        self._tour = Tour()
        self._by_hand: tuple[ReplaySource, RunHandle] | None = None
        self._allowed: set[Path] = set()
        """Recordings that may run and contact what they name."""
        self._places: dict[tuple[Path, str], ReplayPlace] = {}
        self._choices: dict[tuple[Path, str | None], ResultsChoice] = {}

    def on_mount(self) -> None:
        """Open the start screen, and over it what the command line asked for."""
        self.use_keys_and_theme()
        self.hold_keys()
        if self._launch.recording is not None and self._launch.against is not None:
            self._open_compared(self._launch.recording, self._launch.against)
        elif self._launch.recording is not None:
            self._open_recording(self._launch.recording)
        elif self._launch.conversation is not None:
            launch = self._launch
            self._open_conversation(self._launch.conversation, launch.backends, launch.model, launch.warnings)
        elif self._launch.one_of:
            self._open_launched(self._launch.one_of)
        elif self._launch.to_read:
            self._open_datasets(_WHICH, self._launch.to_read, self._launch.backends, self._launch.model)
        self.push_screen(self._start)
        self.hand_keys_over()
        if self._launch.follow:
            self._follow()

    # ---- the tour ------------------------------------------------------------------------------------------

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Carry out an action; the tour goes on if it was the one it waits for."""
        place = getattr(self.screen, "PLACE", None) if self.screen_stack else None
        done = await super().run_action(action, default_namespace, namespaces)
        if isinstance(action, str) and self._tour.follow(place, action):
            self._show_tour()
        return done

    def action_tour(self) -> None:
        """Start the tour on the demo; if it is under way, end it."""
        if self._tour.step is not None:
            self._tour.end()
            self.clear_notifications()
        elif self._launch.demo is None or not self._launch.demo.is_file():
            self.notify("The demo of the tour is missing: make demo makes it.", severity="warning", markup=False)
        else:
            self._tour.start()
            self._begin_tour(self._launch.demo)

    @work(group="opening", exclusive=True)
    async def _begin_tour(self, demo: Path) -> None:
        """Close what is open, and open the first conversation of the demo."""
        while self.screen is not self._start:
            if self._run is not None:
                self._tour.end()
                self.notify("Leave the live run first (esc), then start the tour.", markup=False)
                return
            self.pop_screen()
        await loaded(*_SCREENS)
        from memreplay.tui.sources import recorded, recorded_conversations

        with self._reporting_errors():
            found = await asyncio.to_thread(recorded_conversations, demo)
            self._open_replay(await asyncio.to_thread(recorded, demo, found[0].id))
            self._show_tour()

    def _show_tour(self) -> None:
        self.clear_notifications()
        words = self._tour.words(self.rebound)
        self.notify(words, title=self._tour.title, timeout=_SECONDS_OF_A_STEP, markup=False)

    # ---- opening -------------------------------------------------------------------------------------------

    @on(StartScreen.RecordingWanted)
    def _recording_wanted(self, message: StartScreen.RecordingWanted) -> None:
        self._open_recording(message.path)

    @on(StartScreen.ReplayWanted)
    def _replay_wanted(self, message: StartScreen.ReplayWanted) -> None:
        title = f"conversations in {message.dataset}"
        self._open_datasets(title, [message.dataset], message.backends, message.model)

    @work(group="opening", exclusive=True)
    async def _open_recording(self, path: Path) -> None:
        with self._reporting_errors():
            with opening(self, path.name):
                await loaded(*_SCREENS)
                from memreplay.tui.sources import recorded, recorded_conversations

                found = await asyncio.to_thread(recorded_conversations, path)
            results = [ListedConversation(f"results of all {len(found)} conversations")] if len(found) > 1 else []
            chosen = await self._choose_conversation(f"in {path.name}", [*results, *found])
            if chosen is None:
                return
            if chosen < len(results):
                self.post_message(ResultsWanted(path))
            else:
                id_ = found[chosen - len(results)].id
                with opening(self, id_):
                    source = await asyncio.to_thread(recorded, path, id_)
                self._open_replay(source)

    @work(group="opening", exclusive=True)
    async def _open_compared(self, left: Path, right: Path) -> None:
        with self._reporting_errors():
            with opening(self, f"{left.name} and {right.name}"):
                await loaded(*_SCREENS)
                from memreplay.tui.screens.regression import RegressionScreen
                from memreplay.tui.screens.tests import Opened, TestsScreen
                from memreplay.tui.sources import recorded_run

                runs = [await asyncio.to_thread(recorded_run, path) for path in (left, right)]
            self._start.say("")
            if all(len(run.table) for run in runs):
                self.push_screen(RegressionScreen((left, right), (runs[0], runs[1])))
                return
            opened = []
            for path, place in ((left, "the first"), (right, "the second")):
                source = await self._choose_recorded(path, f"{place}: conversations in {path.name}")
                if source is None:
                    return
                id_ = source.timeline.conversation.id
                opened.append(Opened(path.name if left != right else id_.partition("@")[2] or id_, source))
            self.push_screen(TestsScreen(*opened))

    async def _choose_recorded(self, path: Path, title: str) -> ReplaySource | None:
        from memreplay.tui.sources import recorded, recorded_conversations

        found = await asyncio.to_thread(recorded_conversations, path)
        chosen = await self._choose_conversation(title, found)
        if chosen is None:
            return None

        def progress(share: float) -> None:
            self.call_from_thread(self._start.say, f"reading {path.name} … {whole_share(share)}")

        return await asyncio.to_thread(recorded, path, found[chosen].id, progress=progress)

    @on(ComparisonWanted)
    def _comparison_wanted(self, message: ComparisonWanted) -> None:
        self._open_compared(message.left, message.right)

    @on(VisitWanted)
    def _visit_wanted(self, message: VisitWanted) -> None:
        """Go on in the open replay of the conversation, if going back can open again what is closed for it."""
        reopen = message.reopen
        below = next((each for each in self._open_replays() if each.timeline is message.source.timeline), None)
        if below is not None and reopen is not None:
            while self.screen is not below:
                self.pop_screen()
            below.call_after_refresh(below.go, message.destination, reopen)
            return
        screen = self._replay(message.source)
        self.push_screen(screen)

        def back() -> None:
            screen.dismiss()
            if reopen is not None:
                self.call_later(reopen)

        screen.call_after_refresh(screen.go, message.destination, back)

    @on(WhatIfWanted)
    @work(group="opening", exclusive=True)
    async def _what_if_wanted(self, message: WhatIfWanted) -> None:
        await loaded("memreplay.runtime.reasking", "memreplay.tui.screens.what_if")
        from memreplay.runtime.reasking import OneAnswer
        from memreplay.runtime.recorded import settings_of_run
        from memreplay.trust import allow
        from memreplay.tui.screens.what_if import WhatIfScreen

        timeline, answer = message.timeline, message.answer
        source = message.source or self._source_of(timeline)
        if source is None:
            return
        path = None if source.handle is not None else source.path
        with self._notifying_errors():
            # What is recorded is shown without asking; the screen asks the user before it asks a model.
            settings = settings_of_run(source.settings, self._launch.settings, source.path or Path(), allow)
            made = partial(OneAnswer, settings, source.run_id or "live", path, timeline, answer)
            agreed = partial(self._settings_of, source)
            self.push_screen(WhatIfScreen(timeline, message.question, answer, made, agreed))

    @on(WriterWanted)
    @work(group="opening", exclusive=True)
    async def _writer_wanted(self, message: WriterWanted) -> None:
        await loaded("memreplay.runtime.rewriting", "memreplay.tui.screens.rewriting")
        from memreplay.runtime.rewriting import WriterAgain, facts_lost_by
        from memreplay.tui.screens.rewriting import RewritingScreen
        from memreplay.views.panels.writer import no_writer_words

        timeline, answer = message.timeline, message.answer
        source = message.source or self._source_of(timeline)
        if source is None:
            return
        with self._notifying_errors():
            facts = await asyncio.to_thread(lambda: [*facts_lost_by(timeline, answer)])
            if not facts:
                lost_none = "No fact of this answer was lost by a writer whose calls are recorded."
                self.notify(no_writer_words(timeline, [answer.asked.backend]) or lost_none, markup=False)
                return
            writer = WriterAgain(await self._settings_of(source), source.run_id or "live")
            self.push_screen(RewritingScreen(timeline, message.question, answer, facts, writer))

    @on(ShrinkWanted)
    @work(group="shrinking", exclusive=True)
    async def _shrink_wanted(self, message: ShrinkWanted) -> None:
        """Shrink a wrong answer in a thread, and save a dataset, a text for an issue and a test."""
        await loaded("memreplay.views.shrunk_case")
        from memreplay.recording.reader import Recording
        from memreplay.runtime.shrinking import Shrinker, case_in, refuse_without_calls
        from memreplay.views.shrunk_case import shrunk_case, text_in

        asked, given = message.answer.asked, self._launch.settings
        source = message.source or next((replay.source for replay in self._open_replays()), None)
        if source is None or source.path is None:
            self.notify("Shrinking needs a recording: leave the live run, and open its file.", markup=False)
            return
        path = source.path

        def found(consent: Consent) -> Case:
            with closing(Recording.open(path)) as recording:
                return case_in(
                    recording, recording.run(source.run_id), asked.question_id, asked.backend, given, consent
                )

        with self._notifying_errors():
            case = await self._agreed(source, found)
            refuse_without_calls(case, 0)
            screen = OpeningScreen(case.question.id, lambda: shrinker.stop(), "shrinking")
            shrinker = Shrinker(
                case,
                report=lambda now: self.call_from_thread(
                    screen.say, f"{now.turns} of {counted(now.first, 'turn')} left · {now.effort}"
                ),
            )

            async def search() -> Tried:
                try:
                    await shrinker.run()
                    return await shrinker.replayed()
                finally:
                    await shrinker.close()

            self.push_screen(screen)
            try:
                last = await asyncio.to_thread(asyncio.run, search())
                shrunk = shrunk_case(shrinker, last)
                test = f"test_{message.name.replace('-', '_')}.py"
                for name in (f"{message.name}.json", f"{message.name}.md", test):
                    target = Path.cwd() / name
                    target.write_text(text_in(target.suffix, shrunk), encoding="utf-8")
            except OSError as error:
                raise UsageError(f"{Path.cwd()}: cannot be written: {error.strerror}") from None
            finally:
                if self.screen is screen:
                    self.pop_screen()
            stopped = ["stopped: it may not be minimal"] if shrinker.ended_early else []
            remarks = "; ".join((shrunk.verdict, shrinker.progress.effort, *stopped, *shrunk.notes))
            self.notify(
                f"{counted(shrinker.progress.first, 'turn')} → {shrinker.progress.turns} ({remarks})."
                f" Saved as {message.name}.json, .md and {test}",
                timeout=_SECONDS_OF_A_RESULT,
                markup=False,
            )

    @on(ForkWanted)
    @work(group="forking", exclusive=True)
    async def _fork_wanted(self, message: ForkWanted) -> None:
        """Play a branch, then show it beside its trunk."""
        await loaded("memreplay.runtime.branching", *_SCREENS)
        from memreplay.trust import allow
        from memreplay.tui.controllers.forking import play_branch

        source, given = message.source, self._launch.settings

        def progress(words: str) -> None:
            for host in self._open_replays():
                if host.source is source:
                    host.announce(words)

        with self._notifying_errors():
            await self._settings_of(source)
            try:
                run_id = await play_branch(message, given, allow, progress)
            finally:
                progress("")
            self._open_branch(source, run_id)

    @on(MarkWanted)
    @work(group="opening", exclusive=True)
    async def _mark_wanted(self, message: MarkWanted) -> None:
        """Note a mark, and show the recording that is made with it, with the explanation of the first memory."""
        source = message.source
        assert source.path is not None
        await loaded("memreplay.capture.marks", *_SCREENS)
        from memreplay.capture.marks import add_mark

        path, id_ = source.path, source.timeline.conversation.id
        with self._notifying_errors():
            await asyncio.to_thread(add_mark, path, id_, message.turn, message.expected, [message.evidence])
            await self._replace(source, partial(_explain_newest_mark, turn=message.turn))

    @work(group="following")
    async def _follow(self) -> None:
        """Look again and again, each time a while after the last look is over."""
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            await self._look_again()

    async def _look_again(self) -> None:
        """Show what the agent did since the last look. At the end the cursor goes along, elsewhere it stays."""
        screen = next((each for each in self._open_replays() if each is self.screen), None)
        if screen is None or screen.source.path is None or not screen.source.is_captured:
            return
        from memreplay.capture.assembling import shows_all

        source, path = screen.source, screen.source.path
        with self._notifying_errors():
            if await asyncio.to_thread(shows_all, path, source.settings) or self.screen is not screen:
                return
            cursor, last = screen.cursor, screen.timeline.last_turn
            await self._replace(
                source, lambda new: new.move_to(cursor if cursor < last else new.timeline.last_turn)
            )

    async def _replace(self, source: ReplaySource, then: Callable[[ReplayScreen], None]) -> None:
        """Show what an agent's recording holds now in the place of its open replay."""
        from memreplay.tui.sources import recorded, recorded_conversations

        assert source.path is not None
        await asyncio.to_thread(recorded_conversations, source.path)
        screen = self._replay(await asyncio.to_thread(recorded, source.path, source.timeline.conversation.id))
        await self.switch_screen(screen)
        screen.call_after_refresh(then, screen)

    @on(BranchWanted)
    def _branch_wanted(self, message: BranchWanted) -> None:
        self._open_branch(message.source, message.run_id)

    @work(group="opening", exclusive=True)
    async def _open_branch(self, source: ReplaySource, run_id: str) -> None:
        """Compare a branch with the same conversation of the run that it departs from."""
        await loaded(*_SCREENS)
        from memreplay.recording.branches import file_of_branches
        from memreplay.tui.screens.regression import RegressionScreen
        from memreplay.tui.sources import recorded_run

        assert source.recorded_in is not None
        path, parent = source.recorded_in
        path = file_of_branches(path, parent)
        id_ = source.timeline.conversation.id
        with self._notifying_errors():
            trunk = await asyncio.to_thread(recorded_run, path, parent, id_)
            branch = await asyncio.to_thread(recorded_run, path, run_id, id_)
            # Another replay of a live trunk would play it too: what is recorded of it so far is shown instead.
            opened = source if source.handle is None else None
            self.push_screen(RegressionScreen((path, path), (trunk, branch), trunk=opened))

    def _open_replays(self) -> Iterator[ReplayScreen]:
        from memreplay.tui.screens.replay import ReplayScreen

        return (screen for screen in self.screen_stack if isinstance(screen, ReplayScreen))

    @on(ContinueWanted)
    @work(group="opening", exclusive=True)
    async def _continue_wanted(self, message: ContinueWanted) -> None:
        """Put a live run of the recording in the place of the recording."""
        source, resume = message.source, self._launch.resume
        assert source.path is not None
        if resume is None:
            return
        await loaded("memreplay.runtime.recorded", *_SCREENS)
        from memreplay.tui.sources import ReplaySource

        with self._notifying_errors():
            path = source.path
            handle = await self._agreed(source, lambda consent: resume(path, source.settings, consent))
            await handle.check()
            live = ReplaySource.live(source.timeline.conversation, handle)
            self.pop_screen()
            self._open_replay(live, play_to=source.timeline.played)

    @on(ResultsWanted)
    @work(group="opening", exclusive=True)
    async def _results_wanted(self, message: ResultsWanted) -> None:
        """Open the results of a run or of a conversation, in the place of another tab of the results."""
        path, id_ = message.path, message.conversation
        source: ReplaySource | None = None
        with self._notifying_errors():
            with opening(self, id_ or path.name):
                await loaded(*_SCREENS)
                from memreplay.tui.screens.results import OfConversation, OfRun, ResultsScreen, ResultsTab
                from memreplay.tui.sources import recorded

                if id_ is not None:
                    open_ones = (each.source for each in self._open_replays() if each.source.path == path)
                    same = (each for each in open_ones if each.timeline.conversation.id == id_)
                    source = next(same, None) or await asyncio.to_thread(recorded, path, id_)
            while isinstance(self.screen, ResultsTab):
                self.pop_screen()
            listed = OfRun(path) if source is None else OfConversation(source)
            self.push_screen(ResultsScreen(listed, self._choice_for(path, id_)))

    @on(AgainstWanted)
    @work(group="opening", exclusive=True)
    async def _against_wanted(self, message: AgainstWanted) -> None:
        """Let the user choose what a run is compared with."""
        from memreplay.tui.controllers.forking import branches_of
        from memreplay.tui.sources import comparable, named_by_content

        source, path = message.source, message.path
        with self._notifying_errors():
            forked = source is not None and source.recorded_in is not None
            with opening(self, "the list of branches and recordings"):
                branches = await asyncio.to_thread(branches_of, source) if source is not None and forked else []
                found = await asyncio.to_thread(self._launch.recordings) if path is not None else []
                others = await asyncio.to_thread(comparable, path, found) if path is not None else []
                names = [f"a branch, after turn {each.turn}: {each.edit}" for each in branches]
                names += await asyncio.to_thread(lambda: [*map(named_by_content, others)])
            apart = len([each for each in found if each != path]) - len(others)
            left_out = f" · left out: {apart:,} without a common conversation" if apart else ""
            if not names:
                self.notify(
                    f"There is nothing to compare with{left_out}. F in the replay makes a branch.", markup=False
                )
                return
            chosen = await self.push_screen_wait(PickScreen(f"compare with{left_out}", names))
            if chosen is None:
                return
            if source is not None and chosen < len(branches):
                self.post_message(BranchWanted(source, branches[chosen].run_id))
            elif path is not None:
                self.post_message(ComparisonWanted(path, others[chosen - len(branches)]))

    @work(group="opening", exclusive=True)
    async def _open_datasets(self, title: str, specs: Sequence[str], backends: Sequence[str], model: str) -> None:
        """Read datasets in a thread. What takes a while is listed as it is found, and can be chosen before the
        end.
        """
        catalog = Catalog()
        with self._reporting_errors():
            reading = asyncio.ensure_future(asyncio.to_thread(catalog.fill, self._launch.load, specs))
            try:
                with opening(self, ", ".join(Path(spec).name for spec in specs)):
                    await asyncio.wait([reading], timeout=_SECONDS_WITHOUT_A_LIST)
                    if reading.done():
                        await reading
                if reading.done():
                    chosen = await self._choose_conversation(title, catalog.entries)
                else:
                    chosen = await self._choose_while_reading(title, catalog, reading)
            finally:
                catalog.stop()
            if chosen is None:
                self._start.say("")
                return
            with opening(self, specs[0] if len(catalog.entries) == 1 else catalog.entries[chosen].id):
                conversation = await asyncio.to_thread(catalog.conversation, chosen)
            self._open_conversation(conversation, backends, model, catalog.warnings)

    async def _choose_while_reading(
        self, title: str, catalog: Catalog, reading: asyncio.Future[None]
    ) -> int | None:
        screen = ConversationScreen(title, catalog.entries, catalog)

        def ended(done: asyncio.Future[None]) -> None:
            if not screen.is_active:
                return
            if done.cancelled() or done.exception() is not None:
                screen.dismiss(None)
            else:
                screen.reading_ended()

        reading.add_done_callback(ended)
        chosen = await self.push_screen_wait(screen)
        catalog.stop()
        # What was left out is known once the reading has ended.
        await asyncio.wait([reading], timeout=_SECONDS_TO_STOP)
        if reading.done() and chosen is None:
            await reading
        return chosen

    @work(group="opening", exclusive=True)
    async def _open_launched(self, conversations: Sequence[Conversation]) -> None:
        chosen = await self._choose_conversation(_WHICH, [listed(each) for each in conversations])
        if chosen is not None:
            launch = self._launch
            self._open_conversation(conversations[chosen], launch.backends, launch.model, launch.warnings)

    async def _choose_conversation(self, title: str, entries: Sequence[ListedConversation]) -> int | None:
        if len(entries) == 1:
            return 0
        return await self.push_screen_wait(ConversationScreen(title, entries))

    @work(group="assembling", exclusive=True)
    async def _open_conversation(
        self, conversation: Conversation, backends: Sequence[str], model: str, left_out: Sequence[str]
    ) -> None:
        if not conversation.can_be_replayed and len(backends) > 1:
            # What a memory makes the agent say decides what it is told next, so each needs its own conversation.
            chosen = await self._choose("which memory should converse?", backends)
            if chosen is None:
                return
            backends = [backends[chosen]]
        with self._reporting_errors():
            with opening(self, conversation.id):
                await loaded("memreplay.runtime.run", *_SCREENS)
                from memreplay.tui.sources import ReplaySource

                handle = self._launch.assemble(backends, model)
            self._open_replay(ReplaySource.live(conversation, handle, left_out))

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Show an error on the start screen; where another one is open, as a notification."""
        try:
            yield
        except MemreplayError as error:
            if self.screen is self._start:
                self._start.say(str(error), trouble=True)
            else:
                self.notify(str(error), severity="error", markup=False)

    @contextmanager
    def _notifying_errors(self) -> Iterator[None]:
        try:
            yield
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)

    async def _choose(self, title: str, names: Sequence[str]) -> int | None:
        if len(names) == 1:
            return 0
        return await self.push_screen_wait(PickScreen(title, names))

    def _open_replay(self, source: ReplaySource, play_to: int = 0) -> None:
        self._start.say("")
        screen = self._replay(source, play_to)
        self._run = screen.player.run if screen.player is not None else None
        self.push_screen(screen, self._replay_closed)

    def _replay(self, source: ReplaySource, play_to: int = 0) -> ReplayScreen:
        from memreplay.tui.screens.replay import ReplayScreen

        if source.path is not None:
            follows = self._launch.follow and source.is_captured
            opens_at = source.timeline.last_turn if follows else 1
            choice = self._choice_for(source.path, source.timeline.conversation.id)
            place = self._place_of(source.path, source.timeline.conversation.id, opens_at)
            source = replace(source, results=choice, place=place, follows=follows)
        return ReplayScreen(source, self._seconds_per_turn, partial(self._handle_for, source), play_to=play_to)

    def _choice_for(self, path: Path, conversation: str | None) -> ResultsChoice:
        """Return what the user chose to see of these results when they were last open."""
        from memreplay.views.panels.results import ResultsChoice

        return self._choices.setdefault((path, conversation), ResultsChoice())

    def _place_of(self, path: Path, conversation: str, otherwise: int) -> ReplayPlace:
        """Return where the user was when this replay was last open; the first time, the turn ``otherwise``."""
        from memreplay.tui.sources import ReplayPlace

        return self._places.setdefault((path, conversation), ReplayPlace(otherwise))

    async def _handle_for(self, source: ReplaySource) -> RunHandle:
        """Return the run that answers a question asked by hand: the live run while it lasts, else one like the
        recorded one, with the model of today.
        """
        from memreplay.paths import new_recording_path
        from memreplay.runtime.recorded import refuse_memories
        from memreplay.runtime.run import Run

        if source.handle is not None and self._run is not None and not self._run.over:
            return source.handle
        if self._by_hand is None or self._by_hand[0] is not source:
            launch, backends, path = self._launch, source.backends, source.path or Path()
            handle: RunHandle
            if source.shows_memory:
                settings = await self._settings_of(source)
                handle = Run(replace(settings, backend=backends, model=(launch.model,)), new_recording_path())
            else:
                await self._agreed(
                    source, lambda consent: refuse_memories(backends, launch.settings, path, consent)
                )
                handle = launch.assemble(backends, launch.model)
            self._by_hand = source, handle
        return self._by_hand[1]

    def _source_of(self, timeline: Timeline) -> ReplaySource | None:
        """Return the source of an open replay; None where none shows this timeline."""
        return next((replay.source for replay in self._open_replays() if replay.timeline is timeline), None)

    async def _settings_of(self, source: ReplaySource) -> Settings:
        """Return the settings for asking a run again, as far as the user agrees to what its file asks for."""
        from memreplay.runtime.recorded import settings_of_run

        given, path = self._launch.settings, source.path or Path()
        return await self._agreed(source, lambda consent: settings_of_run(source.settings, given, path, consent))

    async def _agreed(self, source: ReplaySource, made: Callable[[Consent], T]) -> T:
        """Make something of a recording, asking the user about what its file may not decide by itself.

        What is live was chosen by the user. A file that was allowed once is allowed until the app closes.

        Raises:
            NotAllowedError: the user does not allow it.
        """
        from memreplay.trust import NotAllowedError, allow, in_words, refuse

        if source.handle is not None or self._launch.allows_recordings or source.path in self._allowed:
            return made(allow)
        try:
            return made(refuse)
        except NotAllowedError as error:
            assert source.path is not None
            yes = f"Yes, until memreplay closes. {in_words(error.reaches)}"
            title = f"{one_line(source.path.name)} asks for what your settings do not name; allow it?"
            if await self.push_screen_wait(PickScreen(title, ["No.", yes])) != 1:
                raise
            self._allowed.add(source.path)
            return made(allow)

    # ---- leaving -------------------------------------------------------------------------------------------

    def _replay_closed(self, _: None) -> None:
        self._save_run()

    @work(group="leaving")
    async def _save_run(self) -> None:
        run = await self._interrupt()
        self._start.read_lists()
        if run is not None and run.where_saved:
            self._start.say(run.where_saved)

    async def close_work(self) -> str | None:
        """Record a live run as interrupted."""
        run = await self._interrupt()
        if run is None or run.where_saved is None:
            return None
        return f"{run.where_saved}\nTo continue it, open it with memreplay and press L."

    async def _interrupt(self) -> LiveRun | None:
        """Interrupt the live run and return it, if there is one. Concurrent calls wait until this is done."""
        async with self._leaving:
            run, self._run = self._run, None
            if run is None or run.over:
                return None
            await run.abandon()
            return run


def _explain_newest_mark(screen: ReplayScreen, turn: int) -> None:
    """Explain the newest mark of an agent's recording, for the first of its memories."""
    screen.move_to(turn)
    answers = [*screen.timeline.answers()]
    newest = answers[-1].asked.question_id if answers else ""
    screen.inspection.explain(next(answer for answer in answers if answer.asked.question_id == newest))
