"""The app that ``memreplay datasets draft`` opens: drafted questions, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from memreplay.conversations.drafts import DraftBook
from memreplay.tui.screens.review import ReviewScreen
from memreplay.tui.terminal_app import TerminalApp
from memreplay.tui.themes import ThemeChoice


class ReviewApp(TerminalApp):
    """Leaving loses nothing: each decision is in the book's file when the next key is read."""

    def __init__(self, book: DraftBook, keys: Mapping[str, str], theme: ThemeChoice) -> None:
        super().__init__(keys, theme)
        self._book = book

    def on_mount(self) -> None:
        self.use_keys_and_theme()
        self.push_screen(ReviewScreen(self._book))
