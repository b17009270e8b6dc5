"""Requests to end: Ctrl-C, and the signals by which a system or a terminal asks a program to end.

They take effect also while Python code keeps the event loop busy, where asyncio's own handlers are not called.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from types import FrameType

from memreplay.errors import EXIT_INTERRUPTED

SECONDS_TO_END = 0.8
"""Seconds that a process which has to end at once may take to end in order."""

_SHOW_CURSOR = b"\x1b[?25h"


def requests_to_end() -> list[signal.Signals]:
    """Return the signals by which a system or a terminal asks a program to end; SIGINT comes from the user."""
    names = [name for name in ("SIGTERM", "SIGQUIT", "SIGHUP") if hasattr(signal, name)]
    numbers = [signal.Signals[name] for name in names]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def signal_handlers(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Call these at signals, between two instructions of whatever the main thread is doing."""

    def handle(number: int, frame: FrameType | None) -> None:
        handlers[signal.Signals(number)]()

    before = {number: signal.signal(number, handle) for number in handlers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


class Deadline:
    """Ends the process at a time that a signal handler sets, whatever it is doing then.

    What is committed to a recording is safe. ``farewell`` is printed; the exit code is that of an interrupted run.
    """

    def __init__(self, farewell: str) -> None:
        self._farewell = farewell
        self.is_set = False
        # Its put() is the one way to reach another thread that a signal handler may always use.
        self._times: SimpleQueue[float | None] = SimpleQueue()
        Thread(target=self._wait, name="deadline", daemon=True).start()

    def set(self, seconds: float) -> None:
        """End the process after this time; an earlier deadline stays."""
        self.is_set = True
        self._times.put(monotonic() + seconds)

    def close(self) -> None:
        """Set no deadline any more. One that is set stays: threads may keep the process from ending."""
        if not self.is_set:
            self._times.put(None)

    def _wait(self) -> None:
        deadline = self._times.get()
        while deadline is not None:
            try:
                other = self._times.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                self._end()
            else:
                deadline = deadline if other is None else min(deadline, other)

    def _end(self) -> None:
        shown = _SHOW_CURSOR if sys.stderr.isatty() else b""
        # The main thread may be in the middle of printing: sys.stderr would wait for it.
        os.write(2, shown + f"{self._farewell}\n".encode("utf-8", "backslashreplace"))
        os._exit(EXIT_INTERRUPTED)


@contextmanager
def two_step_interrupt(
    first: Callable[[], None], second: Callable[[], None], farewell: str = "interrupted; what was finished is saved"
) -> Iterator[None]:
    """Call ``first`` at the first Ctrl-C and ``second`` at the next, in the running event loop.

    Other requests to end count as the second: SIGTERM, SIGQUIT, and SIGHUP unless it is ignored (nohup). If the
    process has not ended :data:`SECONDS_TO_END` after the second, it is ended, with ``farewell``.
    """
    loop = asyncio.get_running_loop()
    deadline = Deadline(farewell)
    steps = iter((first,))

    def at_once() -> None:
        deadline.set(SECONDS_TO_END)
        loop.call_soon_threadsafe(second)

    def interrupted() -> None:
        step = next(steps, None)
        if step is None:
            at_once()
        else:
            loop.call_soon_threadsafe(step)

    try:
        with signal_handlers({signal.SIGINT: interrupted} | dict.fromkeys(requests_to_end(), at_once)):
            yield
    finally:
        deadline.close()
