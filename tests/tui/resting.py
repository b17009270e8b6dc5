"""Waiting for an app by what it has left to do, never by the clock.

Textual's own pilot waits for a moment in which the process uses little of its processor. On a busy machine it uses
little because it was put aside in the middle of its work, and the next assertion comes too early.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from time import monotonic
from typing import Any

from textual.app import App
from textual.css.query import NoMatches
from textual.pilot import Pilot

from memreplay.tui.widgets.lines_view import LinesView

LONGEST = 60.0
"""Seconds after which an app that never rests, or never gets somewhere, is given up."""

_PAUSE = 0.002

_READING = {"attribution", "biography", "divergence", "list", "lists", "reading", "retrievals"}
"""Groups of workers that read what a screen shows. The others wait for a person, a memory or a model."""

LONGEST_READING = 10.0
"""Seconds to wait for these: some tests hold one up on purpose."""


async def rest(app: App[Any]) -> None:
    """Until the app has nothing to do but what a timer waits for, a person must press, or a thread is long at."""
    loop: Any = asyncio.get_running_loop()
    given_up, read_by = monotonic() + LONGEST, monotonic() + LONGEST_READING
    while monotonic() < given_up:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        if monotonic() < read_by and any(work.is_running and work.group in _READING for work in app.workers):
            await asyncio.sleep(_PAUSE)
            continue
        screen = app.screen_stack[-1] if app.screen_stack else None
        if screen is None or not screen._update_timer._active.is_set():
            return
        # What is to be painted is painted at the next frame of sixty a second: this is one.
        screen._on_timer_update()
    raise AssertionError(f"the app did not come to rest in {LONGEST} s")


def _shown(app: App[Any]) -> str:
    """Return the screen on top and the beginnings of what is on it."""
    views = app.screen.query(LinesView)
    notes = [note.message for note in app._notifications]
    workers = [f"{work.name} of {work.group} is {work.state.name}" for work in app.workers]
    return (
        f"{app.screen!r}: {' | '.join(view.text[:400] for view in views)}; notifications: {notes};"
        f" workers: {workers}; threads:\n{_threads()}"
    )


def _threads() -> str:
    """Return what each thread is at, for a wait that was in vain."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame)[-8:])}"
        for ident, frame in sys._current_frames().items()
    )


async def until(pilot: Pilot[Any], reached: Callable[[], bool]) -> None:
    """Let the app run until a condition holds, and then until it rests.

    A widget that the condition asks for may stand on a screen that is not there yet.
    """

    def holds() -> bool:
        try:
            return reached()
        except NoMatches:
            return False

    given_up = monotonic() + LONGEST
    while not holds():
        assert monotonic() < given_up, f"the app never got there; it shows {_shown(pilot.app)}"
        await rest(pilot.app)
        await asyncio.sleep(_PAUSE)
    await pilot.pause()
