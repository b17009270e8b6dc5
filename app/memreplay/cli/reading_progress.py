"""Reads datasets that commands are given, with progress bars on standard error if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.conversations.validation_errors import SILENT, OnBytesRead, OnOpened
from memreplay.errors import UsageError
from memreplay.printable import printable
from memreplay.rich_console import terminal_console

BIG_FILE_BYTES = 8_000_000
"""Smaller files are read too fast for a bar."""


@contextmanager
def show_reading_progress() -> Iterator[OnOpened]:
    """Show progress of functions that read files. Each big file gets a bar, which disappears at its end."""
    if not sys.stderr.isatty():
        yield SILENT.on_opened
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # Rich must not capture what is printed to a redirected standard output.
    bars = Progress(
        *columns, console=terminal_console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()
    )
    with bars:
        yield lambda path: _watch(path, bars)


def read_conversations(
    spec: str, conversation_id: str | None, *, several: bool = False, options: LogOptions = DEFAULT_LOG_OPTIONS
) -> list[Conversation]:
    """Return the conversations of a dataset, or the one with an id.

    Raises:
        UsageError: there is none, or more than one where ``several`` is false.
    """
    with show_reading_progress() as opened:
        found = list(load([spec], on_warning=_warn, on_opened=opened, options=options))
    chosen = [one for one in found if conversation_id in (None, one.id)]
    if not chosen or (len(chosen) > 1 and not several):
        raise UsageError(_choose_one(spec, found))
    return chosen


def _warn(sentence: str) -> None:
    print(f"warning: {printable(sentence)}", file=sys.stderr)


def _choose_one(spec: str, found: Sequence[Conversation]) -> str:
    ids = ", ".join(printable(one.id) for one in found[:12]) + (", …" if len(found) > 12 else "")
    return f"{printable(spec)} holds {len(found)} conversations; choose one with --conversation: {ids}"


def _watch(path: Path, bars: Progress) -> OnBytesRead:
    left = path.stat().st_size
    if left < BIG_FILE_BYTES:
        return SILENT.on_opened(path)
    task = bars.add_task(f"reading {escape(path.name)}", total=left)

    def advance(count: int) -> None:
        nonlocal left
        left -= count
        bars.update(task, advance=count, visible=left > 0)

    return advance
