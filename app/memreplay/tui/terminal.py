"""An app of memreplay in its terminal: the user's keys and theme, the palette, the process around it, its end."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import sqlite3
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events, work
from textual.actions import ActionParseResult
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.filter import LineFilter
from textual.screen import Screen
from textual.theme import Theme

from memreplay.errors import RecordingError
from memreplay.printable import printable_lines
from memreplay.tui.actions import ACTIONS, Action, Place, actions_of
from memreplay.tui.contrast import Readable
from memreplay.tui.launch import FEW_COLOURS, FEW_LIGHT_COLOURS, ThemeChoice
from memreplay.views.text import TONES, shown_key

INTERRUPTED = 130
WIDTHS: Final = [(0, "-tiny"), (40, "-slim"), (70, "-narrow")]
"""Classes of screens by their columns: too few for anything, so few that panes stack, and enough for panes."""
_ROUNDS_TO_SETTLE = 2
_STEPS_OF_MESSAGES = 100
"""Turns of the event loop in which a message passes from the innermost widget to the app and back."""
_SECONDS_TO_SETTLE = 0.2
_FEW_COLOURS = ("standard", "windows")
"""Rich's names of colour systems with 16 colours."""


def _is_laid_out(screen: Screen[Any]) -> bool:
    return screen.is_mounted and bool(screen.children)


