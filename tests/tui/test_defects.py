"""What the screen once got wrong, each by the keys that showed it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.goodai.importing import import_goodai_run
from memreplay.tui.launch import Launch, RunHandle
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.dialogs import ConversationScreen, PickScreen, TextScreen, TypingScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.tests import TestsScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.views.panels import short_key
from memreplay.views.panels.conversation import turn_words, turns_words
from memreplay.views.text import Row, Span, marked, words_in
from tests.conftest import REPOSITORY, SHARED_DATA
from tests.tui.builder import conversation
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import explained, found, rested, selected_panel, text_of, typed


def notes(pilot: Pilot[None]) -> str:
    """All notifications that are on the screen."""
    return " ".join(str(note.message) for note in pilot.app._notifications)


async def searched(pilot: Pilot[None], text: str) -> None:
    await pilot.press("slash")
    await typed(pilot, text)


async def test_a_search_selects_the_line_counts_the_matches_and_says_in_plain_words_where_there_is_none(
    recorded: Launch,
) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await searched(pilot, "moved us to girona")
        await until(pilot, lambda: "1 of" in found(pilot))
        assert screen.focused is screen.conversation
        assert screen.conversation.highlighted == 4
        marked_text = [
            span.text
            for row in screen.conversation._window.rows
            if row
            for span in row.spans
            if span.tone == "found"
        ]
        assert {"moved", "Girona"} <= set(marked_text)
        total = int(found(pilot).split(" of ")[1].split()[0])
        assert total > 1
        await pilot.press("n")
        await until(pilot, lambda: f"2 of {total}" in found(pilot))
        name, view = selected_panel(screen)
        assert view.highlighted is not None
        assert "moved us to Girona" in " ".join(view.text.split()), name
        await pilot.press("N", "N")
        await until(pilot, lambda: f"{total} of {total}" in found(pilot))
        await searched(pilot, "zzzz")
        await until(pilot, lambda: "no match for zzzz" in notes(pilot))


async def test_a_match_in_a_prompt_selects_its_question_and_says_how_to_see_it(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await searched(pilot, "context")
        await until(pilot, lambda: " of " in found(pilot))
        assert "in the prompt for q1 · hybrid · enter shows it" in found(pilot)
        assert screen.focused is screen.answers and screen.answers.highlighted is not None
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))


async def test_an_enlarged_panel_shows_texts_in_full_and_so_is_a_match_beyond_their_rows(recorded: Launch) -> None:
    async with open_replay(recorded, (72, 24)) as pilot:
        screen = replay_of(pilot)
        screen.move_to(4)
        await pilot.press("2", "tab")
        name, view = selected_panel(screen)
        assert name == "written"
        assert "…" in view.text
        await pilot.press("+")
        await until(pilot, lambda: "…" not in view.text)
        await pilot.press("escape")
        await until(pilot, lambda: "…" in view.text)
        name, view = selected_panel(screen)
        assert name == "written" and "remember it" not in view.text, "what is looked for is cut off"
        await searched(pilot, "has to remember it")
        await until(pilot, lambda: " of " in found(pilot))
        for _ in range(20):
            name, view = selected_panel(screen) if screen.focused is not screen.conversation else ("", view)
            if name == "written":
                break
            await pilot.press("n")
        assert name == "written" and "remember it" in " ".join(view.text.split())


def test_words_are_highlighted_whatever_their_case_and_accents() -> None:
    row = Row((Span("  Die Straße in "), Span("CÓRDOBA", "key"), Span(".")))
    spans = marked(row, words_in("strasse cordoba")).spans
    assert [span.text for span in spans if span.tone == "found"] == ["Straße", "CÓRDOBA"]
    assert "".join(span.text for span in spans) == row.text


_OF_THE_README = re.findall(r"breakpoints \(`([^`]+)`", (REPOSITORY / "README.md").read_text())


@pytest.mark.parametrize("text", [*_OF_THE_README, "rank > 2", "changed"])
async def test_the_breakpoints_of_the_readme_work_with_no_line_selected(recorded: Launch, text: str) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("g", "b")
        await typed(pilot, text)
        await pilot.press("c")
        await until(pilot, lambda: "stopped" in found(pilot))


async def test_a_breakpoint_on_a_path_that_no_state_has_is_told(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("b")
        await typed(pilot, 'shared_data["user.city"] == "Girona"')
        await until(pilot, lambda: "The breakpoint is set: c goes to its next stop" in notes(pilot))
        assert "No state has" not in notes(pilot)
        await pilot.press("b")
        await typed(pilot, 'shared_dta["user.city"] == "Girona"')
        said = 'No state has shared_dta["user.city"] in this recording, but shared_data["user.city"]'
        await until(pilot, lambda: said in notes(pilot))


async def test_a_breakpoint_on_a_name_without_its_prefix_names_the_keys_that_are_meant(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("b")
        for text, said in (
            ("shared_data.city", 'no state has shared_data.city in this recording, but shared_data["user.city"]'),
            ("shared_data.nothing", 'no state has shared_data.nothing in this recording, but shared_data["'),
            ('key "nothing"', 'no state has key "nothing" in this recording, but key "'),
        ):
            pilot.app.screen.query_one("#typed", Input).value = text
            await until(pilot, lambda said=said: said in " ".join(text_of(pilot, "#fits").split()))  # type: ignore[misc]


async def test_a_run_without_a_writer_says_that_there_is_none_to_ask_again(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("W")
        await until(pilot, lambda: "no writer to ask again" in notes(pilot) and "rag" in notes(pilot))
        pilot.app.clear_notifications()
        await pilot.press("r", "n", "enter")
        await explained(pilot)
        await pilot.press("W")
        await until(pilot, lambda: "no writer to ask again" in notes(pilot))


async def test_after_the_write_f_tells_the_life_of_the_evidence_and_backspace_returns_to_why(
    recorded: Launch,
) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "j", "enter")
        await explained(pilot)
        await pilot.press("w")
        assert replay_of(pilot).cursor == 4
        await pilot.press("f")
        await until(
            pilot, lambda: isinstance(pilot.app.screen, BiographyScreen) and "said" in text_of(pilot, "#life")
        )
        assert "turn 3" in text_of(pilot, "#life").split("\n")[0], "not the reply of turn 4"
        await pilot.press("escape", "backspace")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        assert replay_of(pilot).cursor == 1
        await pilot.press("escape")
        results = pilot.app.screen
        assert isinstance(results, ResultsScreen) and results.document.cursor == 1, "back where the user came from"
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, ReplayScreen)


async def test_the_legend_explains_channels_and_breakpoints_and_g_says_where_the_end_is(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("K")
        assert isinstance(pilot.app.screen, TextScreen)
        legend = text_of(pilot, "#text")
        assert "superseded" in legend and "rank comparison number" in legend
        await pilot.press("escape")
        await pilot.press("G", "G")
        await until(pilot, lambda: "end of the recording" in notes(pilot))


async def test_a_hit_of_many_turns_lets_the_user_choose_one(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(7)
        await pilot.press("1")
        from memreplay.views.subjects import StoredSubject

        screen.inspection.follow(StoredSubject("hybrid", "somewhere", "passage", ("1", "2", "3", "4", "5")))
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        options = pilot.app.screen.query_one(OptionList)
        assert options.option_count == 5
        options.highlighted = 4
        await pilot.press("enter")
        assert screen.cursor == 6, "the exchange of turn 5 is complete at turn 6"


async def test_panels_before_the_first_turn_say_what_to_press(live_launch: Launch) -> None:
    async with open_replay(live_launch) as pilot:
        await rested(pilot)
        panels = [view for pane in replay_of(pilot).architectures.panes for view in pane.panels]
        assert any("space goes to the first turn" in view.text for view in panels)
        assert all("space" in view.text for view in panels if len(view.document) == 1)


def test_keys_lose_the_ids_that_all_of_them_share() -> None:
    assert short_key("shared_state:b568e4/identity-01/hybrid", "identity-01", "hybrid") == "shared_state"
    planner = "personal_state:planner_agent/b568e4/identity-01/hybrid"
    assert short_key(planner, "identity-01", "hybrid") == "personal_state:planner_agent"
    assert short_key("diary", "identity-01", "hybrid") == "diary"


def test_a_turn_with_two_numbers_shows_both() -> None:
    turns = tuple(
        Turn(id=f"D5:{number}", number=90 + number, session=1, role="user", speaker=None, text="x")
        for number in range(1, 6)
    )
    known = Conversation(id="c", dataset="d", sessions=(Session(number=1, id="s"),), turns=turns, questions=())
    assert turn_words(turns[1]) == "92 (D5:2)"
    assert turns_words(known, ["D5:1", "D5:2"]) == "91 (D5:1), 92 (D5:2)"
    assert turns_words(known, [turn.id for turn in turns]) == "91 (D5:1)…95 (D5:5) (5)"
    assert turn_words(conversation().turns[2]) == "3"


# ---- the start screen ------------------------------------------------------------------------------------------


async def test_enter_in_the_filter_starts_nothing_and_leads_to_the_list(launch: Launch) -> None:
    async with open_app(launch, (120, 36)) as pilot:
        start = pilot.app.screen
        datasets = start.query_one("#datasets", OptionList)
        await until(pilot, lambda: datasets.option_count == 2)
        await pilot.press("slash", *"tech", "enter")
        assert pilot.app.screen is start
        assert datasets.has_focus and datasets.option_count == 1
        await pilot.press("slash", "down")
        assert datasets.has_focus
        await pilot.press("slash", "escape")
        assert datasets.has_focus and datasets.option_count == 2
        assert start.query_one("#filter", Input).value == ""


async def test_several_conversations_of_a_dataset_are_picked_from(launch: Launch) -> None:
    two = replace(launch, one_of=(conversation("tiny-01"), conversation("tiny-02")))
    async with open_app(two) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ConversationScreen))
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, StartScreen)


@pytest.mark.shared_data
async def test_an_imported_run_says_what_was_not_recorded(launch: Launch, tmp_path: Path) -> None:
    run = SHARED_DATA / "goodai" / "benchmark3_1k_gpt4o"
    if not run.exists():
        pytest.skip("no GoodAI run is beside the project")
    import_goodai_run(run, tmp_path / "imported.sqlite3")
    async with open_replay(replace(launch, recording=tmp_path / "imported.sqlite3"), (80, 24)) as pilot:
        for key in ("w", "f", "M", "d", "D", "v"):
            pilot.app.clear_notifications()
            await pilot.press(key)
            await until(pilot, lambda: "was not recorded" in notes(pilot))
            assert isinstance(pilot.app.screen, ReplayScreen)
        await pilot.press("L")
        await until(pilot, lambda: "which alone can continue it" in notes(pilot))
        await pilot.press("H")
        await until(pilot, lambda: "no command of memreplay repeats it" in notes(pilot))
        await pilot.press("1")
        assert replay_of(pilot).conversation.has_focus, "there is no panel of a memory to go to"
        await pilot.press("R")
        assert isinstance(pilot.app.screen, TestsScreen)


async def test_a_key_that_reaches_a_screen_before_it_is_laid_out_does_nothing(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        source = replay_of(pilot).source

        async def assemble() -> RunHandle:
            raise AssertionError("nothing is asked by hand")

        opening = ReplayScreen(source, 1.0, assemble)
        pilot.app.push_screen(opening)
        assert not await pilot.app.run_action("step", opening)
        await until(pilot, lambda: opening.is_mounted)
        assert opening.cursor == 1
        await pilot.press(".")
        assert opening.cursor == 2


async def test_a_search_says_where_it_leads_before_it_goes_there(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("slash", *"Girona")
        await until(pilot, lambda: "matches: turns 5" in text_of(pilot, "#fits"))
        await pilot.press(*"xyz")
        await until(pilot, lambda: text_of(pilot, "#fits") == "no match")


async def test_a_breakpoint_completes_the_paths_of_states_and_says_where_it_stops(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        replay_of(pilot).move_to(8)
        await pilot.press("1")  # a panel without a selected line
        await pilot.press("b", *"shared_d")
        await until(pilot, lambda: isinstance(pilot.app.screen, TypingScreen))
        line = pilot.app.screen.query_one(Input)
        await until(pilot, lambda: bool(line._suggestion))
        await pilot.press("right")
        assert line.value == "shared_data"
        await until(pilot, lambda: "stop" in text_of(pilot, "#fits"))
