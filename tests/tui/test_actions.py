"""One table of actions behind bindings, help and palette."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen
from textual.widgets._footer import FooterKey

from memreplay.drafting.review import ReviewScreen
from memreplay.tui.actions import ACTIONS, LETTERS, OTHER_MEANINGS, PLACES, Action, Place, actions_of
from memreplay.tui.app import MemreplayApp
from memreplay.tui.controllers.questions import AskScreen
from memreplay.tui.launch import Launch, ThemeChoice
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.browser import BrowserScreen
from memreplay.tui.screens.budget import BudgetScreen
from memreplay.tui.screens.dialogs import BesideScreen, ConversationScreen, PickScreen, TypingScreen
from memreplay.tui.screens.duel import DuelScreen
from memreplay.tui.screens.help import HelpScreen
from memreplay.tui.screens.regression import RegressionScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.rewriting import RewritingScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.tests import TestsScreen
from memreplay.tui.screens.what_if import WhatIfScreen
from memreplay.tui.screens.why import TwoWhysScreen, WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.tui.conftest import open_app, open_replay, until
from tests.tui.looking import header_of

SCREENS: dict[Place, type[Screen[Any]]] = {
    "start": StartScreen,
    "replay": ReplayScreen,
    "results": ResultsScreen,
    "tests": TestsScreen,
    "help": HelpScreen,
    "pick": PickScreen,
    "conversations": ConversationScreen,
    "why": WhyScreen,
    "biography": BiographyScreen,
    "browser": BrowserScreen,
    "regression": RegressionScreen,
    "two_whys": TwoWhysScreen,
    "duel": DuelScreen,
    "budget": BudgetScreen,
    "ask": AskScreen,
    "beside": BesideScreen,
    "prompt": TypingScreen,
    "what_if": WhatIfScreen,
    "writer": RewritingScreen,
    "review": ReviewScreen,
}


def test_every_action_can_be_carried_out() -> None:
    assert [action.id for action in ACTIONS if not callable(_method_of(action))] == []


def _method_of(action: Action) -> Any:
    """The method that an action calls; None if there is none."""
    name = action.call.split("(")[0]
    owner: type[Any] = LinesView if action.place == "panel" else SCREENS[action.place]
    if name.startswith("app."):
        owner, name = MemreplayApp, name.removeprefix("app.")
    return getattr(owner, f"action_{name}", None)


@pytest.mark.parametrize("place", PLACES)
def test_no_key_does_two_things(place: Place) -> None:
    keys = Counter(key for action in actions_of(place) for key in action.keys)
    assert [key for key, count in keys.items() if count > 1] == []


def test_a_letter_means_the_same_on_every_screen_but_for_named_exceptions() -> None:
    opens = {(key, action.call) for action in ACTIONS for key in action.keys}
    for action in ACTIONS:
        for key in action.keys:
            if len(key) > 1 or not key.isalpha() or (key, action.place) in OTHER_MEANINGS:
                continue
            calls = LETTERS[key][1].split()
            closes = action.call == "leave" and any((key, call) in opens for call in calls)
            assert action.call in calls or closes, f"{key} is {LETTERS[key][0]}, not {action.id}"
    used = {(key, action.place) for action in ACTIONS for key in action.keys}
    assert set(OTHER_MEANINGS) <= used and set(LETTERS) <= {key for key, _ in used}


async def test_help_names_every_action_with_its_keys(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        pilot.app.screen.query_one("#datasets").focus()
        await pilot.press("?")
        assert isinstance(pilot.app.screen, HelpScreen)
        shown = " ".join(pilot.app.screen.query_one("#help", LinesView).text.split())
        for action in ACTIONS:
            assert action.description in shown


async def test_the_palette_offers_every_action_of_the_screen_once_by_the_words_people_type(
    recorded: Launch,
) -> None:
    async with open_replay(recorded) as pilot:
        commands = list(pilot.app.get_system_commands(pilot.app.screen))
        for action in actions_of("replay"):
            offered = [one for one in commands if one.title == action.title and one.help.endswith(action.details)]
            assert len(offered) == (not action.is_count), action.id
            assert all(action.description not in one.help for one in offered), "nothing is said twice"
        titles = Counter(command.title for command in commands)
        assert [title for title, count in titles.items() if count > 1] == []
        for word in ("diff", "results", "breakpoint", "zoom", "theme", "find", "duel", "note"):
            assert any(word in title.casefold() for title in titles), word


async def test_help_begins_with_the_keys_of_the_screen_and_is_searched(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "?")
        help_text = pilot.app.screen.query_one("#help", LinesView).text
        headings = [row for row in help_text.splitlines() if row and row[0].isalpha()]
        assert headings[:2] == ["Results", "Everywhere"]
        assert " R  not retrieved" in help_text
        await pilot.press("slash", *"reverses")
        shown = pilot.app.screen.query_one("#help", LinesView).text
        assert "reverses the order." in shown and "Step one turn" not in shown
        await pilot.press("escape", "slash", *"letter")
        shown = pilot.app.screen.query_one("#help", LinesView).text
        assert shown.count("Every letter") == 1 and all(meaning in shown for meaning, _ in LETTERS.values())
        await pilot.press("escape")
        assert "Step one turn" in pilot.app.screen.query_one("#help", LinesView).text
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, ResultsScreen)


async def test_rebound_keys_show_in_footer_help_and_palette_and_what_lost_its_key_is_reported(
    recorded: Launch,
) -> None:
    keys = {"replay.results": "f5", "replay.ask": "s"}
    async with open_replay(replace(recorded, keys=keys), (160, 45)) as pilot:
        assert any("replay.significance" in note.message for note in pilot.app._notifications)
        footer = {key.description: key.key_display for key in pilot.app.screen.query(FooterKey)}
        assert (footer["results"], footer["ask"]) == ("f5", "s")
        commands = {command.title: command.help for command in pilot.app.get_system_commands(pilot.app.screen)}
        assert any(text.startswith("f5") for title, text in commands.items() if "results, scores" in title)
        await pilot.press("?")
        rows = pilot.app.screen.query_one("#help", LinesView).text.splitlines()
        assert any(
            row.split()[0] == "f5" and "every question with every answer" in row for row in rows if row.strip()
        )
        assert any(row.split()[:2] == ["no", "key"] and "significance" in row for row in rows)
        await pilot.press("escape", "f5")
        assert isinstance(pilot.app.screen, ResultsScreen)


async def test_a_theme_of_the_config_is_used_and_one_that_is_picked_is_remembered(
    recorded: Launch, tmp_path: Path
) -> None:
    choice = ThemeChoice("nord", tmp_path / "state" / "theme.json")
    async with open_app(replace(recorded, theme=choice)) as pilot:
        assert pilot.app.theme == "nord"
        pilot.app.theme = "gruvbox"
        await pilot.pause()
    async with open_app(replace(recorded, theme=choice)) as pilot:
        assert pilot.app.theme == "gruvbox"
    assert ThemeChoice("dracula", choice.file).theme() == "dracula", "a later change of the config counts"
    assert choice.file is not None
    choice.file.write_text("damaged")
    assert choice.theme() == "nord"


async def test_modes_that_change_what_keys_do_are_visible(recorded: Launch) -> None:
    async with open_replay(recorded, (160, 45)) as pilot:
        await pilot.press("s", "1", "2")
        assert "count 12" in header_of(pilot) and "by significance" in header_of(pilot)
        await pilot.press("G", "s")
        assert "count" not in header_of(pilot) and "significance" not in header_of(pilot)


async def test_no_action_reaches_a_screen_before_it_is_composed(launch: Launch) -> None:
    def nothing(screen: Screen[Any]) -> None:
        Screen.__init__(screen)

    async def never_composed(screen: Screen[Any]) -> bool:
        screen._mounted_event.set()
        return False

    async with open_app(launch) as pilot:
        for place, screen in SCREENS.items():
            early = type("Early", (screen,), {"__init__": nothing, "_pre_process": never_composed})()
            pilot.app.push_screen(early)
            for action in actions_of(place):
                assert not await pilot.app.run_action(action.call, early), action.id
            assert pilot.app.screen is early
            pilot.app.pop_screen()


async def test_help_that_is_left_at_once_stays_until_it_is_there(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        pilot.app.screen.query_one("#datasets").focus()
        help_screen = HelpScreen()
        pilot.app.push_screen(help_screen)
        assert not await pilot.app.run_action("leave", help_screen)
        await until(pilot, lambda: help_screen.is_mounted)
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, HelpScreen)
