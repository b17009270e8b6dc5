"""A question asked by hand, of memory as it stood."""

from __future__ import annotations

from memreplay.tui.launch import Launch
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.stubs.live_assembly import StubAssembly
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import explained, rested, text_of, typed


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
