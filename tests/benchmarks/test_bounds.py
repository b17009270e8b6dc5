"""The bounds of the replay screen that depend on no screen: loading, seeking, memory and the size of a recording.

Three conversations: the shipped one of 400 turns, one of LoCoMo's where it is at hand, a synthetic one of 20,000.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memreplay.conversations.models import Conversation
from tests.benchmarks.recordings import edge_long, lived_through, locomo
from tests.conftest import REPOSITORY

MOST_MEGABYTES_OF_MEMORY = 400
MOST_MEGABYTES_ON_DISK = 300
MOST_MS_A_SEEK = 33
MOST_MS_A_SEEK_AT_WORST = 80
MOST_RATIO_OF_FAR_TO_NEAR = 1.5
MOST_MS_TO_LOAD = 2000
MOST_MS_TO_THE_FIRST_MATCH = 1000


def figures_of(path: Path, conversation_id: str) -> dict[str, float]:
    """What :mod:`tests.benchmarks.look` measures in a fresh process, printed as well."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.look", str(path), conversation_id],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    print(f"\n{conversation_id}: " + " · ".join(f"{name} {value:g}" for name, value in figures.items()))
    return figures


def check(figures: dict[str, float]) -> None:
    assert figures["size_mb"] < MOST_MEGABYTES_ON_DISK
    assert figures["all_mb"] < MOST_MEGABYTES_OF_MEMORY
    assert figures["load_cpu_ms"] <= MOST_MS_TO_LOAD
    assert figures["first_match_ms"] <= MOST_MS_TO_THE_FIRST_MATCH
    assert figures["ratio"] <= MOST_RATIO_OF_FAR_TO_NEAR
    for median in ("near_median_ms", "far_median_ms", "step_median_ms"):
        assert figures[median] <= MOST_MS_A_SEEK
    for worst in ("seek_p95_ms", "step_p95_ms"):
        assert figures[worst] <= MOST_MS_A_SEEK_AT_WORST


@pytest.mark.parametrize("conversation", [edge_long, locomo], ids=["edge-long", "locomo"])
async def test_a_long_conversation_is_looked_at_within_the_bounds(
    conversation: Callable[[], Conversation], tmp_path: Path
) -> None:
    known = conversation()
    check(figures_of(await lived_through(known, tmp_path / "r.sqlite3"), known.id))


def test_twenty_thousand_turns_are_looked_at_within_the_bounds(twenty_thousand: Path) -> None:
    check(figures_of(twenty_thousand, "synthetic"))
