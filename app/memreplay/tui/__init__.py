"""The screens. Importing this package loads no textual; :func:`run_tui` and :func:`run_review` do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from memreplay.tui.launch import Launch, ThemeChoice

if TYPE_CHECKING:
    from memreplay.conversations.drafts import DraftBook


def run_tui(launch: Launch) -> None:
    """Open the app and stay in it until the user leaves; by then everything is recorded."""
    from memreplay.tui.app import MemreplayApp
    from memreplay.tui.terminal import run

    code = run(MemreplayApp(launch))
    if code:
        sys.exit(code)


def run_review(book: DraftBook, keys: Mapping[str, str], theme: ThemeChoice) -> int:
    """Show drafted questions until the user leaves; returns the exit code. Every decision is kept at once."""
    from memreplay.tui.screens.review import ReviewApp
    from memreplay.tui.terminal import run

    return run(ReviewApp(book, keys, theme))
