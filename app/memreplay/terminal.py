"""Standard output and standard error that a run survives, and that nothing it prints can control.

A reader may go away, a disk may be full, a stream closed from the start; a dataset's id may hold escape sequences.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Any, TextIO, cast

from memreplay.printable import printable, printable_lines


class SurvivingStream:
    """A text stream that discards what can no longer be written. ``lost`` is the error of the first failure."""

    def __init__(self, stream: TextIOWrapper) -> None:
        # Escape characters that the terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")
        self._stream = stream
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        """Write to the stream, or nowhere once it is lost."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._discard(error)
            return len(text)

    def flush(self) -> None:
        """Flush the stream, or discard what it holds."""
        try:
            self._stream.flush()
        except OSError as error:
            self._discard(error)

    def _discard(self, error: OSError) -> None:
        """Send what is buffered, and all that follows, to /dev/null."""
        if self.lost is None:
            self.lost = error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class StandardStream:
    """A surviving stream that escapes whatever would act on a terminal. ``trusted`` writes as it is told."""

    def __init__(self, stream: TextIOWrapper) -> None:
        self.trusted = SurvivingStream(stream)

    def write(self, text: str) -> int:
        """Write the text, printable."""
        self.trusted.write(printable_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line, printable."""
        for line in lines:
            self.write(line)

    @property
    def failure(self) -> OSError | None:
        """Return why output is missing that somebody waits for: a full disk, not a reader that has read enough."""
        lost = self.trusted.lost
        return None if lost is None or lost.errno == errno.EPIPE else lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self.trusted, name)


def protect_standard_streams() -> None:
    """Make standard output and standard error standard streams. Those that a program replaced are left alone."""
    # A file that took the number of a closed standard stream would receive what is printed.
    for number in range(3):
        _open_if_closed(number)
    sys.stdout = _protected(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _protected(sys.stderr, sys.__stderr__, 2)


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _protected(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    if stream is None:
        stream = original = os.fdopen(number, "w", encoding="utf-8", closefd=False)
    if stream is not original or not isinstance(stream, TextIOWrapper):
        return stream
    return cast(TextIO, StandardStream(stream))


def say(sentence: str) -> None:
    """Print progress or a problem on standard error, printable; a sentence may have several lines."""
    sys.stderr.write(printable_lines(sentence) + "\n")
    sys.stderr.flush()


def has_terminal() -> bool:
    """Return whether a person can be asked: standard input and standard error are a terminal."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty())


def confirm(facts: Iterable[str], question: str) -> bool:
    """Print the facts, ask a yes-or-no question on the terminal, and return the answer; no is the default."""
    for fact in facts:
        say(fact)
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
