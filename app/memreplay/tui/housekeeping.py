"""The process around the screens: garbage collection, and leaving when the terminal is gone."""

from __future__ import annotations

import gc
import os
import select
import threading
from collections.abc import Callable
from time import sleep
from typing import Final

_OLDEST_GENERATION_THRESHOLD: Final = 500
"""So high that the oldest objects, whose collection is slow, are collected by :meth:`QuietGarbage.rest` alone."""


class QuietGarbage:
    """Garbage collection that does not delay key presses while a replay is open."""

    def __init__(self) -> None:
        self._usual: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """A replay was loaded."""
        if self._usual is None:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], _OLDEST_GENERATION_THRESHOLD)
        self.rest()

    def rest(self) -> None:
        """The user is idle: collect now, and exempt the survivors from later collections."""
        if self._usual is not None:
            gc.collect()
            gc.freeze()

    def end(self) -> None:
        """The replay was closed: collect as usual, including what was exempt."""
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            gc.unfreeze()
            self._usual = None


_POLL_MS: Final = 1000
_SECONDS_TO_LEAVE: Final = 15.0
_GONE: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL if hasattr(select, "poll") else 0


def when_terminal_goes(descriptor: int, leave: Callable[[], None], exit_code: int) -> None:
    """Call ``leave`` from a separate thread when the terminal is gone, and exit if that takes too long.

    This does nothing on systems that cannot detect it.
    """
    if not _GONE:
        return
    terminal = select.poll()
    terminal.register(descriptor, 0)
    if any(event & select.POLLNVAL for _, event in terminal.poll(0)):
        # macOS cannot poll a terminal and reports this for one that exists.
        return

    def wait() -> None:
        while not any(event & _GONE for _, event in terminal.poll(_POLL_MS)):
            pass
        leave()
        sleep(_SECONDS_TO_LEAVE)
        os._exit(exit_code)

    threading.Thread(target=wait, name="terminal", daemon=True).start()
