"""The app with a launch of its own, and waiting that asks instead of sleeping."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.tui.app import MemreplayApp
from app.tui.launch import Launch
from app.tui.screens.replay import ReplayScreen
from tests.stubs.live_assembly import StubAssembly, forbidden
from tests.tui.builder import BACKENDS, conversation, record

MOST_PAUSES = 2000
LIVE_BACKENDS = ("hybrid", "rag", "full_context")
ANSWERS = {
    "What is the user's full name?": "Marta Vidal",
    "Which port does the database listen on?": "5432",
}


@dataclass(frozen=True)
class Entry:
    """A dataset that can be picked."""

    id: str
    description: str


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Two datasets, one recording, and no way to a live run."""
    recording = record(tmp_path / "demo.sqlite3")
    entries = (
        Entry("identity-01", "Software engineer in Barcelona, 16 turns"),
        Entry("technical-02", "PostgreSQL set-up, 18 turns"),
    )
    return Launch(
        datasets=lambda: entries,
        load=lambda spec: [conversation(spec)],
        recordings=lambda: [recording],
        assemble=forbidden,
        backends=BACKENDS,
        all_backends=(*BACKENDS, "closed_book", "oracle"),
        model="memreplay/extractive",
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording of the hand-made run."""
    return record(tmp_path / "run.sqlite3")


@pytest.fixture
def recorded(launch: Launch, path: Path) -> Launch:
    """Straight into a recording."""
    return replace(launch, recording=path)


@pytest.fixture
def assembly(tmp_path: Path) -> StubAssembly:
    """A live run over real memories with embedded stores."""
    return StubAssembly(LIVE_BACKENDS, tmp_path / "live.sqlite3", ANSWERS)


@pytest.fixture
def live_launch(launch: Launch, assembly: StubAssembly) -> Launch:
    """Straight into a live replay."""

    def assemble(names: Sequence[str], model: str) -> StubAssembly:
        return assembly

    return replace(launch, conversation=conversation(), assemble=assemble)


async def until(pilot: Pilot[Any], reached: Callable[[], bool]) -> None:
    """Let the app run until something is so."""
    for _ in range(MOST_PAUSES):
        if reached():
            await pilot.pause()
            return
        await pilot.pause(0.005)
    raise AssertionError("the app never got there")


@asynccontextmanager
async def open_app(launch: Launch, size: tuple[int, int] = (160, 45)) -> AsyncIterator[Pilot[None]]:
    """The app on a screen of a size, with nothing to wait for between played turns."""
    async with MemreplayApp(launch, seconds_a_turn=0.001).run_test(size=size) as pilot:
        yield pilot


@asynccontextmanager
async def open_replay(launch: Launch, size: tuple[int, int] = (160, 45)) -> AsyncIterator[Pilot[None]]:
    """The app with a replay on the screen."""
    async with open_app(launch, size) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await pilot.pause()
        yield pilot


def replay_of(pilot: Pilot[Any]) -> ReplayScreen:
    """The replay, wherever it is on the stack."""
    return next(screen for screen in pilot.app.screen_stack if isinstance(screen, ReplayScreen))
