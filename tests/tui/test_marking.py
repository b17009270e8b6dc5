"""Bookmarks, breakpoints and search: ways back to a place in a session."""

from __future__ import annotations

from pathlib import Path

from memreplay.batch.report import results_of_run
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording
from memreplay.timeline.annotations import Annotations
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import explained, found, rested, text_of, typed


def kept(path: Path) -> Annotations:
    recording = Recording.open(path)
    run = recording.run().id
    name = recording.conversation_ids(run)[0]
    recording.close()
    return annotations_of(path, run, name)


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


async def test_a_breakpoint_stops_forward_and_back_and_is_saved(recorded: Launch, path: Path) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("b")
        await typed(pilot, "shared_data ==")
        assert isinstance(pilot.app.screen, TypingScreen), "the dialog refuses what it cannot parse"
        await typed(pilot, 'shared_data["user.city"] exists')
        await pilot.press("c")
        assert screen.cursor == 6
        assert "stopped" in found(pilot)
        await pilot.press("G", "C")
        assert screen.cursor == 6
        await pilot.press("B", "enter", "g", "c")
        assert screen.cursor == 0, "a disabled breakpoint stops nowhere"
        await pilot.press("b")
        await typed(pilot, 'hit "point-2"')
        await pilot.press("c")  # retrievals are indexed in a thread first
        await until(pilot, lambda: screen.cursor == 3)
    assert [watch.enabled for watch in kept(path).breakpoints()] == [False, True]


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


async def test_a_live_run_plays_until_a_breakpoint_stops_it(live_launch: Launch) -> None:
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


async def test_answers_labelled_on_the_why_screen_are_saved_and_compared_with_the_grader(
    recorded: Launch, path: Path
) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "enter", "right")
        await explained(pilot)
        await pilot.press("y")
        assert "by hand    right" in text_of(pilot, "#verdict")
        await pilot.press("Y")
        assert "by hand    wrong" in text_of(pilot, "#verdict")
        await pilot.press("Y")
        assert "by hand" not in text_of(pilot, "#verdict"), "the same label again removes it"
        await pilot.press("Y")
    (label,) = kept(path).labels().items()
    assert label[1] == "wrong"
    recording = Recording.open(path)
    results = results_of_run(recording, recording.run())
    recording.close()
    (row,) = [row for row in results.questions if row.label]
    assert (row.backend, row.question_id, row.label) == (label[0].backend, label[0].question_id, "wrong")
    (agreement,) = results.agreement
    assert (agreement.a, agreement.b, agreement.n) == ("grader", "hand", 1)


async def test_an_answer_without_a_reply_cannot_be_labelled(recorded: Launch, path: Path) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "enter")
        await explained(pilot)
        assert "! the collection does not answer" in text_of(pilot, "#verdict")
        await pilot.press("y")
    assert not kept(path).labels()
