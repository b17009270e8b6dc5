"""From a key to the painted frame, through the real app, at both ends of a conversation of 20,000 turns."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from app.recording.recorder import RunRecorder
from app.tui.app import MemreplayApp
from app.tui.launch import Launch
from app.tui.screens.replay import ReplayScreen
from tests.benchmarks.synthetic import BACKENDS, conversation, events
from tests.stubs.live_assembly import forbidden

TURNS = 20_000
SIZE = (160, 45)
PRESSES = 40
MEDIAN_MS, P95_MS, MOST_RATIO = 33.0, 80.0, 1.5
MOST_TIMES_EMPTY = 2.0
REPOSITORY = Path(__file__).resolve().parent.parent.parent


@dataclass
class Painted:
    """When the last frame was handed to the terminal."""

    at: float = 0.0


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 20,000 turns by three memories."""
    path = tmp_path_factory.mktemp("bench") / "long.sqlite3"
    known = conversation(TURNS)
    recorder = RunRecorder.start(path, {"model": ["stub"], "top_k": 10}, ["synthetic"], "fixed")
    recorder.add_conversation(known)
    for event in events(known):
        recorder.record(event)
    recorder.finish("finished")
    return path


def launch_of(recording: Path | None) -> Launch:
    return Launch(
        datasets=tuple,
        load=lambda spec: (),
        recordings=tuple,
        assemble=forbidden,
        backends=BACKENDS,
        all_backends=BACKENDS,
        model="stub",
        recording=recording,
    )


def watch_paints(app: App[Any]) -> Painted:
    """Note when a frame was painted."""
    painted = Painted()
    display: Callable[..., None] = app._display

    def noted(*args: Any, **kwargs: Any) -> None:
        display(*args, **kwargs)
        painted.at = perf_counter()

    app._display = noted  # type: ignore[method-assign]
    return painted


@asynccontextmanager
async def opened(recording: Path) -> AsyncIterator[tuple[Pilot[None], ReplayScreen, Painted]]:
    app = MemreplayApp(launch_of(recording))
    painted = watch_paints(app)
    async with app.run_test(size=SIZE) as pilot:
        while not isinstance(app.screen, ReplayScreen):
            await pilot.pause(0.05)
        await pilot.pause(0.5)
        yield pilot, app.screen, painted


async def measured(pilot: Pilot[None], painted: Painted, keys: list[str]) -> list[float]:
    """Milliseconds from each key to the last frame painted because of it."""
    took = []
    for key in keys:
        await pilot.pause()
        started = perf_counter()
        await pilot.press(key)
        took.append((painted.at - started) * 1000)
    return took


async def test_a_key_that_moves_the_cursor_is_painted_at_once_wherever_it_stands(recording: Path) -> None:
    async with opened(recording) as (pilot, screen, painted):
        medians = {}
        for name, start in (("near the start", 20), ("near the end", TURNS - 200)):
            screen.move_to(start)
            await pilot.pause(0.3)
            took = await measured(pilot, painted, ["."] * PRESSES + [","] * PRESSES + ["]", "["] * (PRESSES // 4))
            medians[name] = statistics.median(took)
            p95 = sorted(took)[int(0.95 * len(took))]
            print(f"\nkey to frame {name}: median {medians[name]:.1f} ms, 95th percentile {p95:.1f} ms")
            assert medians[name] <= MEDIAN_MS
            assert p95 <= P95_MS
        ratio = medians["near the end"] / medians["near the start"]
        print(f"ratio {ratio:.2f}")
        assert ratio <= MOST_RATIO


EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("")
app = Empty()
"""
WHOLE = """
from app.tui.app import MemreplayApp
from app.tui.launch import Launch
names = ("hybrid", "rag", "full_context")
app = MemreplayApp(Launch(datasets=tuple, load=lambda spec: (), recordings=tuple, assemble=None, backends=names,
                          all_backends=names, model="stub"))
"""
UNTIL_PAINTED = """
import asyncio, os
display = app._display
def painted(*args, **kwargs):
    display(*args, **kwargs)
    os._exit(0)
app._display = painted
async def run():
    async with app.run_test(size=(160, 45)):
        await asyncio.sleep(60)
asyncio.run(run())
"""


def start_to_first_frame(program: str) -> float:
    """Milliseconds from the start of Python to the first frame."""
    started = perf_counter()
    subprocess.run([sys.executable, "-c", program + UNTIL_PAINTED], check=True, cwd=REPOSITORY)
    return (perf_counter() - started) * 1000


def test_the_first_frame_comes_within_twice_the_time_of_an_empty_app() -> None:
    empty = statistics.median(start_to_first_frame(EMPTY) for _ in range(7))
    whole = statistics.median(start_to_first_frame(WHOLE) for _ in range(7))
    print(f"\nstart to first frame: empty app {empty:.0f} ms, memreplay {whole:.0f} ms, ratio {whole / empty:.2f}")
    assert whole <= MOST_TIMES_EMPTY * empty
