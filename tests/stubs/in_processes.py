"""What tests have a worker process do."""

from __future__ import annotations

import os
import threading

LONG = 600.0
"""Seconds; no test waits for it."""


class TwoPartsError(Exception):
    """Can be pickled, and not read back."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first}, {second}")


def fail_in_two_parts() -> None:
    """Raises such an error."""
    raise TwoPartsError("one", "two")


def start_a_thread_that_waits() -> int:
    """As a memory does that waits for a server; returns the process's id."""
    threading.Thread(target=threading.Event().wait, args=(LONG,)).start()
    return os.getpid()
