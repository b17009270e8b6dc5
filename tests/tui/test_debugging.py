"""From a wrong answer to the write that should have happened, and back: the replay screen as a debugger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from app.recording.annotations import annotations_of
from app.recording.store import Recording
from app.replay.annotations import Annotations
from app.tui.launch import Launch
from app.tui.screens.beside import BesideScreen
from app.tui.screens.biography import BiographyScreen
from app.tui.screens.compare import CompareScreen
from app.tui.screens.pick import PickScreen
from app.tui.screens.replay import ReplayScreen
from app.tui.screens.results import ResultsScreen
from app.tui.screens.typing import TypingScreen
from app.tui.screens.why import WhyScreen
from app.tui.subjects import ValueSubject
from app.tui.widgets.lines_view import LinesView
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import record
from tests.tui.conftest import open_app, open_replay, replay_of, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "run.sqlite3")


@pytest.fixture
def recorded(launch: Launch, path: Path) -> Launch:
    """Straight into a recording."""
    return replace(launch, recording=path)


def text_of(pilot: Pilot[None], selector: str) -> str:
    return pilot.app.screen.query_one(selector, LinesView).text


def found(pilot: Pilot[None]) -> str:
    bar = replay_of(pilot).query_one("#found", LinesView)
    return bar.text if bar.display else ""


def header_of(pilot: Pilot[None]) -> str:
    return replay_of(pilot).query_one("#header", LinesView).text


def panel_text(screen: ReplayScreen, backend: str, name: str) -> str:
    pane = next(pane for pane in screen.architectures.panes if pane.backend == backend)
    return next(view.text for view in pane.panels if view.panel.name == name)


def questions_title(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one("#questions").border_title)


async def typed(pilot: Pilot[None], text: str) -> None:
    """Type into the one line that is open, and enter it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, TypingScreen))
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await pilot.pause()


async def explained(pilot: Pilot[None]) -> None:
    """Where the fact was lost has been worked out."""
    await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
    await until(pilot, lambda: "the architectures" in text_of(pilot, "#verdict"))


def kept(path: Path) -> Annotations:
    recording = Recording.open(path)
    run = recording.run().id
    name = recording.conversation_ids(run)[0]
    recording.close()
    return annotations_of(path, run, name)


# ---- why, and the way to the write ----


