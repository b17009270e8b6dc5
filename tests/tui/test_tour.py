"""The guided tour: ten keys on the shipped demo, offered once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual.pilot import Pilot
from textual.widgets import OptionList

from memreplay.paths import demo_recording
from memreplay.tui.launch import Launch
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.tour import STEPS, Tour
from tests.tui.conftest import open_app, until
from tests.tui.looking import text_of

KEYS = {"esc": "escape", "]": "right_square_bracket"}


def toast(pilot: Pilot[Any]) -> str:
    return " ".join(f"{note.title} {note.message}" for note in pilot.app._notifications)


async def test_each_key_of_the_tour_leads_to_the_next_step(launch: Launch) -> None:
    async with open_app(replace(launch, demo=demo_recording()), (120, 36)) as pilot:
        await until(pilot, lambda: "T starts a tour" in text_of(pilot, "#status"))
        await pilot.press("T")
        for number, step in enumerate(STEPS, start=1):
            await until(pilot, lambda number=number: f"{number} of 10" in toast(pilot))  # type: ignore[misc]
            assert f"Press {step.key}" in toast(pilot)
            await until(pilot, lambda step=step: getattr(pilot.app.screen, "PLACE", "") == step.place)  # type: ignore[misc]
            await pilot.press(KEYS.get(step.key, step.key))
        await until(pilot, lambda: "That was the tour" in toast(pilot))


async def test_the_tour_is_offered_once_and_ends_on_its_key(launch: Launch) -> None:
    offering = replace(launch, demo=demo_recording())
    async with open_app(offering) as pilot:
        await until(pilot, lambda: "T starts a tour" in text_of(pilot, "#status"))
    async with open_app(offering) as pilot:
        listed = pilot.app.screen.query_one("#recordings", OptionList)
        await until(pilot, lambda: listed.option_count > 0)
        assert "T starts a tour" not in text_of(pilot, "#status")
        await pilot.press("question_mark", "T")
        await until(pilot, lambda: "1 of 10" in toast(pilot))
        assert isinstance(pilot.app.screen, ReplayScreen)
        await pilot.press("T")
        assert "of 10" not in toast(pilot)


def test_the_tour_names_the_keys_that_the_user_has() -> None:
    tour = Tour()
    tour.start()
    assert "Press space" in tour.words({})
    assert "Press z" in tour.words({"replay.step": "z"})
    assert "Press ctrl+p" in tour.words({"replay.step": ""}), "the palette has what has no key"
