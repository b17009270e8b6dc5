"""An asciicast of a replay: the real screen, stepped from turn to turn, as a terminal would receive it.

The format is asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/). Times are made, not measured, so that
a cast does not depend on how fast the machine is: a turn takes :data:`SECONDS_PER_TURN`, a note longer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from textual.drivers.headless_driver import HeadlessDriver

from memreplay.timeline.annotations import Bookmark
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch, RunHandle
from memreplay.tui.requests import Position, VisitWanted
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.sources import recorded

SECONDS_PER_TURN = 1.0
SECONDS_PER_NOTE = 4.0
SIZE = (120, 36)
"""Columns and rows."""

_OPENING = "\x1b[?1049h\x1b[?25l\x1b[2J"
_CLOSING = "\x1b[?25h\x1b[?1049l"
_QUIET_SECONDS = 0.05
_MOST_WAITS = 10_000


class _CapturingDriver(HeadlessDriver):
    """Keeps what the app writes to its terminal."""

    written: list[str]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.written = []

    @property
    def is_headless(self) -> bool:
        """False: the app draws."""
        return False

    def write(self, data: str) -> None:
        self.written.append(data)

    def take(self) -> str:
        """Return what was written since the last call."""
        text = "".join(self.written)
        self.written.clear()
        return text


@dataclass
class _Cast:
    """The events of a cast; each is a time in seconds, a code and a text."""

    title: str
    events: list[tuple[float, str, str]] = field(default_factory=list)
    now: float = 0.0

    def add(self, text: str, notes: Sequence[Bookmark]) -> None:
        """Add a frame, held for as long as its notes take to read."""
        self.events.append((self.now, "o", text))
        for note in notes:
            self.events.append((self.now, "m", note.note or note.mark))
        self.now += SECONDS_PER_NOTE if notes else SECONDS_PER_TURN

    def text(self) -> str:
        width, height = SIZE
        header = {
            "version": 2,
            "width": width,
            "height": height,
            "title": self.title,
            "env": {"TERM": "xterm-256color"},
        }
        events = [[round(at, 3), code, text] for at, code, text in (*self.events, (self.now, "o", _CLOSING))]
        return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in (header, *events))


def cast_of(path: Path, run_id: str, conversation_id: str, first: int, last: int) -> str:
    """Return the cast of a recorded conversation from one position to another, with its bookmarks as markers.

    Raises:
        RecordingError: the recording cannot be read.
    """
    return asyncio.run(_recorded_cast(path, run_id, conversation_id, first, last))


async def _recorded_cast(path: Path, run_id: str, conversation_id: str, first: int, last: int) -> str:
    source = recorded(path, conversation_id, run_id)
    notes = source.annotations.bookmarks()
    cast = _Cast(f"memreplay: {conversation_id}")
    app = MemreplayApp(_nothing_to_choose())
    app.driver_class = _CapturingDriver
    # The colours are those of the app, not those of the terminal that happens to make the cast.
    app.console = Console(file=StringIO(), color_system="truecolor", force_terminal=True, legacy_windows=False)
    async with app.run_test(headless=False, size=SIZE) as pilot:
        app.post_message(VisitWanted(source, Position(first, None)))
        screen = await _replay_of(app)
        driver = app._driver
        assert isinstance(driver, _CapturingDriver)
        screen.move_to(first)
        await pilot.pause()
        await _settled(screen, driver)
        # What was drawn until here began with another screen: the first frame is this one, whole.
        driver.take()
        app._display(screen, screen._compositor.render_update(full=True))
        for position in range(first, last + 1):
            screen.move_to(position)
            await pilot.pause()
            await _settled(screen, driver)
            opening = _OPENING if position == first else ""
            cast.add(opening + driver.take(), [note for note in notes if note.turn == position])
    return cast.text()


async def _replay_of(app: MemreplayApp) -> ReplayScreen:
    """Return the replay, once it is on the screen."""
    for _ in range(_MOST_WAITS):
        if isinstance(app.screen, ReplayScreen) and app.screen.is_mounted:
            return app.screen
        await asyncio.sleep(_QUIET_SECONDS)
    raise TimeoutError("the replay did not open")


async def _settled(screen: ReplayScreen, driver: _CapturingDriver) -> None:
    """Wait until the screen has drawn what changed, its workers are done, and it draws nothing more."""
    drawn = asyncio.Event()
    screen.call_after_refresh(drawn.set)
    await drawn.wait()
    await screen.workers.wait_for_complete()
    seen = -1
    for _ in range(_MOST_WAITS):
        if len(driver.written) == seen:
            return
        seen = len(driver.written)
        await asyncio.sleep(_QUIET_SECONDS)
    raise TimeoutError("the screen keeps changing")


def _nothing_to_choose() -> Launch:
    def nothing_live(backends: Sequence[str], model: str) -> RunHandle:
        raise AssertionError("a recording is replayed; nothing runs")

    return Launch(
        datasets=list,
        load=lambda specs, catalog: [],
        recordings=list,
        assemble=nothing_live,
        backends=(),
        all_backends=(),
        model="",
    )
