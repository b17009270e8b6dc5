"""The replay screen over a recording: one cursor, and every panel follows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.tui.launch import Launch
from memreplay.tui.screens.help import HelpScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.panels.architectures import panels_of
from memreplay.views.text import visible
from tests.tui.builder import record
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import header_of, text_of


@pytest.fixture
def recorded(launch: Launch, tmp_path: Path) -> Launch:
    """Straight into a recording."""
    return replace(launch, recording=record(tmp_path / "run.sqlite3"))


def shown_panels(screen: ReplayScreen) -> dict[tuple[str, str], str]:
    return {
        (pane.backend, view.panel.name): view.text
        for pane in screen.architectures.panes
        if pane.display
        for view in pane.panels
    }


def expected_panels(screen: ReplayScreen) -> dict[tuple[str, str], str]:
    """What new panels show at the cursor, at the width of those on the screen."""
    expected = {}
    for pane in screen.architectures.panes:
        if not pane.display:
            continue
        fresh = panels_of(screen.timeline, pane.backend)
        for view, panel in zip(pane.panels, fresh, strict=True):
            document, width = panel.at(screen.cursor).document, view.layout_now.width
            rows = [row for block in range(len(document)) for row in document.rows(block, width)]
            expected[pane.backend, panel.name] = "\n".join(row.text.rstrip() for row in rows)
    return expected


async def test_stepping_forward_and_back_shows_what_the_stores_held(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("g")
        compared = 0
        for key, positions in ((".", range(1, 10)), (",", range(8, -1, -1)), ("space", range(1, 4))):
            for position in positions:
                await pilot.press(key)
                assert screen.cursor == position
                assert shown_panels(screen) == expected_panels(screen)
                stored = screen.timeline.snapshot_at("full_context", position).values.get("redis", {})
                log = shown_panels(screen)["full_context", "context log"]
                for text in stored.values():
                    assert "".join(visible(text).split()) == "".join(log.replace("×", "").split())
                    compared += 1
        assert compared, "the log was compared with what the store held"


async def test_first_last_and_the_next_turn_at_which_a_memory_changed_and_the_header_follows(
    recorded: Launch,
) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        assert "RECORDED" in header_of(pilot)
        assert "tiny-01  turn 1/8" in header_of(pilot)
        assert "memreplay/extractive · top 10 · stub-embedder" in header_of(pilot)
        await pilot.press("G")
        assert screen.cursor == screen.frontier == 9
        assert "closed" in header_of(pilot)
        await pilot.press(".")
        assert screen.cursor == 9
        await pilot.press("g", ",")
        assert screen.cursor == 0
        await pilot.press("]", "]")
        assert screen.cursor == 2
        await pilot.press("[")
        assert screen.cursor == 1


async def test_playing_goes_to_the_end_by_itself_and_can_be_paused(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("p")
        assert "playing" in header_of(pilot) or screen.cursor == 9
        await until(pilot, lambda: screen.cursor == 9 and "playing" not in header_of(pilot))
        await pilot.press("g", "p", "x")
        at = screen.cursor
        await pilot.pause()
        assert screen.cursor == at
        assert "playing" not in header_of(pilot)


async def test_hostile_text_is_shown_literally_on_the_screen_and_in_the_picture(
    recorded: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_replay(recorded, (200, 60)) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.pause()
        unwrapped = [screen.query_one("#conversation", LinesView).text, *shown_panels(screen).values()]
        texts = [" ".join(text.split()) for text in unwrapped]
        for text in texts:
            if "not red" in text:
                assert "[bold red]not red[/]" in text
            assert "\x1b" not in text
            assert "\u202e" not in text
        assert sum("[bold red]not red[/]" in text for text in texts) >= 3
        await pilot.press("e")
        picture = (tmp_path / "memreplay-tiny-01-turn-8.svg").read_text(encoding="utf-8")
        assert "[bold" in picture
        assert "red[/]" in picture
        assert "\x1b" not in picture
        assert "@font-face" not in picture and "url(http" not in picture


async def test_a_long_name_of_a_picture_is_cut(
    recorded: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ReplayScreen, "picture_name", "x" * 400)
    async with open_replay(recorded) as pilot:
        await pilot.press("e")
    (picture,) = tmp_path.glob("*.svg")
    assert len(picture.name) < 160


@pytest.mark.parametrize(
    ("width", "shown"), [(80, ["hybrid"]), (120, ["hybrid", "rag"]), (160, ["hybrid", "rag", "full_context"])]
)
async def test_as_many_architectures_as_there_is_room_for(recorded: Launch, width: int, shown: list[str]) -> None:
    async with open_replay(recorded, (width, 36)) as pilot:
        screen = replay_of(pilot)
        assert [pane.backend for pane in screen.architectures.panes if pane.display] == shown
        await pilot.press("3")
        assert "full_context" in [pane.backend for pane in screen.architectures.panes if pane.display]
        focused = screen.focused
        assert focused is not None
        assert focused in list(screen.architectures.panes[2].panels)
        assert shown_panels(screen) == expected_panels(screen)


async def test_nothing_lies_over_another_or_beyond_the_edge(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        for size in ((80, 24), (100, 30), (120, 36), (160, 45), (200, 60)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: screen.region.size == size)
            views = [view for view in screen.query(LinesView) if view.region.area]
            for view in views:
                assert screen.region.contains_region(view.region)
                assert view.scrollable_content_region.height >= 1
            for index, view in enumerate(views):
                for other in views[index + 1 :]:
                    assert not view.region.overlaps(other.region)


async def test_a_click_on_a_turn_goes_there_and_one_on_a_tab_shows_it(recorded: Launch) -> None:
    async with open_replay(recorded, (80, 24)) as pilot:
        screen = replay_of(pilot)
        row = screen.query_one("#conversation", LinesView).layout_now.start(2)
        await pilot.click("#conversation", offset=(5, row + 1))
        assert screen.cursor == 3
        await pilot.click("#tabs", offset=(14, 0))
        assert [pane.backend for pane in screen.architectures.panes if pane.display] == ["rag"]


async def test_a_panel_can_be_enlarged_and_a_memory_that_failed_says_so_at_that_turn(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("1", "+")
        assert screen.maximized is screen.focused
        await pilot.press("escape")
        assert screen.maximized is None
        assert pilot.app.screen is screen
        screen.move_to(8)
        failure = screen.architectures.panes[1].query_one(".failure", LinesView)
        await pilot.pause()
        assert failure.display
        assert "recall failed" in failure.text
        await pilot.press(",")
        assert not failure.display


async def test_results_open_and_a_question_leads_to_its_evidence(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("r")
        assert isinstance(pilot.app.screen, ResultsScreen)
        await pilot.press("down", "down", "[")
        assert pilot.app.screen is screen
        assert screen.cursor == 5
        assert "◆ 3" in screen.query_one("#conversation", LinesView).text


async def test_answers_stand_beside_the_conversation_from_the_turn_they_were_asked_at(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        answers = screen.query_one("#answers", LinesView)
        assert not answers.display
        screen.move_to(8)
        await pilot.pause()
        assert "✓ ! ✗ 1. What is the user's full name?" in answers.text.replace("\n     ", "")
        row = answers.layout_now.start(1)
        await pilot.click("#answers", offset=(8, row + 1))
        await pilot.click("#answers", offset=(8, row + 1))
        assert isinstance(pilot.app.screen, WhyScreen)


async def test_escape_leads_to_the_start_from_where_another_recording_opens(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, StartScreen)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert "RECORDED" in header_of(pilot)


async def test_one_of_several_recorded_conversations_is_chosen(recorded: Launch, tmp_path: Path) -> None:
    several = record(tmp_path / "several.sqlite3", "tiny-01", "tiny-[2]")
    async with open_app(replace(recorded, recording=several)) as pilot:
        await until(pilot, lambda: bool(pilot.app.screen.query("#pick")))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert "tiny-[2]" in header_of(pilot)


async def test_help_opens_when_it_is_composed_and_what_a_search_finds_stands_below_its_heading(
    recorded: Launch,
) -> None:
    async with open_replay(recorded) as pilot:
        helping = HelpScreen()
        opening = pilot.app.push_screen(helping)
        assert not await pilot.app.run_action("leave", default_namespace=helping)
        await opening
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, ReplayScreen)
        await pilot.press("?")
        assert isinstance(pilot.app.screen, HelpScreen)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, ReplayScreen)
        await pilot.press("?", "slash", *"diff", "space", *"against", "enter")
        rows = [row.strip() for row in text_of(pilot, "#help").split("\n") if row.strip()]
        assert rows[0] == "Replay" and rows[1].startswith("d "), "the same key, with what it does on each screen"
        assert rows[rows.index("Memory browser") + 1].startswith("d ")