class TerminalApp(App[None]):
    """``keys`` maps action ids to comma-separated keys."""

    TITLE = "memreplay"
    CSS_PATH = Path(__file__).with_name("memreplay.tcss")
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in TONES}
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", "Quit", show=False, priority=True)]
    HORIZONTAL_BREAKPOINTS = WIDTHS

    def __init__(self, keys: Mapping[str, str], theme: ThemeChoice) -> None:
        super().__init__()
        self._keys = keys
        self._theme_choice = theme
        self._readable = Readable()
        self._typed_ahead: deque[events.Key] | None = None
        """Keys typed while a screen opens, which wait for it; None while nothing opens."""
        self._typed_now: events.Key | None = None
        self._opening = 0

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters, then the one that keeps every theme readable."""
        return [*super().get_line_filters(), self._readable]

    def use_keys_and_theme(self) -> None:
        """Take over the user's keys and theme, and say which actions lost their key."""
        self.set_keymap(dict(self._keys))
        self._choose_theme()
        if lost := without_key(self._keys):
            self.notify(sentence_on_lost_keys(lost), severity="warning", markup=False, timeout=20)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Carry out an action. A key can arrive when its screen is not laid out yet, or not any more: it does
        nothing.
        """
        if self.screen_stack and not _is_laid_out(self.screen):
            return False
        if isinstance(default_namespace, Screen) and not _is_laid_out(default_namespace):
            return False
        done = await super().run_action(action, default_namespace, namespaces)
        if action == "select" and done:
            # What is chosen from a list may open a screen: keys typed after it are for that screen.
            self.hold_keys()
            self.hand_keys_over()
        return done

    # ---- keys typed while a screen opens -------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Let keys wait while a screen opens, except those that give up or quit."""
        waits = isinstance(event, events.Key) and event.key not in ("escape", "ctrl+q")
        if self._typed_ahead is not None and waits and event is not self._typed_now:
            assert isinstance(event, events.Key)
            event.stop()
            self._typed_ahead.append(events.Key(event.key, event.character))
        else:
            await super().on_event(event)

    def begin_opening(self) -> None:
        """Hold the keys until :meth:`end_opening`."""
        self._opening += 1
        self.hold_keys()

    def end_opening(self, *, opened: bool) -> None:
        """Carry out the held keys on the screen that opened; without one they are dropped."""
        self._opening -= 1
        if opened:
            self.hand_keys_over()
        elif not self._opening:
            self._typed_ahead = None

    def hold_keys(self) -> None:
        if self._typed_ahead is None:
            self._typed_ahead = deque()

    @work(group="typed ahead", exclusive=True)
    async def hand_keys_over(self) -> None:
        """Carry out the held keys one after another, each when the screen is there that the one before opened."""
        while self._typed_ahead is not None:
            await self._settle()
            if self._opening:
                return  # the rest waits for that screen
            if not self._typed_ahead:
                self._typed_ahead = None
            else:
                self._typed_now = self._typed_ahead.popleft()
                await super().on_event(self._typed_now)

    async def _settle(self) -> None:
        """Wait until the messages that a key sets off have arrived, and what they changed is laid out."""
        for _ in range(_ROUNDS_TO_SETTLE):
            for _ in range(_STEPS_OF_MESSAGES):
                await asyncio.sleep(0)
            drawn = asyncio.Event()
            self.screen.call_after_refresh(drawn.set)
            with suppress(TimeoutError):  # a screen that closes is not drawn again
                await asyncio.wait_for(drawn.wait(), _SECONDS_TO_SETTLE)

    @property
    def rebound(self) -> Mapping[str, str]:
        """Return the user's own keys, by action."""
        return self._keys

    def get_key_display(self, binding: Binding) -> str:
        return binding.key_display or shown_key(binding.key)

    def _choose_theme(self) -> None:
        """Use the user's theme, or the terminal's own 16 colours: the nearest ones are mostly grey."""
        theme = self._theme_choice.theme()
        chosen = self.available_themes.get(theme or "")
        if not self.is_headless and self.console.color_system in _FEW_COLOURS:
            self.theme = FEW_COLOURS if chosen is None or chosen.dark else FEW_LIGHT_COLOURS
        elif chosen is not None:
            self.theme = chosen.name
        self._theme_to_remember = self.theme
        self.theme_changed_signal.subscribe(self, self._remember_theme)

    def _remember_theme(self, theme: Theme) -> None:
        if theme.name != self._theme_to_remember:
            self._theme_to_remember = theme.name
            self._theme_choice.remember(theme.name)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield every action of the screen, and the themes."""
        place = getattr(screen, "PLACE", None)
        keys = keys_of(place, self.rebound) if place else {}
        for action in actions_of(place) if place else ():
            if action.is_count:
                continue
            run = partial(screen.run_action, action.call)
            shown = " ".join(map(shown_key, keys[action.id])) or "no key"
            yield SystemCommand(action.title, " · ".join(filter(None, (shown, action.details))), run)
        yield SystemCommand("Theme: change the colours, dark or light", "Remembered", self.action_change_theme)

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """Return an SVG picture of the screen, which fetches nothing: Textual's asks a host for its font."""
        return without_remote_fonts(super().export_screenshot(title=title, simplify=simplify))

    def _fatal_error(self) -> None:
        """Report as Textual does, but without local variables: they may hold a key or a conversation's text."""
        from traceback import format_exception

        from memreplay.llm.secrets import redact_secrets

        self.bell()
        error = self._exception or sys.exc_info()[1]
        if isinstance(error, RecordingError | sqlite3.Error):
            # Damage that shows only while a recording is stepped through.
            said = f"memreplay: {error}"
        else:
            said = "".join(format_exception(error)) if error is not None else "an unknown error"
        self._exit_renderables.append(Text(printable_lines(redact_secrets(said))))
        self._close_messages_no_wait()

    async def close_work(self) -> str | None:
        """Save what is under way before the app ends, and return a sentence that says where it is."""
        return None

    async def action_quit(self) -> None:
        """Quit; what is under way is saved."""
        self._exit_saying(await self.close_work(), 0)

    @work(group="leaving")
    async def leave(self) -> None:
        """Quit because of a signal."""
        self._exit_saying(await self.close_work(), INTERRUPTED)

    def _exit_saying(self, sentence: str | None, code: int) -> None:
        self.exit(return_code=code, message=None if sentence is None else Text(printable_lines(sentence)))

    @work(group="leaving")
    async def leave_without_terminal(self) -> None:
        """Exit without restoring the terminal, which is gone."""
        await self.close_work()
        os._exit(INTERRUPTED)


_FONT_FACE = re.compile(r"\s*@font-face\s*\{[^{}]*\}")


def without_remote_fonts(picture: str) -> str:
    """Return an SVG picture without the fonts that it would fetch; the viewer's own fixed-width font is used."""
    return _FONT_FACE.sub("", picture)


