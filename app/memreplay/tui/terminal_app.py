"""What every app of memreplay in a terminal has: the user's keys and theme, the palette, how it ends."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme

from memreplay.errors import RecordingError
from memreplay.printable import printable
from memreplay.tui.actions import actions_of, shown_key
from memreplay.tui.keys import keys_of, sentence_on_lost_keys, without_key
from memreplay.tui.themes import FEW_COLOURS, ThemeChoice

INTERRUPTED = 130
_FEW_COLOURS = ("standard", "windows")
"""Rich's names of colour systems with 16 colours."""


class TerminalApp(App[None]):
    """``keys`` maps action ids to comma-separated keys."""

    TITLE = "memreplay"
    CSS_PATH = "memreplay.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", "Quit", show=False, priority=True)]

    def __init__(self, keys: Mapping[str, str], theme: ThemeChoice) -> None:
        super().__init__()
        self._keys = keys
        self._theme_choice = theme

    def use_keys_and_theme(self) -> None:
        """Take over the user's keys and theme, and say which actions lost their key."""
        self.set_keymap(dict(self._keys))
        self._choose_theme()
        if lost := without_key(self._keys):
            self.notify(sentence_on_lost_keys(lost), severity="warning", markup=False, timeout=20)

    @property
    def rebound(self) -> Mapping[str, str]:
        """The user's own keys, by action."""
        return self._keys

    def get_key_display(self, binding: Binding) -> str:
        return binding.key_display or shown_key(binding.key)

    def _choose_theme(self) -> None:
        """The user's theme; in a terminal of 16 colours its own colours, since the nearest ones are mostly grey."""
        theme = self._theme_choice.theme()
        if theme in self.available_themes:
            self.theme = theme
        elif not self.is_headless and self.console.color_system in _FEW_COLOURS:
            self.theme = FEW_COLOURS
        self._theme_to_remember = self.theme
        self.theme_changed_signal.subscribe(self, self._remember_theme)

    def _remember_theme(self, theme: Theme) -> None:
        if theme.name != self._theme_to_remember:
            self._theme_to_remember = theme.name
            self._theme_choice.remember(theme.name)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action of the screen, and the themes."""
        place = getattr(screen, "PLACE", None)
        keys = keys_of(place, self.rebound) if place else {}
        for action in actions_of(place) if place else ():
            if action.is_count:
                continue
            run = partial(screen.run_action, action.call)
            shown = " ".join(map(shown_key, keys[action.id])) or "no key"
            yield SystemCommand(action.title, " · ".join(filter(None, (shown, action.details))), run)
        yield SystemCommand("Theme: change the colours, dark or light", "Remembered", self.action_change_theme)

    def _fatal_error(self) -> None:
        """As Textual's, but without local variables: they may hold a key or what a conversation says."""
        from traceback import format_exception

        from memreplay.llm.secrets import redact_secrets

        self.bell()
        error = self._exception or sys.exc_info()[1]
        if isinstance(error, RecordingError | sqlite3.Error):
            # Damage that shows only while a recording is stepped through.
            said = f"memreplay: {error}"
        else:
            said = "".join(format_exception(error)) if error is not None else "an unknown error"
        self._exit_renderables.append(Text(printable(redact_secrets(said), keep="\n")))
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
        self.exit(return_code=code, message=None if sentence is None else Text(printable(sentence, keep="\n")))

    @work(group="leaving")
    async def leave_without_terminal(self) -> None:
        """Exit without restoring the terminal, which is gone."""
        await self.close_work()
        os._exit(INTERRUPTED)
