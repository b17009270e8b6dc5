"""From a key to the painted frame, through the real program in a terminal, at both ends of long conversations."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest

from memreplay.conversations.models import Conversation
from tests.benchmarks.recordings import edge_long, lived_through, locomo, made
from tests.benchmarks.terminal import Terminal, opened
from tests.conftest import REPOSITORY

PRESSES = 40
KEYS = [*"." * PRESSES, *"," * PRESSES, *"][" * (PRESSES // 4)]
MEDIAN_MS, P95_MS, MOST_RATIO = 33.0, 80.0, 1.5
MOST_MS_A_JUMP = 1000.0
STARTS = 7
QUESTIONS = 3000
_PAGE_DOWN = "\x1b[6~"


def medians(terminal: Terminal, name: str, places: dict[str, int]) -> list[float]:
    """The median of the times from key to frame at each place, within the bounds."""
    found = []
    for place, turn in places.items():
        jump = terminal.press(f"{turn}G", quiet=1.0)
        first, *took = [terminal.press(key) for key in ["]", *KEYS]]
        found.append(statistics.median(took))
        p95 = sorted(took)[int(0.95 * len(took))]
        print(
            f"\n{name}, key to frame {place}: median {found[-1]:.1f} ms, 95th percentile {p95:.1f} ms,"
            f" worst {max(took):.1f} ms; the jump there {jump:.0f} ms, the first ] {first:.0f} ms"
        )
        assert found[-1] <= MEDIAN_MS
        assert p95 <= P95_MS
        assert jump <= MOST_MS_A_JUMP
    return found


def check(path: Path, name: str, turns: int) -> None:
    with opened("-m", "memreplay", "--recording", str(path)) as (terminal, _):
        terminal.until(b"RECORDED")
        terminal.settle(1.0)
        near, far = medians(terminal, name, {"near the start": 20, "near the end": turns - PRESSES - 10})
        print(f"ratio {far / near:.2f}")
        assert far / near <= MOST_RATIO
        terminal.send("q")


@pytest.mark.parametrize("conversation", [edge_long, locomo], ids=["edge-long", "locomo"])
async def test_a_key_is_painted_at_once_in_a_long_conversation(
    conversation: Callable[[], Conversation], tmp_path: Path
) -> None:
    known = conversation()
    check(await lived_through(known, tmp_path / "r.sqlite3"), known.id, len(known.turns))


def test_a_key_is_painted_at_once_wherever_it_is_in_twenty_thousand_turns(
    twenty_thousand: Path,
) -> None:
    check(twenty_thousand, "20,000 turns", 20_000)


def test_a_key_in_the_results_matrix_is_painted_at_once_with_three_thousand_questions(tmp_path: Path) -> None:
    path = made(200, tmp_path / "results.sqlite3", questions=QUESTIONS)
    with opened("-m", "memreplay", "--recording", str(path)) as (terminal, _):
        terminal.until(b"RECORDED")
        terminal.settle(1.0)
        terminal.send("R")
        terminal.until(b"not retrieved")  # attribution is over
        terminal.settle(1.0)
        keys = [*"jjjjkkkk" * 4, *"llhh" * 4, *"nnnnNNNN" * 2, *["\x1b[6~", "\x1b[5~"] * 6]
        found = []
        for place, jump in {"near the start": "g", "near the end": f"{QUESTIONS - 60}G"}.items():
            terminal.press(jump, quiet=1.0)
            took = [terminal.press(key) for key in keys]
            found.append(statistics.median(took))
            p95 = sorted(took)[int(0.95 * len(took))]
            print(
                f"\n{QUESTIONS:,} results, key to frame {place}: median {found[-1]:.1f} ms,"
                f" 95th percentile {p95:.1f} ms, worst {max(took):.1f} ms"
            )
        print(f"ratio {found[1] / found[0]:.2f}")
        assert max(found) <= MEDIAN_MS
        assert found[1] / found[0] <= MOST_RATIO
        terminal.send("q")


def test_a_key_is_painted_at_once_in_the_memory_browser_at_turn_twenty_thousand(twenty_thousand: Path) -> None:
    with opened("-m", "memreplay", "--recording", str(twenty_thousand)) as (terminal, _):
        terminal.until(b"RECORDED")
        terminal.settle(1.0)
        terminal.press("G", quiet=1.0)
        opening = terminal.press("M", quiet=1.0)
        terminal.settle(8.0)  # until the retrievals are indexed, in the background
        took = [terminal.press(key) for key in [*"j" * PRESSES, *[_PAGE_DOWN] * PRESSES, *"k" * PRESSES, *"Gg" * 5]]
        median, p95 = statistics.median(took), sorted(took)[int(0.95 * len(took))]
        step = statistics.median(terminal.press(key) for key in "," * 10)
        print(
            f"\nmemory browser at turn 20,000, key to frame: median {median:.1f} ms, 95th percentile {p95:.1f} ms,"
            f" worst {max(took):.1f} ms; opening {opening:.0f} ms; a step of one turn {step:.0f} ms"
        )
        assert median <= MEDIAN_MS
        assert p95 <= P95_MS
        terminal.send("q")


EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("")
app = Empty()
"""
WHOLE = """
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import Launch
names = ("hybrid", "rag", "full_context")
app = MemreplayApp(Launch(datasets=tuple, load=lambda *_: (), recordings=tuple, assemble=None, backends=names,
                          all_backends=names, model="stub"))
"""
UNTIL_PAINTED = """
import asyncio, os
display = app._display
def painted(*args, **kwargs):
    display(*args, **kwargs)
    os._exit(0)
app._display = painted
async def run():
    async with app.run_test(size=(160, 45)):
        await asyncio.sleep(60)
asyncio.run(run())
"""


def start_to_first_frame(program: str) -> float:
    """Milliseconds from the start of Python to the first frame."""
    started = perf_counter()
    subprocess.run([sys.executable, "-c", program + UNTIL_PAINTED], check=True, cwd=REPOSITORY)
    return (perf_counter() - started) * 1000


def command_to_first_frame() -> float:
    """Milliseconds from ``memreplay`` on a command line to the first frame in its terminal."""
    started = perf_counter()
    with opened("-m", "memreplay") as (terminal, _):
        return (terminal.first_frame() - started) * 1000


def test_the_first_frame_beside_that_of_an_empty_app() -> None:
    # By turns, so that what else the machine does falls on all alike.
    taken = [
        (start_to_first_frame(EMPTY), start_to_first_frame(WHOLE), command_to_first_frame()) for _ in range(STARTS)
    ]
    empty, whole, command = (statistics.median(times) for times in zip(*taken, strict=True))
    print(
        f"\nstart to first frame: empty app {empty:.0f} ms, memreplay {whole:.0f} ms, ratio {whole / empty:.2f};"
        f" from the command line {command:.0f} ms, ratio {command / empty:.2f}"
    )
