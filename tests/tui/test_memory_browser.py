"""The memory browser: everything a memory holds at the cursor, in full."""

from __future__ import annotations

from textual.pilot import Pilot
from textual.widgets import OptionList

from memreplay.tui.launch import Launch
from memreplay.tui.screens import Listing
from memreplay.tui.screens.browser import BrowserScreen
from memreplay.tui.screens.dialogs import PickScreen
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import found, rested, text_of, typed


async def browsing(pilot: Pilot[None]) -> None:
    """The browser is open and its list is there."""
    await until(pilot, lambda: isinstance(pilot.app.screen, BrowserScreen))
    screen = pilot.app.screen
    await until(pilot, lambda: not any(worker.group == "list" for worker in screen.workers if worker.is_running))
    await pilot.pause()


async def picked(pilot: Pilot[None], words: str) -> None:
    """Choose what begins with these words."""
    await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
    options = pilot.app.screen.query_one(OptionList)
    names = [str(options.get_option_at_index(index).prompt) for index in range(options.option_count)]
    options.highlighted = next(place for place, name in enumerate(names) if name.startswith(words))
    await pilot.press("enter")
    await pilot.pause()


def selected_row(pilot: Pilot[None]) -> str:
    return next(row for row in text_of(pilot, "#list").split("\n") if row.startswith("▶"))


async def test_it_lists_every_key_and_point_with_turn_sources_and_retrievals(recorded: Launch) -> None:
    async with open_replay(recorded, (120, 36)) as pilot:
        screen = replay_of(pilot)
        screen.move_to(6)
        await pilot.press("2", "M")
        await browsing(pilot)
        assert "turn 6" in text_of(pilot, "#header")
        rows = text_of(pilot, "#list").split("\n")
        assert [row.split()[0].strip("▶") or row.split()[1] for row in rows] == ["6", "4", "2"]
        assert "goodai_ltm_full_history" in rows[0]
        await pilot.press("left")
        await browsing(pilot)
        listed = text_of(pilot, "#list")
        assert "personal_state:planner_agent" in listed and "shared_state" in listed
        await pilot.press("right", "right")
        await browsing(pilot)
        assert "3 appended" in text_of(pilot, "#list")


async def test_enter_shows_an_item_in_full_and_escape_leads_back_step_by_step(recorded: Launch) -> None:
    async with open_replay(recorded, (80, 24)) as pilot:
        replay_of(pilot).move_to(8)
        await pilot.press("2", "M")
        await browsing(pilot)
        await pilot.press("j", "j", "enter")
        assert not pilot.app.screen.query_one(Listing).region, "the item has the screen to itself"
        details = text_of(pilot, "#details")
        assert "We run it on PostgreSQL 14, port 6543 because 5432 was taken." in " ".join(details.split())
        assert "…" not in details
        await pilot.press("escape")
        assert pilot.app.screen.query_one(Listing).region
        await pilot.press("escape")
        assert pilot.app.screen is replay_of(pilot)
        assert replay_of(pilot).cursor == 8


async def test_w_leads_to_the_write_of_the_item(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        replay_of(pilot).move_to(8)
        await pilot.press("2", "M")
        await browsing(pilot)
        await pilot.press("end", "w")
        assert pilot.app.screen is replay_of(pilot)
        assert replay_of(pilot).cursor == 2
        assert "qdrant upsert goodai_ltm_full_history" in found(pilot)
        await pilot.press("backspace")
        assert replay_of(pilot).cursor == 8


async def test_a_search_shows_only_what_matches_and_says_where_nothing_does(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        replay_of(pilot).move_to(8)
        await pilot.press("2", "M")
        await browsing(pilot)
        await pilot.press("slash")
        await typed(pilot, "GIRONA")
        await until(pilot, lambda: "1 item " in text_of(pilot, "#header"))
        assert "Girona" in text_of(pilot, "#details")
        await pilot.press("slash")
        await typed(pilot, "zzzz")
        await until(pilot, lambda: "no item matches zzzz" in text_of(pilot, "#list"))
        await pilot.press("j", "enter", "w")
        assert isinstance(pilot.app.screen, BrowserScreen), "no key fails where nothing is listed"
        await pilot.press("slash")
        await typed(pilot, "")
        await until(pilot, lambda: "4 items" in text_of(pilot, "#header"))


async def test_it_sorts_and_keeps_the_selected_item(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        replay_of(pilot).move_to(8)
        await pilot.press("2", "M")
        await browsing(pilot)
        newest = selected_row(pilot)
        for words in ("oldest first", "most retrieved first", "by store"):
            await pilot.press("O")
            await until(pilot, lambda words=words: words in text_of(pilot, "#header"))  # type: ignore[misc]
            await browsing(pilot)
            assert selected_row(pilot) == newest
        await pilot.press("O", "O")
        await until(pilot, lambda: "oldest first" in text_of(pilot, "#header"))
        await browsing(pilot)
        turns = [row.lstrip("▶ ").split()[0] for row in text_of(pilot, "#list").split("\n")]
        assert turns == ["2", "4", "6", "8"]


async def test_it_compares_with_another_turn_and_with_another_architecture(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        replay_of(pilot).move_to(6)
        await pilot.press("1", "M")
        await browsing(pilot)
        await pilot.press("d")
        await picked(pilot, "the previous turn")
        await until(pilot, lambda: "against turn 5" in text_of(pilot, "#header"))
        assert [row[1] for row in text_of(pilot, "#list").split("\n")] == ["~"]
        assert '+     "user.city"' in text_of(pilot, "#details")
        await pilot.press("d")
        await picked(pilot, "nothing")
        await pilot.press("right", "d")
        await picked(pilot, "another turn")
        await typed(pilot, "99")
        await typed(pilot, "2")
        await until(pilot, lambda: "against turn 2" in text_of(pilot, "#header"))
        assert "2 items" in text_of(pilot, "#header")
        await pilot.press("d")
        await picked(pilot, "full_context")
        await until(pilot, lambda: "against full_context" in text_of(pilot, "#header"))


async def test_steps_in_the_browser_move_the_replay_when_it_is_left(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        replay_of(pilot).move_to(1)
        await pilot.press("2", "M")
        await until(pilot, lambda: "holds nothing at turn 1" in text_of(pilot, "#list"))
        await pilot.press("full_stop", "full_stop", "full_stop")
        await until(pilot, lambda: "2 items" in text_of(pilot, "#header"))
        await pilot.press("escape")
        assert replay_of(pilot).cursor == 4


async def test_a_live_memory_is_browsed_as_a_recorded_one(live_launch: Launch) -> None:
    async with open_replay(live_launch) as pilot:
        await rested(pilot)
        await pilot.press("space", "space")
        await until(pilot, lambda: replay_of(pilot).cursor == 2)
        await rested(pilot)
        await pilot.press("3", "M")
        await browsing(pilot)
        assert "1 appended" in text_of(pilot, "#list")
        await pilot.press("enter")
        assert "I am Marta Vidal" in text_of(pilot, "#details")
