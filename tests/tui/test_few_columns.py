"""On a terminal of few columns panes stack; on one of very few a sentence says so."""

from __future__ import annotations

import pytest
from textual.widgets import Static

from memreplay.tui.launch import Launch
from tests.tui.conftest import open_app, open_replay, replay_of, until


async def test_below_70_columns_the_memories_stand_below_the_conversation(recorded: Launch) -> None:
    async with open_replay(recorded, (69, 30)) as pilot:
        left, right = replay_of(pilot).query_one("#left").region, replay_of(pilot).architectures.region
        assert left.width == right.width == 69
        assert left.bottom <= right.y
        await pilot.resize_terminal(70, 30)
        screen = replay_of(pilot)
        await until(pilot, lambda: screen.query_one("#left").region.right <= screen.architectures.region.x)


@pytest.mark.parametrize("columns", [12, 39])
async def test_below_40_columns_there_is_one_sentence(recorded: Launch, columns: int) -> None:
    async with open_replay(recorded, (columns, 12)) as pilot:
        screen = replay_of(pilot)
        shown = [each.id for each in screen.query("*") if each.region and each.region.area and each.display]
        assert "too-narrow" in shown
        assert not {"header", "conversation", "architectures"} & set(shown)
        assert "40 columns" in str(screen.query_one("#too-narrow", Static).visual)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: bool(screen.conversation.region.area))
        assert not screen.query_one("#too-narrow").region.area


async def test_the_lists_of_the_start_screen_stack(launch: Launch) -> None:
    async with open_app(launch, (50, 30)) as pilot:
        recorded, live = pilot.app.screen.query_one("#recorded").region, pilot.app.screen.query_one("#live").region
        assert recorded.width == live.width == 50
        assert recorded.bottom <= live.y