async def test_three_keys_lead_from_a_wrong_answer_to_where_it_should_have_been_written(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("r")
        assert isinstance(pilot.app.screen, ResultsScreen)
        await pilot.press("j")
        await pilot.press("enter")
        await explained(pilot)
        await pilot.press("w")
        assert pilot.app.screen is screen
        assert screen.cursor == 4, "the exchange of turn 3 is complete at turn 4"
        assert screen.architectures.focused_backend == "hybrid"
        assert "Turn 3" in found(pilot)
        assert "DROP" in panel_text(screen, "hybrid", "promotions")
        await pilot.press("backspace")
        assert screen.cursor == 1
        assert found(pilot) == ""


async def test_results_name_the_failures_and_are_narrowed_by_failure_and_by_disagreement(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "unparsed" in text_of(pilot, "#questions"))
        await pilot.press("f")
        picked = pilot.app.screen.query_one(OptionList)
        names = [str(picked.get_option_at_index(index).prompt) for index in range(picked.option_count)]
        assert names[:3] == ["all · 3", "disagreement · 3", "not right · 3"]
        assert {"error · 1", "unparsed · 1"} <= set(names)
        picked.highlighted = names.index("unparsed · 1")
        await pilot.press("enter")
        assert questions_title(pilot) == "questions · unparsed · 1 of 3"
        shown = text_of(pilot, "#questions")
        assert "3. " in shown and "Barcelona or Girona" in shown
        assert "1. " not in shown and "2. " not in shown
        await pilot.press("enter")
        await explained(pilot)
        assert "“Barcelona or Girona”" in text_of(pilot, "#verdict")
        await pilot.press("escape")
        await pilot.press("t")
        assert replay_of(pilot).cursor == 5


async def test_why_shows_the_prompt_the_reply_its_reading_and_the_other_architectures(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "enter")
        await explained(pilot)
        verdict = text_of(pilot, "#verdict")
        assert "What is the user's full name?" in verdict
        assert "expected  Marta Vidal" in verdict
        assert "! the collection does not answer" in verdict
        assert [name for name in ("hybrid", "rag", "full_context") if name in verdict] == [
            "hybrid",
            "rag",
            "full_context",
        ]
        assert "✗ turn 1 is not in this prompt" in text_of(pilot, "#prompt")
        await pilot.press("right")
        assert "full_context" in text_of(pilot, "#header")
        assert "The conversation does not say." in text_of(pilot, "#verdict")
        await pilot.press("escape", "escape")
        assert isinstance(pilot.app.screen, ReplayScreen)


async def test_enter_on_an_answer_beside_the_conversation_opens_why(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.pause()
        screen.query_one("#answers").focus()
        await pilot.press("down", "enter")
        await explained(pilot)
        assert "What is the user's full name?" in text_of(pilot, "#verdict")


async def test_who_wrote_this_leads_to_the_command_and_back(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.press("1")
        view = next(view for view in screen.architectures.panes[0].panels if view.panel.name == "shared state")
        view.focus()
        await pilot.pause()
        key = screen.timeline.state_keys("hybrid")[1]
        lines = range(len(view.document))
        place = next(
            at
            for at in lines
            if view.document.subject(at) == ValueSubject("hybrid", key, ("shared_data", "user.name"))
        )
        view.select(place)
        await pilot.press("w")
        assert screen.cursor <= 8
        assert "redis SET shared_state:" in found(pilot)
        await pilot.press("backspace")
        assert screen.cursor == 8
        assert screen.focused is view


async def test_following_a_hit_leads_to_the_turn_that_stored_it(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(7)
        await pilot.press("3")
        await pilot.press("down")
        await pilot.press("enter")
        assert screen.cursor in (2, 4, 6)
        assert "redis APPEND full_history:" in found(pilot)


async def test_the_biography_tells_the_whole_way_of_a_fact(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(3)
        await pilot.press("f")
        await until(
            pilot, lambda: isinstance(pilot.app.screen, BiographyScreen) and "said" in text_of(pilot, "#life")
        )
        life = text_of(pilot, "#life")
        for step in ("said", "heard", "DROP 0.41 of 0.60", "a number in passing", "retrieved", "asked"):
            assert step in life
        await pilot.press("right")
        assert "DROP" not in text_of(pilot, "#life")
        await pilot.press("down", "down", "enter")
        assert pilot.app.screen is screen
        assert screen.cursor in (3, 4)


# ---- moving ----


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
        screen._seconds_a_turn = 60
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


# ---- what changed, and the other pages ----


async def test_comparing_cycles_through_turn_before_bookmark_architectures_and_off(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(2)
        await pilot.press("m")
        await typed(pilot, "start here it begins")
        screen.move_to(6)
        shown = []
        for _ in range(7):
            await pilot.press("d")
            shown.append((header_of(pilot), panel_text(screen, "hybrid", "shared state")))
        assert "± since the turn before" in shown[0][0]
        assert "± since ★ start (turn 2)" in shown[1][0]
        assert "unchanged" in shown[1][1]
        assert "+" in shown[1][1]
        assert "± against hybrid" in shown[2][0]
        assert "± off" in shown[5][0]
        assert "+ " not in shown[5][1]
        assert "±" not in shown[6][0]


async def test_before_and_after_stand_side_by_side(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(5)
        await pilot.press("1", "D")
        assert isinstance(pilot.app.screen, BesideScreen)
        before, after = text_of(pilot, "#before").split("\n"), text_of(pilot, "#after").split("\n")
        assert len(before) == len(after)
        assert any(line.startswith("~") for line in after)
        await pilot.press("escape")
        assert pilot.app.screen is screen


async def test_pages_show_candidates_composition_ledger_commands_and_raw_events(recorded: Launch) -> None:
    async with open_replay(recorded, (160, 60)) as pilot:
        screen = replay_of(pilot)
        screen.move_to(6)
        await pilot.press("v")
        await pilot.pause()
        assert "dense 1 (0.60)" in panel_text(screen, "hybrid", "candidates")
        assert "tokens" not in panel_text(screen, "full_context", "candidates")
        assert "█" in panel_text(screen, "full_context", "context")
        ledger = panel_text(screen, "hybrid", "promotion ledger")
        assert "certainty 0.95 × impact 0.90" in " ".join(ledger.split())
        assert ledger.index("user.city") < ledger.index("database.port") < ledger.index("user.name")
        await pilot.press("v")
        await pilot.pause()
        assert "0.2 ms" in panel_text(screen, "hybrid", "operations")
        assert '"command": "SET"' in panel_text(screen, "hybrid", "raw events")
        await pilot.press("v")
        assert "shared state" in [view.panel.name for view in screen.architectures.panes[0].panels]


async def test_significance_colours_the_conversation_with_signs_of_its_own(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.press("s")
        text = screen.query_one("#conversation", LinesView).text
        assert "┃ Hello. I am Marta" in text
        assert "╎ A billing service" in text
        await pilot.press("s")
        assert "┃" not in screen.query_one("#conversation", LinesView).text


# ---- bookmarks, watches, search ----


async def test_bookmarks_with_notes_are_saved_with_the_recording_and_lead_back(
    recorded: Launch, path: Path
) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(5)
        await pilot.press("m")
        await typed(pilot, "city she moved [bold]")
        assert "★" in screen.strip.text
        await pilot.press("g", "apostrophe")
        assert isinstance(pilot.app.screen, PickScreen)
        await pilot.press("enter")
        assert screen.cursor == 5
        assert "she moved [bold]" in found(pilot)
    assert [(mark.mark, mark.turn, mark.note) for mark in kept(path).bookmarks()] == [
        ("city", 5, "she moved [bold]")
    ]
    async with open_replay(recorded) as pilot:
        assert "★" in replay_of(pilot).strip.text
        replay_of(pilot).move_to(5)
        await pilot.press("m")
        await typed(pilot, "")
        assert "★" not in replay_of(pilot).strip.text
    assert not kept(path).bookmarks()


async def test_a_watch_stops_forward_and_back_and_is_saved(recorded: Launch, path: Path) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("b")
        await typed(pilot, "shared_data ==")
        assert isinstance(pilot.app.screen, TypingScreen), "what cannot be read is refused where it is typed"
        await typed(pilot, 'shared_data["user.city"] exists')
        await pilot.press("c")
        assert screen.cursor == 6
        assert "stopped" in found(pilot)
        await pilot.press("G", "C")
        assert screen.cursor == 6
        await pilot.press("B", "enter", "g", "c")
        assert screen.cursor == 0, "a watch that is off stops nowhere"
    assert [watch.enabled for watch in kept(path).watches()] == [False]


async def test_a_search_walks_through_the_whole_session(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("slash")
        await typed(pilot, "GIRONA")
        await until(pilot, lambda: "matches" in found(pilot))
        first = screen.cursor
        await pilot.press("n")
        await until(pilot, lambda: screen.cursor != first)
        await pilot.press("N")
        await until(pilot, lambda: screen.cursor == first)
        await pilot.press("slash")
        await typed(pilot, "nowhere to be found")
        await pilot.pause()
        assert screen.cursor == first


# ---- asking by hand, live ----


async def rested(pilot: Pilot[None]) -> None:
    player = replay_of(pilot).player
    assert player is not None
    await until(pilot, lambda: not player.busy)


async def test_a_question_by_hand_is_answered_from_memory_as_it_stood(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        await pilot.press("4", ".")
        await until(pilot, lambda: screen.cursor == 4)
        await rested(pilot)
        screen.move_to(2)
        held = {name: await backend.snapshot() for name, backend in assembly.backends.items()}
        await pilot.press("a", "down", "enter")
        await explained(pilot)
        assert "asked by hand" in text_of(pilot, "#header")
        assert "at turn 2" in text_of(pilot, "#header")
        await pilot.press("escape")
        assert "by hand, turn 2" in screen.query_one("#answers", LinesView).text
        assert {name: await backend.snapshot() for name, backend in assembly.backends.items()} == held
        await pilot.press("a", "enter")
        await typed(pilot, "Who is [bold]Marta[/]?")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        assert "Who is [bold]Marta[/]?" in text_of(pilot, "#verdict")


async def test_a_live_run_plays_on_until_a_watch_stops_it(live_launch: Launch) -> None:
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        await pilot.press("b")
        await typed(pilot, 'text contains "Girona"')
        await pilot.press("c")
        await until(pilot, lambda: "stopped" in found(pilot))
        assert screen.cursor == 5
        await rested(pilot)
        assert screen.frontier <= 6


# ---- two recordings, keys ----


async def test_two_recordings_are_laid_against_each_other_and_opened_at_the_same_turn(
    recorded: Launch, tmp_path: Path
) -> None:
    other = record(tmp_path / "other.sqlite3")
    async with open_app(replace(recorded, against=other)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen))
        questions = text_of(pilot, "#questions")
        assert "8 turns in both" in text_of(pilot, "#header")
        assert questions.count("hybrid") == 6
        assert "3 questions in both · answers disagree on 3" in questions_title(pilot)
        await pilot.press("j", "2")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen) and replay_of(pilot).cursor > 1)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, CompareScreen)
        await pilot.press("escape")


async def test_keys_are_those_of_the_configuration(recorded: Launch) -> None:
    async with open_replay(replace(recorded, keys={"replay.step": "f5,z"})) as pilot:
        screen = replay_of(pilot)
        await pilot.press("f5", "z")
        assert screen.cursor == 3
        await pilot.press(".")
        assert screen.cursor == 3
