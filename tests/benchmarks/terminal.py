"""memreplay in a terminal of its own: keys go in as a keyboard sends them, frames come out as they are painted.

The terminal tells that it paints frames at once (mode 2026), so the program marks where each frame ends.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

from tests.conftest import REPOSITORY

LONGEST = 120.0
QUIET = 0.12
"""Seconds without a frame after which all is painted that a key brought about."""

_ASKED, _ANSWERED = b"\x1b[?2026$p", b"\x1b[?2026;1$y"
_FRAME_ENDS = b"\x1b[?2026l"


class Terminal:
    """The side of a pseudo-terminal on which a person sits."""

    def __init__(self, side: int) -> None:
        self._side = side
        self._tail = b""

    def press(self, keys: str, quiet: float = QUIET) -> float:
        """Milliseconds from the key to the end of the last frame that was painted because of it.

        Afterwards no frame came for ``quiet`` seconds. What takes longer than that to begin needs more of it.
        """
        started = perf_counter()
        os.write(self._side, keys.encode())
        return (self._last_frame(quiet, started) - started) * 1000

    def send(self, keys: str) -> None:
        """Press keys and wait for nothing."""
        os.write(self._side, keys.encode())

    def first_frame(self) -> float:
        """When the first frame was painted."""
        painted = None
        while painted is None:
            painted = self._read(LONGEST)
        return painted

    def settle(self, quiet: float) -> None:
        """Let everything be painted, until nothing comes for so long."""
        self._last_frame(quiet, perf_counter())

    def until(self, wanted: bytes) -> None:
        """Read until this is written."""
        seen = b""
        while wanted not in seen:
            assert self._readable(LONGEST), f"{wanted!r} never came"
            seen += self._taken()

    def _last_frame(self, quiet: float, otherwise: float) -> float:
        painted = otherwise
        while self._readable(quiet):
            ended = self._read(quiet)
            painted = painted if ended is None else ended
        return painted

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._side], [], [], seconds)[0])

    def _read(self, seconds: float) -> float | None:
        """When a frame ended in what is to be read now; None where none did."""
        assert self._readable(seconds), "nothing was painted"
        read = self._tail + self._taken()
        ended = perf_counter() if _FRAME_ENDS in read else None
        # A mark may come in two pieces.
        self._tail = b"" if ended is not None else read[-len(_FRAME_ENDS) :]
        return ended

    def _taken(self) -> bytes:
        read = os.read(self._side, 1 << 16)
        if _ASKED in read:
            os.write(self._side, _ANSWERED)
        return read


@contextmanager
def opened(
    *command: str, size: tuple[int, int] = (160, 45), environment: Mapping[str, str] | None = None
) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    """A Python program in a terminal of so many columns and rows, as long as it is wanted."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=there,
        stdout=there,
        stderr=there,
        cwd=REPOSITORY,
        env={**known, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})},
        start_new_session=True,
    )
    os.close(there)
    try:
        yield Terminal(here), process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(here)
