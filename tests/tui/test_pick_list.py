"""A list to pick from."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from memreplay.tui.screens.dialogs import PickList


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
