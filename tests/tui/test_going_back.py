"""Escape, type-ahead, and a replay that opens where it was left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from memreplay.conversations.catalog import ListedConversation
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import OpeningScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.panels import MARKED
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import explained
from tests.tui.resting import LONGEST


async def test_escape_closes_the_innermost_thing_first_and_a_replay_opens_where_it_was_left(
    launch: Launch,
) -> None:
    async with open_replay(replace(launch, recording=launch.recordings()[0])) as pilot:
        screen = replay_of(pilot)
        screen.move_to(5)
        await pilot.press("/", *"Girona", "enter")
        await until(pilot, lambda: "Girona".casefold() in screen.conversation.found_words)
        turn = screen.cursor
        await pilot.press("d")
        assert screen.base != MARKED
        await pilot.press("escape")
        assert not screen.conversation.found_words and screen.base != MARKED
        await pilot.press("escape")
        assert screen.base == MARKED and pilot.app.screen is screen
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, StartScreen)
        pilot.app.screen.query_one("#recordings").focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert replay_of(pilot).cursor == turn


async def test_escape_after_a_jump_from_the_explanation_leads_back_to_it(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "enter")
        await explained(pilot)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))


async def test_keys_typed_while_a_recording_opens_reach_no_other_screen(
    recorded: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memreplay.tui import sources

    may_go_on, read = Event(), sources.recorded_conversations

    def held_up(path: Path) -> list[ListedConversation]:
        assert may_go_on.wait(LONGEST)
        return read(path)

    monkeypatch.setattr(sources, "recorded_conversations", held_up)
    app = MemreplayApp(recorded)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, OpeningScreen))
        assert "opening" in app.screen.query_one("#opening", LinesView).text
        await pilot.press("enter", "down", "R", "q", "ctrl+s")
        assert isinstance(app.screen, OpeningScreen) and len(app.screen_stack) == 3
        may_go_on.set()
        await until(pilot, lambda: isinstance(app.screen, ReplayScreen))
