"""A live run: the real engine over real memories with embedded stores, from the first turn to the results."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from memory_backends.base import Snapshot
from memreplay.errors import MissingServerOrKeyError
from memreplay.recording.reader import Recording
from memreplay.timeline.timeline import Timeline
from memreplay.tui.launch import Launch
from memreplay.tui.live import LiveRun
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import conversation
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import header_of, rested


def status_in(assembly: StubAssembly) -> str:
    recording = Recording.open(assembly.recording_path)
    try:
        return recording.runs()[-1].status
    finally:
        recording.close()


def filled(snapshot: Snapshot) -> Snapshot:
    """Without the collections that are there and empty: the trace tells of points alone."""
    points = {
        store: filled
        for store, collections in snapshot.points.items()
        if (filled := {name: held for name, held in collections.items() if held})
    }
    return Snapshot(values=snapshot.values, points=points)


def shown_at(screen: ReplayScreen, backend: str, turn: int) -> Snapshot:
    return filled(screen.timeline.snapshot_at(backend, turn))


async def test_each_step_shows_what_the_stores_hold_then_and_later(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    held: dict[tuple[int, str], Snapshot] = {}
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        for turn in range(1, 9):
            await pilot.press(".")
            await until(pilot, lambda turn=turn: screen.cursor == turn)  # type: ignore[misc]
            for name, backend in assembly.backends.items():
                held[turn, name] = await backend.snapshot()
                assert shown_at(screen, name, turn) == filled(held[turn, name])
        assert "LIVE" in header_of(pilot)
        assert "turn 8/8" in header_of(pilot)
        for turn in range(7, 0, -1):
            await pilot.press(",")
            assert screen.cursor == turn
            for name in assembly.backends:
                assert shown_at(screen, name, turn) == filled(held[turn, name])
        log = next(view for view in screen.architectures.panes[2].panels if view.panel.name == "context log")
        stored = next(iter(held[1 + 1, "full_context"].values["redis"].values()))
        await pilot.press(".")
        assert "".join(log.text.split()) == "".join(stored.split())


async def test_stepping_back_and_forth_executes_nothing(live_launch: Launch, assembly: StubAssembly) -> None:
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        for turn in range(1, 5):
            await pilot.press(".")
            await until(pilot, lambda turn=turn: screen.cursor == turn)  # type: ignore[misc]
        events = [len(screen.timeline.events_at(name, turn)) for name in assembly.backends for turn in range(10)]
        await pilot.press(",", ",", ".", "g", "]", ".", ".")
        assert screen.cursor <= screen.frontier == 4
        await pilot.pause()
        after = [len(screen.timeline.events_at(name, turn)) for name in assembly.backends for turn in range(10)]
        assert after == events


async def test_keys_pressed_ahead_play_as_many_turns(live_launch: Launch) -> None:
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await pilot.press(".", ".", ".", ".")
        await until(pilot, lambda: screen.cursor == 4)
        await rested(pilot)
        assert screen.cursor == screen.frontier == 4


async def test_a_step_before_the_screen_has_caught_up_plays_a_turn_too(live_launch: Launch) -> None:
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        screen.action_step()
        screen.action_step()
        while screen.frontier == 0:  # noqa: ASYNC110  # the moment between playing and painting
            await asyncio.sleep(0)
        screen.action_step()
        await until(pilot, lambda: screen.cursor == 3)


async def test_to_the_end_plays_all_asks_all_and_opens_the_results(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    async with open_replay(live_launch) as pilot:
        await pilot.press("G")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        scores = pilot.app.screen.query_one("#scores", LinesView).text
        rows = [line.split() for line in scores.splitlines()[1:]]
        assert [row[1:5] for row in rows] == [[name, "1/3", "33", "%"] for name in assembly.backend_names]
        assert "expected Marta Vidal" in pilot.app.screen.query_one("#details", LinesView).text
        await pilot.press("escape")
        assert "turn 8/8" in header_of(pilot)
        await pilot.press(".")
        assert "closed" in header_of(pilot)
        shared = next(
            view for view in replay_of(pilot).architectures.panes[0].panels if view.panel.name == "shared state"
        )
        shared.focus()
        shared.select(len(shared.document) - 1)
        assert '"status"' not in shared.text
        await pilot.press("enter")
        assert '"status": "resolved"' in shared.text, "enter opens the whole state"
    assert assembly.status == "finished"
    assert status_in(assembly) == "finished"


async def test_asking_shows_its_progress_and_lets_the_user_move_about(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    assembly.answerer.open_gate.clear()
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await pilot.press("G")
        await until(pilot, lambda: bool(assembly.answerer.asked) and "asking 0/9" in header_of(pilot))
        await pilot.press("g", ".", ".")
        assert screen.cursor == 2
        assembly.answerer.open_gate.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        await pilot.press("escape")
        assert screen.cursor == 2
        assert len(assembly.answerer.asked) == 9


async def test_asking_can_be_stopped_and_resumed(live_launch: Launch, assembly: StubAssembly) -> None:
    assembly.answerer.open_gate.clear()
    async with open_replay(live_launch) as pilot:
        await pilot.press("G")
        await until(pilot, lambda: bool(assembly.answerer.asked))
        await pilot.press("x")
        await rested(pilot)
        assert isinstance(pilot.app.screen, ReplayScreen)
        assert "G asks the questions" in header_of(pilot)
        assembly.answerer.open_gate.set()
        await pilot.press("G")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        table = pilot.app.screen.query_one("#scores", LinesView).text
        assert table.count("1/3") == 3


async def test_a_missing_server_is_reported_in_one_sentence(live_launch: Launch, assembly: StubAssembly) -> None:
    assembly.trouble = MissingServerOrKeyError("redis at localhost:1 does not answer")
    async with open_replay(live_launch) as pilot:
        trouble = replay_of(pilot).query_one("#trouble", LinesView)
        await until(pilot, lambda: trouble.display)
        assert trouble.text == "! redis at localhost:1 does not answer"


async def test_an_engine_that_breaks_is_reported_and_the_screen_stays(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    assembly.trouble = ZeroDivisionError("[bold]of all things[/]")
    async with open_replay(live_launch) as pilot:
        trouble = replay_of(pilot).query_one("#trouble", LinesView)
        await until(pilot, lambda: trouble.display)
        assert "ZeroDivisionError: [bold]of all things[/]" in trouble.text


async def test_quitting_in_the_middle_keeps_the_run_as_interrupted(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await pilot.press(".", ".")
        await until(pilot, lambda: screen.cursor == 2)
        await pilot.press("q")
    assert assembly.status == "interrupted"
    assert status_in(assembly) == "interrupted"
    recording = Recording.open(assembly.recording_path)
    kinds = [event.kind for event in recording.events(recording.runs()[-1].id, "tiny-01")]
    recording.close()
    assert kinds.count("turn_played") == 2
    assert kinds.count("conversation_closed") == 3


async def test_quitting_while_a_model_is_asked_does_not_wait_for_it(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    assembly.answerer.open_gate.clear()
    async with open_replay(live_launch) as pilot:
        await pilot.press("G")
        await until(pilot, lambda: bool(assembly.answerer.asked))
        await pilot.press("q")
        await until(pilot, lambda: assembly.status == "interrupted")
    assert not assembly.answerer.open_gate.is_set()


async def test_leaving_a_live_run_leads_to_the_start_and_says_where_it_is_saved(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    async with open_replay(live_launch) as pilot:
        await pilot.press(".")
        await until(pilot, lambda: replay_of(pilot).cursor == 1)
        await pilot.press("escape", "down", "enter")
        assert isinstance(pilot.app.screen, StartScreen)
        await until(pilot, lambda: assembly.status == "interrupted")
        await until(pilot, lambda: "live.sqlite3" in pilot.app.screen.query_one("#status", LinesView).text)


async def test_what_was_played_live_plays_again_from_the_recording_alone(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    lived: list[str] = []
    async with open_replay(live_launch) as pilot:
        await pilot.press("G")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        await pilot.press("escape", "g")
        for _ in range(9):
            await pilot.press(".")
            lived += [view.text for pane in replay_of(pilot).architectures.panes for view in pane.panels]
    seen: list[str] = []
    played_again = replace(live_launch, conversation=None, recording=assembly.recording_path)
    async with open_replay(played_again) as pilot:
        await pilot.press("g")
        for _ in range(9):
            await pilot.press(".")
            seen += [view.text for pane in replay_of(pilot).architectures.panes for view in pane.panels]
    assert seen == lived


async def test_a_run_can_be_left_before_its_memories_are_open(assembly: StubAssembly) -> None:
    run = LiveRun(assembly, Timeline(conversation()), lambda event: None)
    await run.abandon()
    await run.abandon()
    assert assembly.status == "interrupted"
    assert run.over


async def test_the_start_screen_starts_a_live_run_with_what_is_ticked(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    wanted: list[tuple[tuple[str, ...], str]] = []

    def assemble(names: object, model: str) -> StubAssembly:
        wanted.append((tuple(names), model))  # type: ignore[arg-type]
        return assembly

    async with open_app(replace(live_launch, conversation=None, assemble=assemble)) as pilot:
        datasets = pilot.app.screen.query_one("#datasets")
        await until(pilot, lambda: datasets.option_count == 2)  # type: ignore[attr-defined]
        pilot.app.screen.query_one("#backends").focus()
        await pilot.press("space")
        datasets.focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert wanted == [(("rag", "full_context"), "memreplay/extractive")]
        assert "technical-02" in header_of(pilot)
