"""Looks at a recording as a screen does, in a process of its own, and prints what that costs as JSON.

    python -m tests.benchmarks.look RECORDING CONVERSATION

Times are in milliseconds of wall clock, memory in megabytes of resident set above what the program takes empty.
"""

from __future__ import annotations

import gc
import json
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time

from memreplay.debugger.biography import biographies
from memreplay.debugger.breakpoints import parse_breakpoint
from memreplay.debugger.breakpoints.runner import BreakpointRunner
from memreplay.debugger.provenance import value_written_by
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.debugger.search import SearchIndex
from memreplay.recording.reader import Recording
from memreplay.timeline.timeline import Timeline

STRIP_WIDTH = 200
STEPS = 120
ROWS_ON_SCREEN = 60
NEAR_THE_START = 20

_STATM = Path("/proc/self/statm")


def memory() -> float:
    """Megabytes that are resident now; 0 where the system does not tell."""
    return int(_STATM.read_text().split()[1]) * 4096 / 1e6 if _STATM.exists() else 0.0


def look_at(timeline: Timeline, position: int) -> None:
    """Everything that the panels of all architectures ask at a position."""
    for backend in timeline.backends:
        for key in timeline.state_keys(backend):
            timeline.state_at(backend, key, position - 1)
            timeline.state_at(backend, key, position)
        for key in timeline.log_keys(backend):
            timeline.log_at(backend, key, position)
            timeline.log_size_at(backend, key, position)
        for name in timeline.collections(backend):
            timeline.collection(backend, name).count_at(position)
            timeline.collection(backend, name).written_at(position)
        timeline.perceived_at(backend, position)
        timeline.operations_at(backend, position)[:ROWS_ON_SCREEN]
        timeline.failures_at(backend, position)
        timeline.ledger(backend).at(position)
        timeline.ledger(backend).counts_until(position)
    timeline.marks.columns(STRIP_WIDTH, timeline.last_turn)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that it takes."""
    started = perf_counter()
    work()
    return round((perf_counter() - started) * 1000, 2)


def seeks(timeline: Timeline, positions: Iterable[int]) -> list[float]:
    """Milliseconds of each seek."""
    return [timed(lambda at=position: look_at(timeline, at)) for position in positions]


def near_and_far(timeline: Timeline) -> tuple[list[float], list[float]]:
    """Seeks near the start and near the end, by turns, so that what else the machine does falls on both alike."""
    stretch = min(400, timeline.last_turn // 2)
    chance = random.Random(3)
    near = [NEAR_THE_START + chance.randrange(stretch - NEAR_THE_START) for _ in range(STEPS)]
    far = [timeline.last_turn - 1 - chance.randrange(stretch - NEAR_THE_START) for _ in range(STEPS)]
    taken: tuple[list[float], list[float]] = ([], [])
    for positions in zip(near, far, strict=True):
        for times, position in zip(taken, positions, strict=True):
            times += seeks(timeline, [position])
    return taken


def finished(step: Callable[[int], bool]) -> float:
    """Milliseconds until an index has caught up, in the strides that a screen takes."""

    def run() -> None:
        while not step(64):
            pass

    return timed(run)


def first_match(timeline: Timeline, near: int) -> None:
    """As the screen searches: index from the cursor on until the first match is known."""
    search = SearchIndex(timeline)
    done = False
    while not done:
        done = search.catch_up(250, near)
        match = search.find("sister moved to vic").next_match(near)
        done = done or (match is not None and search.has_read(near, match.turn))


def main(path: Path, conversation_id: str) -> dict[str, float]:
    """Load, step, seek, search, stop at a watch, ask who wrote a value, tell biographies."""
    empty = memory()
    recording = Recording.open(path)
    run = recording.run().id
    figures = {"size_mb": round(path.stat().st_size / 1e6, 1)}
    started = perf_counter()
    started_cpu = process_time()
    timeline = recording.timeline(run, conversation_id)
    figures["load_ms"] = round((perf_counter() - started) * 1000, 1)
    figures["load_cpu_ms"] = round((process_time() - started_cpu) * 1000, 1)
    gc.collect()
    figures["loaded_mb"] = round(memory() - empty, 1)
    last = timeline.last_turn
    look_at(timeline, 1)
    near, far = near_and_far(timeline)
    steps = seeks(timeline, range(last - STEPS, last))
    figures |= {
        "near_median_ms": median(near),
        "far_median_ms": median(far),
        "ratio": round(median(far) / median(near), 2),
        "seek_p95_ms": quantiles([*near, *far], n=20)[-1],
        "step_median_ms": median(steps),
        "step_p95_ms": quantiles(steps, n=20)[-1],
        "end_ms": timed(lambda: look_at(timeline, last)),
    }
    figures["first_match_ms"] = timed(lambda: first_match(timeline, last // 2))
    retrievals, search = RetrievalIndex(timeline), SearchIndex(timeline)
    figures["retrievals_ms"] = finished(retrievals.catch_up)
    figures["search_index_ms"] = finished(search.catch_up)
    figures["search_ms"] = timed(lambda: search.find("sister moved to vic"))
    watches = BreakpointRunner(
        timeline,
        retrievals,
        [parse_breakpoint('shared_data["sister.city"].value == "Vic"'), parse_breakpoint('hit "1" rank > 3')],
    )
    figures["first_stop_ms"] = timed(lambda: watches.next_stop(last // 2))
    figures["next_stop_ms"] = timed(lambda: watches.next_stop(last // 2 + 1))
    key = next((key for key in timeline.state_keys("hybrid") if key.startswith("personal_state:")), "")
    figures["who_wrote_ms"] = timed(lambda: value_written_by(timeline, "hybrid", key, ("scratchpad", "turn"), last))
    question = timeline.conversation.questions[len(timeline.conversation.questions) // 2]
    figures["biography_ms"] = timed(lambda: biographies(timeline, retrievals, "hybrid", question))
    figures["all_mb"] = round(memory() - empty, 1)
    return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
