"""Sessions say what they are: interrupted ones are continued, live ones are not left by accident."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from memreplay.paths import demo_recording
from memreplay.recording.overview import overview_of
from memreplay.recording.reader import Recording
from memreplay.runtime.recorded import continued
from memreplay.runtime.run import Run
from memreplay.settings import Settings, command_line
from memreplay.trust import Consent
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import PickScreen, TextScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.sources import commands_of, recorded
from tests.tui.builder import conversation
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import header_of, panel_text, rested, text_of, typed

MEMORIES = ("full_context", "closed_book")


async def interrupted(path: Path, turns: int, asks: int = 0) -> Path:
    """A recording of a live run by the real engine that was left after some turns, or after some answers."""
    run = Run(Settings(backend=MEMORIES), path)
    session = run.start_session(conversation())
    await session.open()
    for _ in range(turns):
        await session.step()
    for ask in session.asks()[:asks]:
        await session.ask(ask.question, ask.backend, ask.model)
    await session.close("cancelled")
    await run.finish("interrupted")
    return path


@pytest.fixture
def stopped(tmp_path: Path, launch: Launch) -> Launch:
    """Straight into a recording that was interrupted at turn 3 of 8."""
    path = asyncio.run(interrupted(tmp_path / "stopped.sqlite3", 3))

    def resume(recording: Path, settings: Mapping[str, Any], consent: Consent) -> Run:
        return continued(recording, settings, Settings(), consent)

    return replace(launch, recording=path, recordings=lambda: [path], resume=resume)


def listed(pilot: Pilot[None]) -> list[str]:
    """The recordings of the start screen, as they are listed."""
    options = pilot.app.screen.query_one("#recordings", OptionList)
    return [str(options.get_option_at_index(place).prompt) for place in range(options.option_count)]


async def test_the_list_says_of_each_recording_when_what_how_far_and_how_well(
    launch: Launch, tmp_path: Path
) -> None:
    made = [await interrupted(tmp_path / "a.sqlite3", 3), await interrupted(tmp_path / "b.sqlite3", 8, 2)]
    paths = [*launch.recordings(), *made]
    broken = tmp_path / "c.sqlite3"
    broken.write_bytes(b"SQLite format 3\x00 or so")
    paths.append(broken)
    async with open_app(replace(launch, recordings=lambda: paths)) as pilot:
        await until(pilot, lambda: len(listed(pilot)) == 4 and "cannot be read" in listed(pilot)[3])
        demo, three, asked, _ = listed(pilot)
        assert "finished" in demo and "tiny-01" in demo and "hybrid 2/3 · rag 1/2" in demo
        assert "interrupted at turn 3 of 8" in three and "full_context · closed_book" in three
        assert "interrupted at answer 2 of 6" in asked


async def test_a_session_that_was_just_saved_is_in_the_list(live_launch: Launch, tmp_path: Path) -> None:
    saved = tmp_path / "live.sqlite3"
    known = live_launch.recordings()
    there = replace(live_launch, recordings=lambda: [*known, *([saved] if saved.exists() else [])])
    async with open_replay(there) as pilot:
        await rested(pilot)
        await pilot.press("space")
        await until(pilot, lambda: replay_of(pilot).cursor == 1)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        await until(pilot, lambda: any("interrupted at turn 1 of 8" in entry for entry in listed(pilot)))


async def test_an_interrupted_recording_shows_what_memory_never_heard(stopped: Launch) -> None:
    async with open_replay(stopped) as pilot:
        screen = replay_of(pilot)
        assert "interrupted at turn 3 · L continues it live" in header_of(pilot)
        assert "┈┈" in screen.strip.text
        for turn, heard in ((3, True), (4, False), (8, False)):
            screen.move_to(turn)
            await pilot.pause()
            shown = panel_text(screen, "full_context", "context log")
            assert ("memory never heard this turn" not in shown) == heard, turn


async def test_an_interrupted_batch_run_names_what_continues_it(stopped: Launch) -> None:
    assert stopped.recording is not None
    with closing(sqlite3.connect(stopped.recording)) as file, file:
        file.execute("UPDATE runs SET settings = json_set(settings, '$.closed_book_asked_along', json('true'))")
    async with open_replay(stopped) as pilot:
        assert "interrupted at turn 3 · --resume continues it" in header_of(pilot)


async def test_an_interrupted_recording_is_continued_live_in_the_same_file(stopped: Launch) -> None:
    path = stopped.recording
    assert path is not None
    async with open_replay(stopped) as pilot:
        await pilot.press("L")
        await pilot.pause()
        await until(pilot, lambda: replay_of(pilot).player is not None)
        await until(pilot, lambda: replay_of(pilot).cursor == 3)
        await rested(pilot)
        assert "LIVE" in header_of(pilot)
        assert "I am Marta Vidal" in panel_text(replay_of(pilot), "full_context", "context log")
        await pilot.press("G")
        await until(pilot, lambda: overview_of(path).progress == "finished")
    assert str(overview_of(path).answers) == "6/6"
    with closing(Recording.open(path)) as recording:
        assert len(recording.runs()) == 1
        played = [event.turn for event in recording.events(recording.run().id, "tiny-01", ("turn_played",))]
    assert played == list(range(1, 9))


async def test_answers_of_an_interrupted_recording_are_kept_and_not_asked_again(
    stopped: Launch, tmp_path: Path
) -> None:
    path = await interrupted(tmp_path / "asked.sqlite3", 8, 4)

    def asked() -> list[tuple[str, str]]:
        with closing(Recording.open(path)) as recording:
            events = recording.events(recording.run().id, "tiny-01", ("question_asked",))
            return [(event.question_id, event.backend) for event in events]  # type: ignore[union-attr]

    before = asked()
    async with open_replay(replace(stopped, recording=path)) as pilot:
        await pilot.press("L")
        await until(pilot, lambda: replay_of(pilot).player is not None and replay_of(pilot).cursor == 8)
        await rested(pilot)
        assert len(list(replay_of(pilot).timeline.answers())) == 4
        await pilot.press("G")
        await until(pilot, lambda: overview_of(path).progress == "finished")
    assert asked()[:4] == before
    assert len(asked()) == len(set(asked())) == 6


async def test_a_finished_recording_has_nothing_to_continue(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        assert "interrupted" not in header_of(pilot)
        await pilot.press("L")
        await pilot.pause()
        assert "is finished" in " ".join(str(note.message) for note in pilot.app._notifications)


async def test_escape_asks_before_it_leaves_a_live_run_but_not_a_recording(
    live_launch: Launch, recorded: Launch
) -> None:
    async with open_replay(live_launch) as pilot:
        await rested(pilot)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, PickScreen)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, ReplayScreen), "staying is the first choice"
        await pilot.press("escape", "escape")
        assert isinstance(pilot.app.screen, ReplayScreen)
    async with open_replay(recorded) as pilot:
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))


async def test_a_bookmark_on_the_first_screen_of_a_live_run_is_in_its_recording(
    live_launch: Launch, tmp_path: Path
) -> None:
    async with open_replay(live_launch) as pilot:
        await pilot.press("m")
        await typed(pilot, "start here")
        await rested(pilot)
        assert [one.mark for one in replay_of(pilot).source.annotations.bookmarks()] == ["start"]


async def test_a_session_shows_the_commands_that_repeat_it(live_launch: Launch) -> None:
    async with open_replay(live_launch, (200, 36)) as pilot:
        await pilot.press("H")
        assert isinstance(pilot.app.screen, TextScreen)
        words = " ".join(text_of(pilot, "#text").split())
        assert words.startswith("memreplay datasets export ")
        assert "live.sqlite3 --conversation tiny-01 --output ./tiny-01.json" in words, "no shipped dataset holds it"
        assert "memreplay --batch --dataset ./tiny-01.json " in words


def test_the_commands_that_repeat_a_run_name_all_its_datasets() -> None:
    export, run = commands_of(recorded(demo_recording(), "identity-01"))
    assert export.endswith("--conversation long-04-sessions-1-2 --output ./long-04-sessions-1-2.json")
    assert "--dataset identity-01 --dataset ./long-04-sessions-1-2.json " in run


def test_the_command_line_has_what_differs_from_the_defaults() -> None:
    given = Settings(backend=("rag",), top_k=3, ablate=("date", "verbatim"), cache=False, shuffle_choices=True)
    assert command_line(given.public()) == [
        *("--backend", "rag"),
        *("--top-k", "3"),
        *("--ablate", "date", "--ablate", "verbatim"),
        "--shuffle-choices",
        "--no-cache",
    ]
    assert command_line(Settings().public()) == []


async def test_the_browser_says_where_an_interrupted_run_left_the_memory(stopped: Launch) -> None:
    async with open_replay(stopped, (120, 36)) as pilot:
        await pilot.press("G", "M")
        await until(pilot, lambda: "1 item" in text_of(pilot, "#header"))
        assert "as the interrupted run left it after turn 3" in text_of(pilot, "#header")
        assert "after turn 8" not in text_of(pilot, "#header")
