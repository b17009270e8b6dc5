"""Escape, type-ahead, and a replay that opens where it was left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from textual import events

from memreplay.conversations.catalog import ListedConversation
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import OpeningScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.panels import MARKED
from tests.tui.builder import record
from tests.tui.conftest import open_app, open_replay, replay_of, until
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


async def test_keys_typed_while_a_recording_opens_wait_for_it_and_reach_no_other_screen(
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
        await pilot.press("ctrl+s", "G", "r")
        await until(pilot, lambda: isinstance(app.screen, OpeningScreen))
        assert "opening" in app.screen.query_one("#opening", LinesView).text
        await pilot.press("down", "down", "enter")
        assert isinstance(app.screen, OpeningScreen) and len(app.screen_stack) == 3
        may_go_on.set()
        await until(pilot, lambda: isinstance(app.screen, WhyScreen))
        assert [type(screen) for screen in app.screen_stack[1:]] == [
            StartScreen,
            ReplayScreen,
            ResultsScreen,
            WhyScreen,
        ]


async def test_keys_typed_at_once_choose_what_the_same_keys_typed_slowly_choose(launch: Launch) -> None:
    path = record(launch.recordings()[0].with_name("two.sqlite3"), "tiny-01", "tiny-02")
    async with open_app(replace(launch, recordings=lambda: [path, *launch.recordings()])) as pilot:
        for key in ("enter", "down", "down", "enter"):
            pilot.app.post_message(events.Key(key, None))
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert (replay_of(pilot).source.path, replay_of(pilot).timeline.conversation.id) == (path, "tiny-02")
