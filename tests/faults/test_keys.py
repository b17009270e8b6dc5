"""Whatever keys are pressed, on a screen of whatever size, the app stays up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.tui.launch import Launch
from tests.faults.effort import PHASES, TORTURE, examples
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import conversation, record
from tests.tui.conftest import open_app

KEYS = (
    *(".", ",", "]", "[", "}", "{", "g", "G", "v", "d", "D", "1", "2", "3", "9", "space", "p", "x", "w", "f", "M"),
    *("b", "B", "c", "C", "slash", "n", "N", "m", "'", "a", "r", "R", "s", "l", "H", "L", "F", "+", "t", "i", "j"),
    *("k", "h", "q", "?", "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab"),
    *("enter", "escape", "escape", "backspace", "delete", "ctrl+p", "ctrl+g", "ctrl+s", "ctrl+d", "ctrl+u", "f1"),
)
SIZES = ((1, 1), (2, 40), (40, 2), (20, 8), (80, 24), (120, 36), (300, 90))

STEPS = st.lists(st.sampled_from(KEYS) | st.sampled_from(SIZES), min_size=5, max_size=15 if TORTURE == 1 else 40)


@pytest.mark.parametrize("begins_in", ["a replay", "a live run", "the start screen"])
def test_no_keys_and_no_sizes_of_the_screen_end_the_app(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins_in: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run_numbers = count(1)

    def assemble(names: Sequence[str], model: str) -> StubAssembly:
        return StubAssembly(tuple(names), tmp_path / f"live-{next(run_numbers)}.sqlite3", {})

    launch = replace(launch, assemble=assemble)
    started = {
        "a replay": replace(launch, recording=record(tmp_path / "run.sqlite3")),
        "a live run": replace(launch, conversation=conversation()),
        "the start screen": launch,
    }[begins_in]

    @settings(max_examples=examples(2), deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def pressed(steps: list[str | tuple[int, int]]) -> None:
        asyncio.run(press(steps))

    async def press(steps: list[str | tuple[int, int]]) -> None:
        async with open_app(started, (120, 36)) as pilot:
            for step in steps:
                if pilot.app.return_code is not None or not pilot.app.is_running:
                    return
                if isinstance(step, str):
                    await pilot.press(step)
                else:
                    await pilot.resize_terminal(*step)
            await pilot.pause()

    pressed()
