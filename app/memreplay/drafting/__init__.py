"""Questions that a model drafts from a chat log, and their review. Importing this package loads no textual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memreplay.tui.launch import ThemeChoice

if TYPE_CHECKING:
    from memreplay.drafting.drafts import DraftBook


def run_review(book: DraftBook, keys: Mapping[str, str], theme: ThemeChoice) -> int:
    """Show drafted questions until the user leaves; return the exit code. Every decision is kept at once."""
    from memreplay.drafting.review import ReviewApp
    from memreplay.tui.terminal import run

    return run(ReviewApp(book, keys, theme))
