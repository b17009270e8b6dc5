"""Stepping through a conversation for hours takes no more memory than doing it for minutes."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path
from statistics import linear_regression

from memreplay.recording.reader import Recording
from memreplay.views.panels import PAGES, DiffBase, Panel
from memreplay.views.panels.architectures import panels_of
from tests.benchmarks.look import memory
from tests.benchmarks.recordings import made

TURNS, STEPS = 500, 10_000
WARM = 6 * TURNS
"""After each page was passed forward and back, each cache is as full as it becomes."""

STEPS_BETWEEN_SAMPLES = 250
MOST_BYTES_A_STEP = 200.0
_WIDTH, _ROWS = 60, 40


def look(panels: Iterable[Panel], position: int) -> None:
    """What one page of the screen shows at a position, compared with the one before."""
    for panel in panels:
        document = panel.at(position, DiffBase("previous")).document
        shown = 0
        for block in range(len(document)):
            shown += len(document.rows(block, _WIDTH))
            if shown > _ROWS:
                break


def test_ten_thousand_steps_forward_and_back_take_no_more_memory(tmp_path: Path) -> None:
    recording = Recording.open(made(TURNS, tmp_path / "r.sqlite3"))
    timeline = recording.timeline(recording.run().id, "synthetic")
    pages = [[panel for name in timeline.backends for panel in panels_of(timeline, name, page)] for page in PAGES]
    samples: list[tuple[int, float]] = []
    cursor, direction = 0, 1
    for step in range(STEPS):
        if not 0 <= cursor + direction <= timeline.last_turn:
            direction = -direction
        cursor += direction
        look(pages[step // TURNS % len(pages)], cursor)
        if step >= WARM and step % STEPS_BETWEEN_SAMPLES == 0:
            gc.collect()
            samples.append((step, memory() * 1e6))
    slope = linear_regression(*zip(*samples, strict=True)).slope
    held = samples[-1][1] / 1e6
    print(f"\n{STEPS:,} steps: {slope:+.0f} bytes a step after the first {WARM:,}; {held:.0f} MB in the end")
    recording.close()
    assert slope <= MOST_BYTES_A_STEP
