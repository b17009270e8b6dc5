"""One table of actions behind bindings, help and palette."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from textual.screen import Screen

from memreplay.tui.actions import ACTIONS, PLACES, Place, actions_of
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.browser import BrowserScreen
from memreplay.tui.screens.compare import CompareScreen
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.overlays import HelpScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.run import RunScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.tests import TestScoresScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.tui.conftest import open_app

SCREENS: dict[Place, type[Screen[Any]]] = {
    "start": StartScreen,
    "replay": ReplayScreen,
    "results": ResultsScreen,
    "run": RunScreen,
    "tests": TestScoresScreen,
    "help": HelpScreen,
    "pick": PickScreen,
    "why": WhyScreen,
    "biography": BiographyScreen,
    "browser": BrowserScreen,
    "compare": CompareScreen,
    "prompt": TypingScreen,
}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_can_be_carried_out(action: Any) -> None:
    name = action.call.split("(")[0]
    owner: type[Any] = LinesView if action.place == "panel" else SCREENS[action.place]
    if name.startswith("app."):
        owner, name = MemreplayApp, name.removeprefix("app.")
    assert callable(getattr(owner, f"action_{name}"))


@pytest.mark.parametrize("place", PLACES)
def test_no_key_does_two_things(place: Place) -> None:
    keys = Counter(key for action in actions_of(place) for key in action.keys)
    assert [key for key, count in keys.items() if count > 1] == []


async def test_help_names_every_action_with_its_keys(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        pilot.app.screen.query_one("#datasets").focus()
        await pilot.press("?")
        assert isinstance(pilot.app.screen, HelpScreen)
        shown = " ".join(pilot.app.screen.query_one("#help", LinesView).text.split())
        for action in ACTIONS:
            assert action.description in shown


async def test_the_palette_offers_every_action_of_the_screen(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        commands = list(pilot.app.get_system_commands(pilot.app.screen))
        for action in actions_of("start"):
            assert any(action.description in command.help for command in commands)
        assert any(command.title == "Theme" for command in commands)
