"""Breakpoints stop exactly where a look at every position, one after the other, finds that they hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memreplay.debugger.breakpoints import Compare, Contains, KeySubject, parse_breakpoint
from memreplay.debugger.breakpoints.runner import BreakpointRunner, value_holds
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.paths import demo_recordings
from memreplay.recording.reader import Recording
from memreplay.timeline.fold import MISSING, value_in
from memreplay.timeline.timeline import Timeline
from tests.unit.conftest import Played

HYBRID = "hybrid"


def runner(timeline: Timeline, *texts: str, backend: str | None = HYBRID) -> BreakpointRunner:
    return BreakpointRunner(
        timeline, RetrievalIndex(timeline), [parse_breakpoint(text, None, backend) for text in texts]
    )


def forward(breakpoints: BreakpointRunner) -> list[int]:
    stops, cursor = [], -1
    while (stop := breakpoints.next_stop(cursor)) is not None:
        stops.append(stop.turn)
        cursor = stop.turn
    return stops


def backward(breakpoints: BreakpointRunner, cursor: int) -> list[int]:
    stops = []
    while (stop := breakpoints.previous_stop(cursor)) is not None:
        stops.append(stop.turn)
        cursor = stop.turn
    return stops[::-1]


def key_of(timeline: Timeline, start: str) -> str:
    return next(key for key in timeline.state_keys(HYBRID) if key.startswith(start))


def planner(timeline: Timeline, turn: int) -> Any:
    return timeline.state_at(HYBRID, key_of(timeline, "personal_state:planner"), turn)


def rising(holds: Callable[[int], bool], timeline: Timeline) -> list[int]:
    return [turn for turn in range(timeline.reached + 1) if holds(turn) and not holds(turn - 1)]


def rank_of(timeline: Timeline, turn: int, item: str) -> int | None:
    perceived = timeline.perceived_at(HYBRID, turn)
    if perceived is None or perceived.turn != turn:
        return None
    named = [hit.rank for hit in (*perceived.hits, *perceived.missed) if item in (*hit.turns, *hit.sources)]
    return min(named, default=None)


def status_is(timeline: Timeline, turn: int, status: str) -> bool:
    state = planner(timeline, turn)
    return state is not MISSING and state["scratchpad"].get("status") == status


CASES: dict[str, Callable[[Timeline], list[int]]] = {
    'scratchpad.status == "listening"': lambda t: rising(lambda turn: status_is(t, turn, "listening"), t),
    'not scratchpad.status == "listening"': lambda t: rising(lambda turn: not status_is(t, turn, "listening"), t),
    'text contains "VERNEMQ"': lambda t: [
        turn.number for turn in t.conversation.turns if "vernemq" in turn.text.casefold()
    ],
    'hit "1"': lambda t: [
        turn
        for turn in range(t.reached + 1)
        if (seen := t.perceived_at(HYBRID, turn)) is not None
        and seen.turn == turn
        and any("1" in (*hit.turns, *hit.sources) for hit in seen.hits)
    ],
    'hit "3" rank > 0': lambda t: [turn for turn in range(t.reached + 1) if (rank_of(t, turn, "3") or 0) > 0],
    "rank > 1": lambda t: [
        turn
        for turn in range(t.reached + 1)
        if (seen := t.perceived_at(HYBRID, turn)) is not None
        and seen.turn == turn
        and any(hit.rank > 1 for hit in (*seen.hits, *seen.missed))
    ],
    'hit "1" rank <= 1 and scratchpad.turn changed': lambda t: [
        turn for turn in range(t.reached + 1) if rank_of(t, turn, "1") == 1
    ],
}


@pytest.mark.parametrize("text", CASES)
def test_a_breakpoint_stops_where_it_holds(timeline: Timeline, text: str) -> None:
    breakpoints = runner(timeline, text)
    expected = CASES[text](timeline)
    assert expected
    assert forward(breakpoints) == expected
    assert backward(breakpoints, timeline.reached + 1) == expected


@pytest.mark.parametrize("path", [(), ("scratchpad",), ("scratchpad", "noticed"), ("scratchpad", "noticed", "0")])
def test_a_changed_place_stops_at_every_change_and_nowhere_else(timeline: Timeline, path: tuple[str, ...]) -> None:
    key = key_of(timeline, "personal_state:planner")
    values = [value_in(timeline.state_at(HYBRID, key, turn), path) for turn in range(-1, timeline.reached + 1)]
    expected = [turn for turn in range(timeline.reached + 1) if values[turn] != values[turn + 1]]
    breakpoints = runner(timeline, str(KeySubject(key, path)))
    assert len(expected) > 2
    assert forward(breakpoints) == expected


def test_a_path_finds_names_with_points_in_them(timeline: Timeline) -> None:
    shared = timeline.state_at(HYBRID, key_of(timeline, "shared_state:"), timeline.reached)["shared_data"]
    slot = next(name for name in shared if "." in name)
    plain, quoted = (
        runner(timeline, f"shared_data.{slot} exists"),
        runner(timeline, f'shared_data["{slot}"] exists'),
    )
    assert forward(plain) == forward(quoted) != []


def test_each_of_several_breakpoints_stops_and_is_named(timeline: Timeline) -> None:
    breakpoints = runner(timeline, 'text contains "VerneMQ"', "status changed", backend=None)
    assert set(forward(breakpoints)) >= set(forward(runner(timeline, 'text contains "VerneMQ"')))
    stop = breakpoints.next_stop(-1)
    assert stop is not None
    assert {backend for _, backend in stop.fired} <= set(timeline.backends)


def test_a_breakpoint_that_is_disabled_or_about_another_memory_never_stops(timeline: Timeline) -> None:
    off = parse_breakpoint('text contains "a"', enabled=False)
    elsewhere = parse_breakpoint("scratchpad.status changed", backend="rag")
    assert BreakpointRunner(timeline, RetrievalIndex(timeline), [off, elsewhere]).next_stop(-1) is None


@pytest.mark.parametrize(
    "text", ["x > 3", "scratchpad > 3", 'status < "a"', "scratchpad.turn == true", "no.such exists"]
)
def test_what_cannot_be_compared_never_stops(timeline: Timeline, text: str) -> None:
    assert forward(runner(timeline, text)) == []


def test_a_live_timeline_stops_after_the_step_that_a_recording_stops_at(played: Played, tmp_path: Path) -> None:
    text = 'scratchpad.status == "listening" or hit "1" rank > 1'
    recorded = runner(played.recorded(tmp_path / "r.sqlite3"), text)
    live = Timeline(played.conversation)
    breakpoints = runner(live, text)
    stops: list[int] = []
    for event in played.events:
        live.append(event)
        stop = breakpoints.stop_at(live.reached)
        if stop is not None and stop.turn not in stops:
            stops.append(stop.turn)
            assert breakpoints.previous_stop(live.reached + 1) == stop
    assert stops == forward(recorded)


def test_a_slot_that_keeps_its_value_in_an_object_is_compared_by_that_value() -> None:
    kept = {"value": "VerneMQ", "turn": "8", "said_by": "User"}
    assert value_holds(Compare("==", "VerneMQ"), kept)
    assert not value_holds(Compare("==", "Mosquitto"), kept)
    assert value_holds(Compare("!=", "Mosquitto"), kept)
    assert value_holds(Contains("verne"), kept) and value_holds(Contains("turn"), kept)
    assert value_holds(Compare("==", kept), kept), "an object is still compared as a whole with an object"
    assert not value_holds(Compare("==", "VerneMQ"), {"turn": "8"})
    assert value_holds(Compare("==", "VerneMQ"), {"values": [{"value": "Mosquitto"}, kept]})


def test_the_stops_of_a_breakpoint_are_known_before_it_is_set() -> None:
    with closing(Recording.open(demo_recordings()[0])) as recording:
        timeline = recording.timeline(recording.run().id, "identity-01")
        assert runner(timeline, 'shared_data.broker == "Mosquitto"').stops(9) == [4]
        assert runner(timeline, "shared_data.broker").stops(1) != []
        assert runner(timeline, 'shared_data.broker == "nothing"').stops(9) == []