Rebound = Mapping[str, str]
"""Keys by the action's id, separated by commas."""


def keys_of(place: Place, rebound: Rebound) -> dict[str, tuple[str, ...]]:
    """Return the keys of a screen's actions, by id. A key that was given to one action is taken from all others."""
    actions = [*actions_of(place)]
    given = {action.id: _split(rebound[action.id]) for action in actions if action.id in rebound}
    taken = {key for keys in given.values() for key in keys}
    owners: dict[str, str] = {}
    for id_, keys in given.items():
        for key in keys:
            owners.setdefault(key, id_)
    return {
        action.id: tuple(key for key in given[action.id] if owners[key] == action.id)
        if action.id in given
        else tuple(key for key in action.keys if key not in taken)
        for action in actions
    }


def without_key(rebound: Rebound) -> list[Action]:
    """Return the actions that the user's own keys leave without any."""
    places = dict.fromkeys(action.place for action in ACTIONS if action.id in rebound)
    keys = {id_: keys for place in places for id_, keys in keys_of(place, rebound).items()}
    return [action for action in ACTIONS if action.id in keys and not keys[action.id] and not action.is_count]


def sentence_on_lost_keys(actions: Sequence[Action]) -> str:
    """Return what to tell the user about actions without a key."""
    names = ", ".join(action.id for action in actions)
    return f"Your [keys] leave no key for {names}. The palette (ctrl+p) still has them." if actions else ""


def _split(keys: str) -> tuple[str, ...]:
    named = (key.strip() for key in keys.split(","))
    return tuple("," if key == "comma" else key for key in named if key)


async def loaded(*modules: str) -> None:
    """Import modules in a thread, after the first paint, so that the screen stays responsive."""
    for name in modules:
        await asyncio.to_thread(import_module, name)


_POLL_MS: Final = 1000
_SECONDS_TO_LEAVE: Final = 15.0
_GONE: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL if hasattr(select, "poll") else 0


def _when_terminal_goes(descriptor: int, leave: Callable[[], None], exit_code: int) -> None:
    """Call ``leave`` from a separate thread when the terminal is gone, and exit if that takes too long.

    This does nothing on systems that cannot detect it.
    """
    if not _GONE:
        return
    terminal = select.poll()
    terminal.register(descriptor, 0)
    if any(event & select.POLLNVAL for _, event in terminal.poll(0)):
        # macOS cannot poll a terminal and reports this for one that exists.
        return

    def wait() -> None:
        while not any(event & _GONE for _, event in terminal.poll(_POLL_MS)):
            pass
        leave()
        sleep(_SECONDS_TO_LEAVE)
        os._exit(exit_code)

    threading.Thread(target=wait, name="terminal", daemon=True).start()


_THREADS: Final = "memreplay-tui"
_SECONDS_FOR_IDLE_THREADS: Final = 0.2


def run(app: TerminalApp) -> int:
    """Run an app to its end, and return its exit code.

    A thread may still be loading a model library then. Python would wait for that thread, so the process exits
    without it.
    """
    executor = ThreadPoolExecutor(thread_name_prefix=_THREADS)
    loop = asyncio.new_event_loop()
    loop.set_default_executor(executor)
    asyncio.set_event_loop(loop)
    _leave_on_signals(loop, app)
    if sys.__stdin__ is not None:
        _when_terminal_goes(sys.__stdin__.fileno(), lambda: _leave(loop, app), INTERRUPTED)
    try:
        app.run(loop=loop)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    if _still_busy():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(app.return_code or 0)
    loop.close()
    return app.return_code or 0


def _leave_on_signals(loop: asyncio.AbstractEventLoop, app: TerminalApp) -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        with suppress(AttributeError, NotImplementedError):
            loop.add_signal_handler(getattr(signal, name), app.leave)


def _leave(loop: asyncio.AbstractEventLoop, app: TerminalApp) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(app.leave_without_terminal)


def _still_busy() -> bool:
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(_THREADS)]
    for thread in threads:
        thread.join(_SECONDS_FOR_IDLE_THREADS)
    return any(thread.is_alive() for thread in threads)
