"""How the main screens look. After a wanted change: ``pytest tests/tui/test_snapshots.py --snapshot-update``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from app.tui.app import MemreplayApp
from app.tui.launch import Launch
from app.tui.screens.replay import ReplayScreen
from app.tui.widgets.lines_view import LinesView
from tests.tui.conftest import replay_of, until

Compare = Callable[..., bool]
Prepare = Callable[[Pilot[Any]], Awaitable[None]]

SIZES = [(80, 24), (120, 36), (160, 45)]


@pytest.fixture
def recorded(launch: Launch) -> Launch:
    return replace(launch, recording=launch.recordings()[0])


def at_turn(turn: int, *keys: str) -> Prepare:
    """A replay at a turn, and keys pressed there."""

    async def prepare(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        replay_of(pilot).move_to(turn)
        await pilot.press(*keys)
        await pilot.pause()

    return prepare


async def listed(pilot: Pilot[Any]) -> None:
    """The start screen with its lists filled."""
    await until(pilot, lambda: pilot.app.screen.query_one("#datasets", OptionList).option_count == 2)


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: f"{size[0]}x{size[1]}")
def test_start(snap_compare: Compare, launch: Launch, size: tuple[int, int]) -> None:
    assert snap_compare(MemreplayApp(launch), terminal_size=size, run_before=listed)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_replay(snap_compare: Compare, recorded: Launch, size: tuple[int, int]) -> None:
    assert snap_compare(MemreplayApp(recorded), terminal_size=size, run_before=at_turn(6))


def test_replay_with_a_cut_log_and_answers_in_a_light_theme(snap_compare: Compare, recorded: Launch) -> None:
    app = MemreplayApp(recorded)
    app.theme = "textual-light"
    assert snap_compare(app, terminal_size=(160, 45), run_before=at_turn(8))


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: f"{size[0]}x{size[1]}")
def test_results(snap_compare: Compare, recorded: Launch, size: tuple[int, int]) -> None:
    async def attributed(pilot: Pilot[Any]) -> None:
        await at_turn(6, "r")(pilot)
        # Labels come from a thread and make questions longer: what is in view depends on which was first.
        await until(pilot, lambda: "unparsed" in pilot.app.screen.query_one("#questions", LinesView).text)
        await pilot.press("down")

    assert snap_compare(MemreplayApp(recorded), terminal_size=size, run_before=attributed)


def test_help(snap_compare: Compare, recorded: Launch) -> None:
    assert snap_compare(MemreplayApp(recorded), terminal_size=(120, 36), run_before=at_turn(6, "?"))


async def explained(pilot: Pilot[Any]) -> None:
    """Why the first answer that is wrong is what it is, worked out."""
    await at_turn(6, "r", "down", "enter")(pilot)
    await until(pilot, lambda: "the architectures" in pilot.app.screen.query_one("#verdict", LinesView).text)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_why(snap_compare: Compare, recorded: Launch, size: tuple[int, int]) -> None:
    assert snap_compare(MemreplayApp(recorded), terminal_size=size, run_before=explained)


def test_why_in_a_light_theme(snap_compare: Compare, recorded: Launch) -> None:
    app = MemreplayApp(recorded)
    app.theme = "textual-light"
    assert snap_compare(app, terminal_size=(120, 36), run_before=explained)


def test_biography(snap_compare: Compare, recorded: Launch) -> None:
    async def told(pilot: Pilot[Any]) -> None:
        await at_turn(3, "f")(pilot)
        await until(pilot, lambda: "heard" in pilot.app.screen.query_one("#life", LinesView).text)

    assert snap_compare(MemreplayApp(recorded), terminal_size=(120, 36), run_before=told)


@pytest.mark.parametrize("page", [1, 2], ids=["retrieval", "trace"])
def test_other_pages_of_panels(snap_compare: Compare, recorded: Launch, page: int) -> None:
    assert snap_compare(MemreplayApp(recorded), terminal_size=(160, 45), run_before=at_turn(6, *["v"] * page))
