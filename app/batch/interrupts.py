"""Ctrl-C, once and twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def two_step_interrupt(first: Callable[[], None], second: Callable[[], None]) -> Iterator[None]:
    """In the running event loop, call ``first`` at the first Ctrl-C and ``second`` at the next.

    A request to terminate counts as the second. Where the platform has no such handlers, Ctrl-C stays what it
    was: the end at once.
    """
    loop = asyncio.get_running_loop()
    steps = iter((first,))

    def interrupted() -> None:
        next(steps, second)()

    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, interrupted)
        loop.add_signal_handler(signal.SIGTERM, second)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
            loop.remove_signal_handler(signal.SIGTERM)
