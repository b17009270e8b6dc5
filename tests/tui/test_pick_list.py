"""Dialogs: a list to pick from, and the keys below it."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from memreplay.tui.launch import Launch
from memreplay.tui.screens import Dialog
from memreplay.tui.screens.dialogs import PickList
from tests.tui.conftest import open_replay, until
from tests.tui.looking import screen_rows


class _Hidden(App[None]):
    """A list that was never laid out."""

    CSS = "PickList { display: none; }"

    def compose(self) -> ComposeResult:
        yield PickList("one", "two")


@pytest.mark.parametrize("page", ["page_up", "page_down"])
async def test_a_page_key_before_the_list_is_laid_out_does_nothing(page: str) -> None:
    async with _Hidden().run_test() as pilot:
        await pilot.app.query_one(PickList).run_action(page)
        assert pilot.app.is_running


@pytest.mark.parametrize("keys", ["l", "b", "slash", "m", "b enter B", "r o", "r slash", "r O", "K"])
async def test_below_a_dialog_stand_its_own_keys_and_not_those_of_the_screen_behind(
    recorded: Launch, keys: str
) -> None:
    async with open_replay(recorded, (120, 36)) as pilot:
        assert "who" in screen_rows(pilot)[-1]
        for key in keys.split():
            await pilot.press(*("rank > 2" if key == "enter" else ""), key)
            await pilot.pause()
        dialog = pilot.app.screen
        assert isinstance(dialog, Dialog)
        await until(pilot, lambda: screen_rows(pilot)[-1].split() == ["esc", "back"])
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is not dialog)
        await until(pilot, lambda: "why" in screen_rows(pilot)[-1] or "who" in screen_rows(pilot)[-1])
