"""A run of tests on the screen: live and recorded, with what belongs to which test, and its score as it falls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from memreplay.batch.recorded_run import RunPlan, run_recorded
from memreplay.goodai.importing import import_goodai_run
from memreplay.goodai.run import ShownTests, TestsRunner, listed_tests
from memreplay.goodai.sources import split_specs
from memreplay.runtime.run import start
from memreplay.settings import read_settings
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import ConversationScreen, PickScreen, TextScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.tests import TestsScreen
from memreplay.tui.sources import recorded, recorded_conversations
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.panels.tests import TestsDocument, scores_view
from tests.stubs.tests_to_run import small_definitions
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.unit.goodai.test_importing import LOG, event, result


@pytest.fixture
def tests_launch(launch: Launch, tmp_path: Path) -> Launch:
    """Straight into a live run of two tests, with the real assembly and the embedded reader."""
    shown = ShownTests(read_settings(backend=("full_context",)))
    (conversation,) = shown.load([str(small_definitions(tmp_path / "small", ("Colours",)))], None)
    return replace(
        launch,
        conversation=conversation,
        load=lambda specs, catalog: shown.load(specs, None),
        datasets=listed_tests,
        assemble=lambda backends, model: shown.assemble(backends, model, tmp_path / "live.sqlite3"),
        backends=("full_context",),
    )


def text_of(pilot: Pilot[Any], name: str) -> str:
    return replay_of(pilot).query_one(f"#{name}", LinesView).text


async def step(pilot: Pilot[Any]) -> None:
    screen = replay_of(pilot)
    assert screen.player is not None
    before = screen.frontier
    await pilot.press("full_stop")
    await until(pilot, lambda: screen.frontier > before or screen.player.run.over)


async def test_a_live_run_shows_messages_waits_filler_and_scores_as_they_come(tests_launch: Launch) -> None:
    async with open_replay(tests_launch) as pilot:
        screen = replay_of(pilot)
        await until(pilot, lambda: not screen.player.busy)
        assert text_of(pilot, "conversation").strip() == ""
        assert "first message" in str(screen.query_one("#conversation").border_subtitle)
        await step(pilot)
        assert str(screen.query_one("#conversation").border_subtitle) == ""
        shown = text_of(pilot, "conversation")
        assert "Colours - 0 begins" in shown and "My favourite colour is Red." in shown
        assert "Noted." not in shown
        await step(pilot)
        shown = text_of(pilot, "conversation")
        assert "Noted." in shown and "Colours - 0 waits for" in shown
        assert "running" in text_of(pilot, "answers")
        await step(pilot)
        assert "filler" in text_of(pilot, "conversation")
        await pilot.press("G")
        await until(pilot, lambda: "end · resolved" in text_of(pilot, "conversation"))
        assert screen.player.run.over
        assert "Colours - 1: 1 of 1" in text_of(pilot, "conversation")
        assert "2/2 tests · 2 pts" in str(screen.query_one("#answers").border_title)


async def test_looking_back_shows_the_scores_as_they_were(tests_launch: Launch) -> None:
    async with open_replay(tests_launch) as pilot:
        screen = replay_of(pilot)
        await pilot.press("G")
        await until(pilot, lambda: screen.player.run.over)
        for position in range(screen.timeline.last_turn + 1):
            screen.move_to(position)
            await pilot.pause()
            shown = scores_view(screen.timeline, position)
            assert str(screen.query_one("#answers").border_title) == shown.title
        screen.move_to(0)
        await pilot.pause()
        assert "0/1 tests" in str(screen.query_one("#answers").border_title)


async def test_stopping_keeps_what_was_said_and_stepping_goes_on(tests_launch: Launch) -> None:
    async with open_replay(tests_launch) as pilot:
        screen = replay_of(pilot)
        await pilot.press("G")
        await until(pilot, lambda: screen.frontier >= 2)
        await pilot.press("x")
        await until(pilot, lambda: not screen.player.busy)
        if not screen.player.run.over:
            before = screen.frontier
            await step(pilot)
            assert screen.frontier > before or screen.player.run.over


async def test_the_recording_shows_the_same_from_the_file_alone(tests_launch: Launch, tmp_path: Path) -> None:
    async with open_replay(tests_launch) as pilot:
        screen = replay_of(pilot)
        await pilot.press("G")
        await until(pilot, lambda: screen.player.run.over)
        await until(pilot, lambda: "resolved" in text_of(pilot, "conversation"))
        screen.move_to(4)
        await pilot.pause()
        live = text_of(pilot, "conversation"), text_of(pilot, "answers")
    recorded = replace(tests_launch, conversation=None, recording=tmp_path / "live.sqlite3")
    async with open_replay(recorded) as pilot:
        replay_of(pilot).move_to(4)
        await pilot.pause()
        assert (text_of(pilot, "conversation"), text_of(pilot, "answers")) == live


async def test_several_memories_each_have_a_conversation_of_their_own_so_one_is_chosen(
    tests_launch: Launch,
) -> None:
    async with open_app(replace(tests_launch, backends=("rag", "full_context"))) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert replay_of(pilot).source.backends == ("full_context",)


async def test_results_of_tests_list_every_test_and_lead_to_where_it_was_scored(tests_launch: Launch) -> None:
    async with open_replay(tests_launch, (80, 24)) as pilot:
        screen = replay_of(pilot)
        await pilot.press("r")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ReplayScreen), "no test is over yet"
        await pilot.press("G")
        await until(pilot, lambda: isinstance(pilot.app.screen, TestsScreen))
        assert "2/2" in pilot.app.screen.query_one("#scores", LinesView).text
        listed = pilot.app.screen.query_one("#questions", LinesView).text
        assert "Colours - 0" in listed and "✓ 1 of 1" in listed and "expected Coral" in listed
        totals = pilot.app.screen.query_one("#scores", LinesView).text.splitlines()
        assert totals[0].split() == ["2/2", "all", "datasets"] and totals[1].split() == ["2/2", "Colours"]
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, TextScreen)
        why = pilot.app.screen.query_one("#text", LinesView)
        await until(pilot, lambda: "how it was graded" in why.text)
        assert "Colours - 0" in why.text and "✓ 1 of 1" in why.text
        await pilot.press("escape")
        for key, turn in (("[", 1), ("{", 0)):
            if not isinstance(pilot.app.screen, TestsScreen):
                await pilot.press("r")
                await until(pilot, lambda: isinstance(pilot.app.screen, TestsScreen))
            await pilot.press("j", key)
            await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
            ends = [event for event in screen.timeline.tests if event.test_id == "Colours - 1"]
            assert screen.cursor == (ends[1].turn if turn else ends[0].turn + 1)


async def recorded_batch(path: Path, folder: Path) -> None:
    _, sources = split_specs([str(small_definitions(folder, ("Colours",)))])
    run = start(read_settings(backend=("full_context", "closed_book")), path)
    assert await run_recorded(run, RunPlan(), tests=TestsRunner(run, sources))


async def test_two_memories_of_one_batch_are_held_against_each_other(launch: Launch, tmp_path: Path) -> None:
    path = tmp_path / "batch.sqlite3"
    await recorded_batch(path, tmp_path / "small")
    async with open_app(replace(launch, recording=path, against=path)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ConversationScreen))
        first = pilot.app.screen
        await pilot.press("enter")
        await until(
            pilot, lambda: isinstance(pilot.app.screen, ConversationScreen) and pilot.app.screen is not first
        )
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TestsScreen))
        tests = pilot.app.screen.query_one("#questions", LinesView)
        assert "2 tests in both · points differ on 2" in str(tests.border_title)
        assert "✓ 1 of 1  full_context" in tests.text and "✗ 0 of 1  closed_book" in tests.text
        await pilot.press("]")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await until(pilot, lambda: "Colours - 0: 0 of 1" in text_of(pilot, "conversation"))


async def test_an_imported_run_shows_no_memory_and_marks_scores_that_differ(launch: Launch, tmp_path: Path) -> None:
    folder, path = tmp_path / "agent", tmp_path / "r.sqlite3"
    (folder / "Colours").mkdir(parents=True)
    (folder / "ChapterBreak").mkdir()
    (folder / "master_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LOG))
    (folder / "Colours" / "0_0.json").write_text(json.dumps(result(0, ["Teal"])))
    (folder / "ChapterBreak" / "0_0.json").write_text(json.dumps(result(0.5, ["2"])))
    import_goodai_run(folder, path)
    async with open_replay(replace(launch, recording=path), (80, 24)) as pilot:
        assert not replay_of(pilot).architectures.display
        await pilot.press("G")
        await pilot.pause()
        assert "1 ≠0 Colours - 0" in text_of(pilot, "answers")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, TestsScreen))
        assert (
            "1 scored differently here · 1 not scored again"
            in pilot.app.screen.query_one("#scores", LinesView).text
        )
        listed = pilot.app.screen.query_one("#questions", LinesView).text
        assert "1 of 1, recorded as 0" in listed and "0.5 of 1, as recorded" in listed


def test_picking_lists_no_folder_and_runs_no_file() -> None:
    assert {entry.id for entry in listed_tests()} >= {"colours", "jokes"}
    assert all(entry.description.startswith("interactive tests") for entry in listed_tests())


def test_long_filler_is_cut_and_hostile_text_stays_text(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    (folder / "Colours").mkdir(parents=True)
    (folder / "ChapterBreak").mkdir()
    filler = event(3, "", 3706, message="\n".join(f"Q {number}" for number in range(40)), is_question=False)
    (folder / "master_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*LOG, filler]))
    (folder / "Colours" / "0_0.json").write_text(json.dumps(result(1, ["Teal"])))
    (folder / "ChapterBreak" / "0_0.json").write_text(json.dumps(result(1, ["2"])))
    import_goodai_run(folder, tmp_path / "r.sqlite3")
    (one,) = recorded_conversations(tmp_path / "r.sqlite3")
    document = TestsDocument(recorded(tmp_path / "r.sqlite3", one.id).timeline)
    texts = [[row.text for row in document.rows(index, 60)] for index in range(len(document))]
    assert texts[-1][-1].strip() == "… 36 more rows of filler"
    assert all(len(rows) == document.height(index, 60) for index, rows in enumerate(texts))
    assert "[bold]" in "\n".join(texts[2]) and "\x1b" not in "\n".join(map("\n".join, texts))
    assert any("restarts with an empty memory" in row for row in texts[0])


async def test_of_tests_that_run_alone_one_is_picked(tests_launch: Launch, tmp_path: Path) -> None:
    shown = ShownTests(read_settings(backend=("full_context",), isolated=True))
    found = list(shown.load([str(small_definitions(tmp_path / "alone", ("Colours",)))], None))
    launch = replace(
        tests_launch,
        conversation=None,
        one_of=tuple(found),
        assemble=lambda backends, model: shown.assemble(backends, model, tmp_path / "alone.sqlite3"),
    )
    async with open_app(launch) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ConversationScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await step(pilot)
        assert "Colours - 1 begins" in text_of(pilot, "conversation")
