"""How far the reading of a big file has come: a bar on standard error where that is a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from app.conversations.listener import SILENT, OnBytes, OnOpened

BIG_FILE_BYTES = 8_000_000
"""A smaller file is read before a bar could be seen."""


@contextmanager
def shown_reading() -> Iterator[OnOpened]:
    """A watcher to be given to what reads files; each reading of a big file is a bar, taken away at its end."""
    if not sys.stderr.isatty():
        yield SILENT.opened
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield lambda path: _watch(path, progress)


def _watch(path: Path, progress: Progress) -> OnBytes:
    size = path.stat().st_size
    if size < BIG_FILE_BYTES:
        return SILENT.opened(path)
    task = progress.add_task(f"reading {escape(path.name)}", total=size)

    def advance(count: int) -> None:
        progress.advance(task, count)
        if progress.tasks and all(other.finished for other in progress.tasks if other.id == task):
            progress.update(task, visible=False)

    return advance
