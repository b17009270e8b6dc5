"""The app with a launch of its own, and waiting that asks instead of sleeping."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from textual._context import active_app
from textual.pilot import Pilot

from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch
from memreplay.tui.screens.replay import ReplayScreen
from tests.stubs.live_assembly import StubAssembly, forbidden
from tests.tui.builder import BACKENDS, conversation, record
from tests.tui.resting import LONGEST, rest, until

__all__ = ["open_app", "open_replay", "replay_of", "until"]

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


@pytest.fixture(autouse=True)
def _every_key_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each key and pause of a pilot, snapshots' included, the app is at rest whatever the machine is at."""

    async def idle(min_sleep: float = 0, max_sleep: float = 0) -> None:
        await rest(active_app.get())

    monkeypatch.setattr("textual.app.wait_for_idle", idle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", idle)


@pytest.fixture(autouse=True)
def _leaving_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine too memories are closed, and not left after the second that a person would wait."""
    monkeypatch.setattr("memreplay.tui.live._LONGEST_WAIT_TO_LEAVE", LONGEST)


@pytest.fixture(autouse=True)
def _counts_wait_for_their_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine more than the time that a person takes may pass between a digit and the key after it."""
    monkeypatch.setattr("memreplay.tui.controllers.COUNT_TIMEOUT_SECONDS", LONGEST)


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
        load=lambda specs, catalog: [conversation(spec) for spec in specs],
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
