"""A timeline shows the same whether its events are in memory, in a recording, or still being recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.debugger.search import SearchIndex
from memreplay.engine.events import ReplayEvent, TurnPlayed
from memreplay.recording.writer import RunRecorder
from memreplay.scoring.stored import StoredMemory
from memreplay.timeline.timeline import Timeline
from tests.unit.conftest import Played


def seen(timeline: Timeline, backend: str, turn: int) -> dict[str, Any]:
    """Everything that panels ask at a position."""
    return {
        "events": list(timeline.events_at(backend, turn)),
        "operations": list(timeline.operations_at(backend, turn)),
        "kept": list(timeline.kept_until(backend, turn)),
        "written": list(timeline.archive.written_at(backend, turn)),
        "failures": timeline.failures_at(backend, turn),
        "snapshot": timeline.snapshot_at(backend, turn),
        "states": {key: timeline.state_at(backend, key, turn) for key in timeline.state_keys(backend)},
        "changed": [timeline.state(backend, key).changed_at(turn) for key in timeline.state_keys(backend)],
        "log": [list(timeline.log_at(backend, key, turn)) for key in timeline.log_keys(backend)],
        "size": [timeline.log_size_at(backend, key, turn) for key in timeline.log_keys(backend)],
        "points": [
            (timeline.collection(backend, name).count_at(turn), timeline.collection(backend, name).written_at(turn))
            for name in timeline.collections(backend)
        ],
        "perceived": timeline.perceived_at(backend, turn),
        "ledger": list(timeline.ledger(backend).until(turn)),
        "judged": timeline.ledger(backend).at(turn),
        "counts": timeline.ledger(backend).counts_until(turn),
        "marks": timeline.marks.at(turn),
    }


def everything(timeline: Timeline) -> dict[Any, Any]:
    """At every position, visited back and forth."""
    turns = list(range(timeline.reached + 1))
    order = [*turns[::-3], *turns[::2], *turns]
    shown = {(name, turn): seen(timeline, name, turn) for turn in order for name in timeline.backends}
    retrievals, search = RetrievalIndex(timeline), SearchIndex(timeline)
    assert retrievals.catch_up()
    assert search.catch_up()
    found = {turn.id: retrievals.of("hybrid", turn.id) for turn in timeline.conversation.turns}
    matches = [list(search.find(word)) for word in ("the", "known:", "listening", "unread")]
    return shown | {"answers": list(timeline.answers()), "found": found, "matches": matches}


def test_a_recording_shows_what_was_lived_through(played: Played, timeline: Timeline, tmp_path: Path) -> None:
    assert everything(played.recorded(tmp_path / "r.sqlite3")) == everything(timeline)


def test_a_timeline_that_grows_shows_at_each_step_what_it_shows_in_the_end(played: Played, tmp_path: Path) -> None:
    recorder = RunRecorder.start(tmp_path / "live.sqlite3", {}, ["identity-01"], "fixed")
    recorder.add_conversation(played.conversation)
    live = Timeline(played.conversation, archive=recorder.live_archive(played.conversation.id))
    in_memory = Timeline(played.conversation)
    for event in played.events:
        recorder.record(event)
        for timeline in (live, in_memory):
            timeline.append(event)
        if isinstance(event, TurnPlayed):
            position = event.turn - 1
            for name in in_memory.backends:
                assert seen(live, name, position) == seen(in_memory, name, position)
    assert everything(live) == everything(in_memory)
    recorder.finish("finished")
    assert everything(live) == everything(in_memory)


def test_what_a_memory_keeps_is_told_by_few_of_its_events(timeline: Timeline) -> None:
    for backend in timeline.backends:
        all_of_it = [event for turn in range(timeline.reached + 1) for event in timeline.events_at(backend, turn)]
        kept = list(timeline.kept_until(backend, timeline.reached))
        assert 0 < len(kept) < len(all_of_it)
        assert StoredMemory(kept).items == StoredMemory(all_of_it).items


def test_a_live_timeline_reads_back_what_it_no_longer_holds(played: Played, tmp_path: Path) -> None:
    """Many times the events that are kept in memory."""
    conversation = played.conversation
    recorder = RunRecorder.start(tmp_path / "live.sqlite3", {}, ["identity-01"], "fixed")
    recorder.add_conversation(conversation)
    live = Timeline(conversation, archive=recorder.live_archive(conversation.id))
    fillers = [TurnPlayed(conversation=conversation.id, turn=len(conversation.turns) + 1)] * 3000
    events: list[ReplayEvent] = [*played.events, *fillers]
    for event in events:
        recorder.record(event)
        live.append(event)
    for turn in (1, 6, 11):
        assert seen(live, "hybrid", turn) == seen(played.timeline(), "hybrid", turn)
