"""Titles of panels and dialogs are whole, whatever the size of the screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import OptionList
from textual.widgets._footer import FooterKey

from memreplay.tui.launch import Launch
from memreplay.tui.screens.browser import BrowserScreen
from memreplay.tui.screens.dialogs import PickScreen
from memreplay.tui.screens.duel import DuelScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.sources import described
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.panels import View, lines_view
from memreplay.views.text import shortened
from tests.tui.builder import record_interrupted
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import rested, text_of

SIZES = [(80, 24), (120, 36), (160, 45)]
_ID_OF_A_RUN = re.compile(r"[0-9a-f]{10,}|[0-9a-f]{8}-[0-9a-f]{4}")


def cut_titles(pilot: Pilot[None]) -> list[str]:
    """Titles in borders that do not fit, or that name a run by its id."""
    found = []
    for widget in pilot.app.screen.query("*"):
        if not widget.region.width:
            continue
        for title in (widget.border_title, widget.border_subtitle):
            words = str(title or "")
            if cell_len(words) > widget.region.width - 4 or _ID_OF_A_RUN.search(words):
                found.append(words)
    return found


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_titles_of_all_panels_fit(recorded: Launch, size: tuple[int, int]) -> None:
    async with open_replay(recorded, size) as pilot:
        for turn in (1, 4, 7, 8):
            replay_of(pilot).move_to(turn)
            for _ in range(3):
                for memory in ("1", "2", "3"):
                    await pilot.press(memory)
                    assert cut_titles(pilot) == [], (turn, memory)
                await pilot.press("v")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_titles_of_a_live_session_fit(live_launch: Launch, size: tuple[int, int]) -> None:
    async with open_replay(live_launch, size) as pilot:
        await rested(pilot)
        await pilot.press("4", "space")
        await until(pilot, lambda: replay_of(pilot).cursor == 4)
        for memory in ("1", "2", "3"):
            await pilot.press(memory)
            assert cut_titles(pilot) == []
        await pilot.press("escape", "escape")  # the first one takes back the count that digits began
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        assert cut_titles(pilot) == []
        leaving = pilot.app.screen.query_one(OptionList)
        assert str(leaving.get_option_at_index(1).prompt) == "leave: interrupted at 4 of 8, L continues it"


LOG = View(
    "context log · full_history", lines_view("", ()).document, "× cut up to turn 5 · 1,166 tokens · 5,220 bytes"
)


@pytest.mark.parametrize(
    ("width", "title"),
    [
        (90, "context log · full_history · × cut up to turn 5 · 1,166 tokens · 5,220 bytes"),
        (70, "context log · × cut up to turn 5 · 1,166 tokens · 5,220 bytes"),
        (50, "context log · × cut up to turn 5 · 1,166 tokens"),
        (34, "context log · × cut up to turn 5"),
        (12, "context log"),
        (8, "context…"),
    ],
)
def test_a_border_leaves_out_whole_parts_the_least_important_first(width: int, title: str) -> None:
    assert LOG.borders(width, lower=False) == (title, "")


def test_a_note_in_the_lower_border_leaves_out_its_last_parts() -> None:
    assert LOG.borders(36, lower=True) == ("context log · full_history", "× cut up to turn 5 · 1,166 tokens")


def test_names_of_columns_lose_as_little_as_possible() -> None:
    names = ["hybrid", "rag", "full_context", "closed_book"]
    assert shortened(names, 40) == "hybrid rag full_context closed_book"
    assert shortened(names, 26) == "hybrid rag full_c… closed…"
    assert shortened(names, 3) == "… …"[:3]


async def test_a_panel_counts_all_points_before_it_names_collections(recorded: Launch) -> None:
    async with open_replay(recorded, (80, 24)) as pilot:
        replay_of(pilot).move_to(4)
        await pilot.press("2")
        titles = [str(widget.border_title or "") for widget in pilot.app.screen.query(".panel")]
        assert any(re.search(r"^written at this turn · \d+ points? stored", title) for title in titles)


def test_an_entry_of_the_list_fits_into_the_narrowest_list(path: Path) -> None:
    stopped = record_interrupted(path.with_stem("20260105-093000-123"), 3)
    named_by_content = "tiny-01 · memreplay/extractive"
    for one, name, state in (
        (path, path.stem, "  finished  "),
        (stopped, named_by_content, "  interrupted at turn 3 of 8"),
    ):
        rows = str(described(one)).split("\n")
        assert rows[0] == name, "the name has a row of its own"
        assert f"  {one.stem}" in rows or one.stem == name
        assert rows[1].startswith(state)
        assert all(cell_len(row) <= 36 for row in rows)


async def test_on_80_columns_the_footer_has_room_for_help(recorded: Launch) -> None:
    async with open_replay(recorded, (80, 24)) as pilot:
        for place, keys in (
            (ReplayScreen, ()),
            (BrowserScreen, ("M",)),
            (ResultsScreen, ("escape", "r")),
            (WhyScreen, ("enter",)),
            (DuelScreen, ("a",)),
        ):
            await pilot.press(*keys)
            await until(pilot, lambda place=place: isinstance(pilot.app.screen, place))
            await pilot.pause()
            ends = {key.description: key.region.right for key in pilot.app.screen.query(FooterKey)}
            assert 0 < ends["help"] <= 80, place


async def test_the_selected_row_can_be_read_in_16_colours(recorded: Launch) -> None:
    async with open_replay(recorded, (80, 24)) as pilot:
        pilot.app.theme = "ansi-dark"
        await pilot.press("r")
        await until(pilot, lambda: "unparsed" in text_of(pilot, "#legend"))
        view = pilot.app.screen.query_one("#questions", LinesView)
        rows = view.render_lines(Region(0, 0, view.size.width + 2, view.size.height + 2))
        row = next(row for row in rows if "▶" in row.text)
        inks = {
            (each.style.color.number, each.style.bgcolor.number)
            for each in row
            if each.text.strip() and each.style and each.style.color and each.style.bgcolor
        }
        blue, bright_white = 4, 15
        assert {ink for ink, paper in inks if paper == blue} == {bright_white}, inks
