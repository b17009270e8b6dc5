"""The screens. Importing this package loads no textual; :func:`run_tui` and :func:`run_review` do."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from memreplay.tui.housekeeping import when_terminal_goes
from memreplay.tui.launch import Launch

if TYPE_CHECKING:
    from memreplay.conversations.drafts import DraftBook
    from memreplay.tui.terminal_app import TerminalApp
    from memreplay.tui.themes import ThemeChoice

_THREADS = "memreplay-tui"
_SECONDS_FOR_IDLE_THREADS = 0.2


def run_tui(launch: Launch) -> None:
    """Open the app and stay in it until the user leaves; by then everything is recorded."""
    from memreplay.tui.app import MemreplayApp

    code = _run(MemreplayApp(launch))
    if code:
        sys.exit(code)


def run_review(book: DraftBook, keys: Mapping[str, str], theme: ThemeChoice) -> int:
    """Show drafted questions until the user leaves; returns the exit code. Every decision is kept at once."""
    from memreplay.tui.review_app import ReviewApp

    return _run(ReviewApp(book, keys, theme))


def _run(app: TerminalApp) -> int:
    """Run an app to its end, and return its exit code.

    A thread may still be loading a model library then. Python would wait for that thread, so the process exits
    without it.
    """
    from memreplay.tui.terminal_app import INTERRUPTED

    executor = ThreadPoolExecutor(thread_name_prefix=_THREADS)
    loop = asyncio.new_event_loop()
    loop.set_default_executor(executor)
    asyncio.set_event_loop(loop)
    _leave_on_signals(loop, app)
    if sys.__stdin__ is not None:
        when_terminal_goes(sys.__stdin__.fileno(), lambda: _leave(loop, app), INTERRUPTED)
    try:
        app.run(loop=loop)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    if _still_busy():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(app.return_code or 0)
    loop.close()
    return app.return_code or 0


def _leave_on_signals(loop: asyncio.AbstractEventLoop, app: TerminalApp) -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        with suppress(AttributeError, NotImplementedError):
            loop.add_signal_handler(getattr(signal, name), app.leave)


def _leave(loop: asyncio.AbstractEventLoop, app: TerminalApp) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(app.leave_without_terminal)


def _still_busy() -> bool:
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(_THREADS)]
    for thread in threads:
        thread.join(_SECONDS_FOR_IDLE_THREADS)
    return any(thread.is_alive() for thread in threads)
