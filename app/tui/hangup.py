"""Noticing that the terminal has gone away.

Textual does not: its reading thread would go round and round on an end of file, and its writing thread ends on the
first error, so that whoever writes next waits for ever. A signal comes only to those whom the terminal controls.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from time import sleep
from typing import Final

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
