"""One cursor: by turns, sessions and numbers, by itself, on the strip, with the keys that were configured."""

from __future__ import annotations

from dataclasses import replace

from memreplay.tui.launch import Launch
from tests.tui.conftest import open_replay, replay_of
from tests.tui.looking import header_of, text_of, typed


async def test_counts_sessions_and_turns_by_number(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("g", "3", ".")
        assert screen.cursor == 3
        assert screen.focused is screen.query_one("#conversation")
        await pilot.press("2", ",")
        assert screen.cursor == 1
        await pilot.press("6", "G")
        assert screen.cursor == 6
        await pilot.press("{")
        assert screen.cursor == 5
        await pilot.press("{")
        assert screen.cursor == 1
        await pilot.press("}")
        assert screen.cursor == 5
        await pilot.press("ctrl+g")
        await typed(pilot, "99")
        assert "A number from 0 to 9" in text_of(pilot, "#fits")
        await typed(pilot, "7")
        assert screen.cursor == 7


async def test_playing_grows_faster_and_pauses(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.playback.seconds_per_turn = 60
        seen = []
        for _ in range(4):
            await pilot.press("p")
            seen.append(next((speed for speed in ("×16", "×4", "×1") if speed in header_of(pilot)), ""))
        assert seen == ["×1", "×4", "×16", ""]


async def test_the_strip_shows_what_happened_and_seeks_where_it_is_clicked(recorded: Launch) -> None:
    async with open_replay(recorded, (160, 45)) as pilot:
        screen = replay_of(pilot)
        rows = screen.strip.text.split("\n")
        assert "4 Mar 2024" in rows[0]
        assert "11 Mar 2024" in rows[0]
        for tick in "◇+!":
            assert tick in rows[1]
        await pilot.click("#strip", offset=(159, 1))
        assert screen.cursor == 9
        await pilot.click("#strip", offset=(0, 1))
        assert screen.cursor == 0
        await pilot.mouse_down("#strip", offset=(20, 1))
        await pilot.hover("#strip", offset=(80, 1))
        await pilot.mouse_up("#strip", offset=(80, 1))
        assert screen.cursor == 5


async def test_keys_are_those_of_the_configuration(recorded: Launch) -> None:
    async with open_replay(replace(recorded, keys={"replay.step": "f5,z"})) as pilot:
        screen = replay_of(pilot)
        await pilot.press("f5", "z")
        assert screen.cursor == 3
        await pilot.press(".")
        assert screen.cursor == 3
