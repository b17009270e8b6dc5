"""Breakpoints: setting them, listing them, and running to where the next one stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from memreplay.debugger.breakpoints import (
    Breakpoint,
    BreakpointError,
    HitSubject,
    KeySubject,
    Subject,
    TextSubject,
    parse_breakpoint,
)
from memreplay.debugger.breakpoints.runner import BreakpointRunner, Stop, written_paths
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.timeline.annotations import SavedBreakpoint
from memreplay.tui.controllers import ReplayHost, save, turns_in_short
from memreplay.tui.controllers.navigation import Navigation
from memreplay.tui.controllers.playback import Playback
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.widgets.architectures import Architectures
from memreplay.views.subjects import DecisionSubject, StoredSubject, TurnSubject, ValueSubject
from memreplay.views.text import one_line

_FORMS = 'empty: where it changes · changed · exists · == "Girona" · contains "…" · rank > 5 · and or not'
_LIST_TITLE = "breakpoints: enter enables or disables one"
_REMOVE = "remove the disabled ones"
_MOST_COUNTED = 100
_MOST_NAMED = 4


def _stops_words(stops: Sequence[int], where: str) -> str:
    """``3 stops: turns 8, 12, 40``."""
    if not stops:
        return f"no stop {where}"
    count = "1 stop" if len(stops) == 1 else f"{len(stops)}{'' if len(stops) < _MOST_COUNTED else '+'} stops"
    return f"{count}: {turns_in_short(stops)}"


def _unknown_words(runner: BreakpointRunner, wanted: Breakpoint, where: str) -> str:
    """``no state has shared_data.city so far, but shared_data["user.city"]``; empty if they have all."""
    said = []
    for place, others in runner.unknown_places(wanted).items():
        named = ", ".join([*map(one_line, others[:_MOST_NAMED]), *["…"] * (len(others) > _MOST_NAMED)])
        said.append(f"no state has {one_line(place)} {where}{f', but {named}' if named else ''}")
    return "; ".join(said)


class Breakpoints:
    """The breakpoints of a conversation. They are saved with its recording."""

    def __init__(
        self,
        source: ReplaySource,
        retrievals: RetrievalIndex,
        playback: Playback,
        navigation: Navigation,
        architectures: Architectures,
        host: ReplayHost,
    ) -> None:
        self._source = source
        self._retrievals = retrievals
        self._playback = playback
        self._navigation = navigation
        self._architectures = architectures
        self._host = host
        self._run([])

    def _run(self, breakpoints: Sequence[Breakpoint]) -> None:
        self._runner = BreakpointRunner(self._source.timeline, self._retrievals, breakpoints)

    # ---- the list ------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load the saved breakpoints; report and skip those that cannot be parsed."""
        breakpoints = []
        for saved in self._source.annotations.breakpoints():
            try:
                breakpoints.append(parse_breakpoint(saved.text, None, saved.backend, enabled=saved.enabled))
            except BreakpointError as error:
                self._host.report(f"{saved.text}: {error}", "warning")
        self._run(breakpoints)

    def _replace(self, breakpoints: Sequence[Breakpoint]) -> None:
        self._run(breakpoints)
        saved = [SavedBreakpoint(text=one.text, backend=one.backend, enabled=one.enabled) for one in breakpoints]
        annotations = self._source.annotations
        save(self._host, lambda: annotations.set_breakpoints(saved))

    def add(self) -> None:
        """Ask for a condition, on the selected line if there is one, and break where it holds."""
        subject, backend = self._selected_subject()
        title = "break on" if subject is None else f"break on {subject}"

        def refusal(text: str) -> str | None:
            try:
                parse_breakpoint(text, subject, backend)
            except BreakpointError as error:
                return str(error)
            return None

        def preview(text: str) -> str:
            try:
                wanted = parse_breakpoint(text, subject, backend)
            except BreakpointError:
                return ""
            runner = BreakpointRunner(self._source.timeline, self._retrievals, [wanted])
            unknown = _unknown_words(runner, wanted, self._where)
            return f"no stop: {unknown}" if unknown else _stops_words(runner.stops(_MOST_COUNTED), self._where)

        def paths() -> list[str]:
            return [] if subject is not None else written_paths(self._source.timeline, backend, self._host.cursor)

        def typed(text: str | None) -> None:
            if text is not None:
                added = parse_breakpoint(text, subject, backend)
                others = [
                    one
                    for one in self._runner.breakpoints
                    if (one.text, one.backend) != (added.text, added.backend)
                ]
                self._replace([*others, added])
                self._say_that_it_is_set(added)

        self._host.open_screen(
            TypingScreen(title, _FORMS, refusal=refusal, preview=preview, completions=paths), typed
        )

    @property
    def _where(self) -> str:
        return "so far" if self._source.handle is not None else "in this recording"

    def _say_that_it_is_set(self, added: Breakpoint) -> None:
        """Name the keys that use it. A path that no state has is a warning: it would never stop anything."""
        unknown = _unknown_words(self._runner, added, self._where)
        if unknown:
            self._host.report(f"{unknown[0].upper()}{unknown[1:]}. The breakpoint is set; B lists it.", "warning")
        else:
            self._host.report("The breakpoint is set: c goes to its next stop, C to the previous one, B lists it.")

    def _selected_subject(self) -> tuple[Subject | None, str | None]:
        """Return what a breakpoint on the selected line is about, and in which architecture."""
        view = self._host.focused_view
        match view.selected if view is not None else None:
            case ValueSubject(backend, key, path):
                return KeySubject(key, path), backend
            case StoredSubject(backend, _, id) | DecisionSubject(backend, _, _, str(id)):
                return HitSubject(id), backend
            case TurnSubject():
                return TextSubject(), None
            case _:
                return None, self._architectures.focused_backend

    def open_list(self) -> None:
        """List the breakpoints. Choosing one enables or disables it; the last entry removes the disabled ones."""
        breakpoints = self._runner.breakpoints
        if not breakpoints:
            self._host.report("No breakpoint yet: b sets one.")
            return
        names = [
            f"[{'x' if one.enabled else ' '}] {one.text}  {one.backend or 'everywhere'}" for one in breakpoints
        ]

        def chosen(place: int | None) -> None:
            if place is None:
                return
            if place == len(breakpoints):
                self._replace([one for one in breakpoints if one.enabled])
                return
            one = breakpoints[place]
            toggled = parse_breakpoint(one.text, None, one.backend, enabled=not one.enabled)
            self._replace([*breakpoints[:place], toggled, *breakpoints[place + 1 :]])

        self._host.open_screen(PickScreen(_LIST_TITLE, [*names, _REMOVE]), chosen)

    # ---- running to a breakpoint ---------------------------------------------------------------------------

    def run_forward(self) -> None:
        """Move to the next stop. If there is none yet, a live run plays until a breakpoint stops it."""
        if self._runner.breakpoints:
            self._once_indexed(self._to_next_stop)
        else:
            self._host.report("No breakpoint to stop at yet: b sets one.")

    def run_backward(self) -> None:
        """Move to the previous stop."""
        self._once_indexed(self._to_previous_stop)

    def _to_next_stop(self) -> None:
        stop = self._runner.next_stop(self._navigation.cursor)
        if stop is not None and stop.turn <= self._playback.frontier:
            self._show(stop)
        elif not self._playback.play_until(self._stopping_at):
            self._host.report("No breakpoint stops after this turn.")

    def _to_previous_stop(self) -> None:
        stop = self._runner.previous_stop(self._navigation.cursor)
        if stop is None:
            self._host.report("No breakpoint stops before this turn.")
        else:
            self._show(stop)

    def _stopping_at(self, position: int) -> Callable[[], None] | None:
        stop = self._runner.stop_at(position)
        return None if stop is None else partial(self._show, stop)

    def _once_indexed(self, move: Callable[[], None]) -> None:
        """Index the retrievals first if a breakpoint needs them: in a thread, as that may take seconds."""
        if not self._runner.must_read:
            move()
            return

        async def index_and_move() -> None:
            await asyncio.to_thread(self._retrievals.catch_up)
            self._host.announce("")
            move()

        self._host.announce("indexing retrievals …")
        self._host.run_worker(index_and_move(), group="breakpoints", exclusive=True)

    def _show(self, stop: Stop) -> None:
        breakpoint, backend = stop.fired[0]
        more = f" (+{len(stop.fired) - 1})" if len(stop.fired) > 1 else ""
        self._navigation.jump(stop.turn, backend, f"stopped: {breakpoint.text} in {backend}{more}")
