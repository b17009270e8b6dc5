"""The process around the screens: garbage collection, and noticing that the terminal is gone."""

from __future__ import annotations

import gc
import os
import select
import threading
from collections.abc import Callable
from time import sleep
from typing import Final

_RARELY = 500
"""Times that the middling old objects are looked at before the old ones are: without a rest for that long."""


class QuietGarbage:
    """Python's garbage collection while a replay is on the screen: :meth:`begin`, :meth:`rest`, :meth:`end`."""

    def __init__(self) -> None:
        self._usual: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """A replay was loaded."""
        if self._usual is None:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], _RARELY)
        self.rest()

    def rest(self) -> None:
        """Nobody presses a key just now."""
        if self._usual is not None:
            gc.collect()
            gc.freeze()

    def end(self) -> None:
        """The replay was left: collect as ever, what was set apart as well."""
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            gc.unfreeze()
            self._usual = None


_LOOK_EVERY_MS: Final = 1000
_SECONDS_TO_LEAVE: Final = 15.0
_GONE: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL if hasattr(select, "poll") else 0


def when_terminal_goes(descriptor: int, leave: Callable[[], None], exit_code: int) -> None:
    """Call ``leave`` from a thread of its own when the terminal at a descriptor is gone.

    If the process has not ended some seconds later, it ends then. A system that cannot tell is left as it is.
    """
    if not _GONE:
        return
    terminal = select.poll()
    terminal.register(descriptor, 0)
    if any(event & select.POLLNVAL for _, event in terminal.poll(0)):
        # Not every system can poll a terminal: macOS says this of one that is there.
        return

    def wait() -> None:
        while not any(event & _GONE for _, event in terminal.poll(_LOOK_EVERY_MS)):
            pass
        leave()
        sleep(_SECONDS_TO_LEAVE)
        os._exit(exit_code)

    threading.Thread(target=wait, name="terminal", daemon=True).start()
