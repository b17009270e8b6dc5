"""How far the reading of a big file has come: a bar on standard error where that is a terminal, else nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from memreplay.conversations.validation_errors import SILENT, OnBytesRead, OnOpened

BIG_FILE_BYTES = 8_000_000
"""A smaller file is read before a bar could be seen."""


@contextmanager
def show_reading_progress() -> Iterator[OnOpened]:
    """A watcher to be given to what reads files; each reading of a big file is a bar, taken away at its end."""
    if not sys.stderr.isatty():
        yield SILENT.on_opened
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # Where standard output goes somewhere else, rich must not catch what is printed there.
    bars = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
    with bars:
        yield lambda path: _watch(path, bars)


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
