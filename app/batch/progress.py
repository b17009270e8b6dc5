"""How far a batch has come: on a terminal a bar, elsewhere a plain line now and then. Always on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from app.scoring.outcomes import Outcome

_SECONDS_BETWEEN_LINES = 10.0


class BatchProgress(Protocol):
    """What the runner tells as it goes."""

    def ingested(self, conversation: str, backends: int, seconds: float) -> None:
        """A conversation was taken in by so many backends."""
        ...

    def answered(self, backend: str, outcome: Outcome) -> None:
        """A question was asked and scored."""
        ...


class _Tally:
    def __init__(self, total: int) -> None:
        self.total, self.done, self.correct, self.errors = total, 0, 0, 0

    def add(self, outcome: Outcome) -> None:
        self.done += 1
        self.correct += outcome == "correct"
        self.errors += outcome == "error"

    def __str__(self) -> str:
        graded = self.done - self.errors
        return f"{self.correct} of {graded} right" + (f", {self.errors} errors" if self.errors else "")


class PlainProgress:
    """A line every ten seconds, and one a conversation."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._tally, self._stream, self._last = _Tally(total), stream, monotonic()

    def ingested(self, conversation: str, backends: int, seconds: float) -> None:
        """A conversation was taken in by so many backends."""
        print(f"{conversation}: taken in by {backends} backends in {seconds:.1f} s", file=self._stream, flush=True)

    def answered(self, backend: str, outcome: Outcome) -> None:
        """A question was asked and scored."""
        self._tally.add(outcome)
        if monotonic() - self._last >= _SECONDS_BETWEEN_LINES or self._tally.done == self._tally.total:
            self._last = monotonic()
            print(f"asked {self._tally.done}/{self._tally.total}: {self._tally}", file=self._stream, flush=True)


class BarProgress:
    """One bar for all questions."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._tally, self._progress = _Tally(total), progress
        self._task = progress.add_task("asking", total=total, note="")

    def ingested(self, conversation: str, backends: int, seconds: float) -> None:
        """A conversation was taken in by so many backends."""
        self._progress.update(self._task, note=f"{conversation} taken in, {seconds:.1f} s")

    def answered(self, backend: str, outcome: Outcome) -> None:
        """A question was asked and scored."""
        self._tally.add(outcome)
        self._progress.update(self._task, completed=self._tally.done, note=str(self._tally))


@contextmanager
def shown_progress(total: int) -> Iterator[BatchProgress]:
    """Progress as fits where standard error goes."""
    if not sys.stderr.isatty():
        yield PlainProgress(total, sys.stderr)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield BarProgress(total, progress)
