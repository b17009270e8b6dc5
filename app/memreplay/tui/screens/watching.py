"""Running on to where a watch stops, and the list of watches, which is saved with the recording."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable

from textual import work

from memreplay.debugger.breakpoints.parser import BreakpointError, parse_breakpoint
from memreplay.debugger.breakpoints.runner import BreakpointRunner, Stop
from memreplay.debugger.breakpoints.syntax import (
    Breakpoint,
    HitSubject,
    KeySubject,
    Subject,
    TextSubject,
)
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.errors import MemreplayError
from memreplay.timeline.annotations import Annotations, SavedBreakpoint
from memreplay.timeline.timeline import Timeline
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.inspecting import InspectingScreen
from memreplay.tui.subjects import DecisionSubject, StoredSubject, TurnSubject, ValueSubject
from memreplay.tui.widgets.lines_view import LinesView

_WATCH_FORMS = 'empty: where it changes · changed · exists · == "Girona" · contains "…" · rank > 5 · and or not'
_WATCHES_TITLE = "watches: enter switches one off and on"
_REMOVE = "remove those that are off"


class WatchingScreen(InspectingScreen):
    """Breakpoints of a conversation."""

    def __init__(self, timeline: Timeline, seconds_a_turn: float) -> None:
        super().__init__(timeline, seconds_a_turn)
        self.retrievals = RetrievalIndex(timeline)
        self._runner = BreakpointRunner(timeline, self.retrievals, ())

    @property
    @abstractmethod
    def annotations(self) -> Annotations:
        """Where bookmarks and watches are kept."""

    def say_where_it_is_kept(self) -> None:
        """Say so where they are gone with the session."""
        if self.annotations.kept_for_session_only:
            self.notify(self.annotations.kept_for_session_only, markup=False)

    def action_watch(self) -> None:
        """Break where something holds: on what is selected, or on whatever is typed."""
        subject, backend = self._watchable()
        title = "break on" if subject is None else f"break on {subject}"

        def refusal(text: str) -> str | None:
            try:
                parse_breakpoint(text, subject, backend)
            except BreakpointError as error:
                return str(error)
            return None

        def typed(text: str | None) -> None:
            if text is not None:
                self._keep_watches([*self._watches(), parse_breakpoint(text, subject, backend)])

        self.app.push_screen(TypingScreen(title, _WATCH_FORMS, refusal=refusal), typed)

    def _watchable(self) -> tuple[Subject | None, str | None]:
        """What the selected line can be watched as, and in which architecture."""
        view = self.focused
        selected = view.selected if isinstance(view, LinesView) else None
        match selected:
            case ValueSubject(backend, key, path):
                return KeySubject(key, path), backend
            case StoredSubject(backend, _, id) | DecisionSubject(backend, _, _, str(id)):
                return HitSubject(id), backend
            case TurnSubject():
                return TextSubject(), None
            case _:
                return None, self.architectures.focused_backend

    def action_watches(self) -> None:
        """The list of watches: choosing one switches it off or on; an off one is removed by the last entry."""
        watches = self._watches()
        if not watches:
            self.notify("No watch yet: b sets one.", markup=False)
            return
        names = [f"[{'x' if one.enabled else ' '}] {one.text}  {one.backend or 'everywhere'}" for one in watches]

        def chosen(place: int | None) -> None:
            if place is None:
                return
            if place == len(watches):
                self._keep_watches([one for one in watches if one.enabled])
                return
            one = watches[place]
            turned = parse_breakpoint(one.text, None, one.backend, enabled=not one.enabled)
            self._keep_watches([*watches[:place], turned, *watches[place + 1 :]])

        self.app.push_screen(PickScreen(_WATCHES_TITLE, [*names, _REMOVE]), chosen)

    def load_watches(self) -> None:
        """Take up the watches that are saved with the recording; one that cannot be read is left out."""
        found = []
        for saved in self.annotations.breakpoints():
            try:
                found.append(parse_breakpoint(saved.text, None, saved.backend, enabled=saved.enabled))
            except BreakpointError as error:
                self.notify(f"{saved.text}: {error}", severity="warning", markup=False)
        self._runner = BreakpointRunner(self.timeline, self.retrievals, found)

    def _watches(self) -> tuple[Breakpoint, ...]:
        return self._runner.breakpoints

    def _keep_watches(self, watches: list[Breakpoint]) -> None:
        self._runner = BreakpointRunner(self.timeline, self.retrievals, watches)
        saved = [SavedBreakpoint(text=one.text, backend=one.backend, enabled=one.enabled) for one in watches]
        try:
            self.annotations.set_breakpoints(saved)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
        self.say_where_it_is_kept()

    def stop_at(self, position: int) -> Stop | None:
        """What stops at exactly this position."""
        return self._runner.stop_at(position) if self._watches() else None

    def action_continue(self) -> None:
        """On to the next stop."""
        if not self._watches():
            self.notify("No watch to stop at yet: b sets one.", markup=False)
            return
        self._once_read(self._to_next_stop)

    def _to_next_stop(self) -> None:
        stop = self._runner.next_stop(self.cursor)
        if stop is not None and stop.turn <= self.frontier:
            self.stopped(stop)
        else:
            self.no_stop_ahead()

    def no_stop_ahead(self) -> None:
        """No watch stops before the frontier."""
        self.notify("No watch stops after this turn.", markup=False)

    def action_continue_back(self) -> None:
        """Back to the previous stop."""
        self._once_read(self._to_previous_stop)

    def _to_previous_stop(self) -> None:
        stop = self._runner.previous_stop(self.cursor) if self._watches() else None
        if stop is None:
            self.notify("No watch stops before this turn.", markup=False)
        else:
            self.stopped(stop)

    def _once_read(self, go: Callable[[], None]) -> None:
        """Go when what was retrieved is read, as far as a watch asks for it: in a thread, so that no key waits."""
        if self._runner.must_read:
            self.say("reading what was retrieved where …")
            self._read_and(go)
        else:
            go()

    @work(group="watching", exclusive=True)
    async def _read_and(self, go: Callable[[], None]) -> None:
        await asyncio.to_thread(self.retrievals.catch_up)
        self.say("")
        go()

    def stopped(self, stop: Stop) -> None:
        """Show where watches stopped, and which."""
        watch, backend = stop.fired[0]
        more = f" (+{len(stop.fired) - 1})" if len(stop.fired) > 1 else ""
        self.jump(stop.turn, backend, f"stopped: {watch.text} in {backend}{more}")
