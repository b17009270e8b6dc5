"""Draws the pictures of the README: the demo, and the bug that the README finds, as the screen shows them.

``make pictures`` runs it; whoever changes a screen does.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memreplay.paths import demo_recording
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch

HERE = Path(__file__).resolve().parent
BUG = ("--dataset", "identity-02", "--ablate", "verbatim", "--perceive", "--no-cache")
Shot = tuple[Sequence[str], str, tuple[int, int]]
"""Keys that lead on from the shot before, the picture's name, columns and rows."""

SECONDS_TO_SETTLE = 1.0


def nothing_live(backends: Sequence[str], model: str) -> None:
    raise AssertionError("a recording is shown, and nothing is run")


def launch(recording: Path) -> Launch:
    return Launch(
        datasets=list,
        load=lambda spec: [],
        recordings=list,
        assemble=nothing_live,  # type: ignore[arg-type]
        backends=(),
        all_backends=(),
        model="memreplay/extractive",
        recording=recording,
    )


async def draw(recording: Path, shots: Sequence[Shot]) -> None:
    app = MemreplayApp(launch(recording))
    async with app.run_test(size=shots[0][2]) as pilot:
        for keys, name, size in shots:
            await pilot.resize_terminal(*size)
            await pilot.pause(SECONDS_TO_SETTLE)
            for key in keys:
                await pilot.press(key)
                await pilot.pause(SECONDS_TO_SETTLE)
            (HERE / f"{name}.svg").write_text(app.export_screenshot(), encoding="utf-8")


def main() -> None:
    asyncio.run(draw(demo_recording(), [(("enter", *"......."), "replay", (160, 45))]))
    with tempfile.TemporaryDirectory() as folder:
        bug = Path(folder) / "bug.sqlite3"
        subprocess.run([sys.executable, "-m", "memreplay", "--batch", *BUG, "--recording", str(bug)], check=True)
        asyncio.run(draw(bug, [(("r", "enter"), "why", (160, 36)), (("w",), "write", (160, 40))]))


if __name__ == "__main__":
    main()
