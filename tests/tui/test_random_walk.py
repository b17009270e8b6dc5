"""Wherever a random walk leads, every panel shows what a plain fold of the recording says."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.engine.events import ReplayEvent, StoreOperated
from memreplay.paths import demo_recording
from memreplay.recording.reader import Recording
from memreplay.timeline.timeline import Timeline
from memreplay.tui.launch import Launch
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.views.panels.architectures import panels_of
from memreplay.views.text import visible
from tests.faults.effort import PHASES, TORTURE
from tests.stubs.memory import Key, contents, fold
from tests.tui.conftest import open_app, replay_of, until

CONVERSATIONS = ("long-04-sessions-1-2", "identity-01")
KEYS = (".", ",", "]", "[", "}", "{", "g", "G", "v", "d", "1", "2", "3", "space")
WALKS = st.lists(st.sampled_from(KEYS), min_size=8, max_size=12)


def played(conversation_id: str) -> tuple[Timeline, list[ReplayEvent]]:
    """A conversation of the shipped recording, with a timeline of its own."""
    recording = Recording.open(demo_recording())
    run = recording.run().id
    known, events = recording.conversation(run, conversation_id), list(recording.events(run, conversation_id))
    recording.close()
    return Timeline(known, events), events


def held(events: list[ReplayEvent], backend: str, position: int) -> dict[Key, Any]:
    """The values in the stores of a backend, by the plainest fold."""
    operated = [
        event.operation
        for event in events
        if isinstance(event, StoreOperated) and event.backend == backend and event.turn <= position
    ]
    return contents(fold(operated))[0]


def assert_panels_are_the_fold(screen: ReplayScreen, timeline: Timeline, events: list[ReplayEvent]) -> None:
    for pane in screen.architectures.panes:
        if not pane.display:
            continue
        fresh = panels_of(timeline, pane.backend, screen.architectures.page)
        for view, panel in zip(pane.panels, fresh, strict=True):
            document, width = panel.at(screen.cursor, screen.base).document, view.layout_now.width
            rows = [row for block in range(len(document)) for row in document.rows(block, width)]
            assert view.text == "\n".join(row.text.rstrip() for row in rows)
        stored = held(events, pane.backend, screen.cursor)
        assert contents(screen.timeline.snapshot_at(pane.backend, screen.cursor))[0] == stored
        if pane.backend == "full_context" and screen.architectures.page == "memory":
            log = next(view.text for view in pane.panels if view.panel.name == "context log")
            for text in stored.values():
                assert "".join(visible(text).replace("×", "").split()) == "".join(log.replace("×", "").split())


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_panel_is_the_fold_of_the_recording_wherever_a_walk_leads(launch: Launch, name: str) -> None:
    timeline, events = played(name)

    @settings(
        max_examples=2 if TORTURE == 1 else 20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        phases=PHASES,
    )
    @given(WALKS)
    def walk(keys: list[str]) -> None:
        asyncio.run(walked(keys))

    async def walked(keys: list[str]) -> None:
        async with open_app(replace(launch, recording=demo_recording()), (200, 60)) as pilot:
            await until(pilot, lambda: bool(pilot.app.screen.query("#pick")))
            results_of_all = 1
            await pilot.press(*["down"] * (results_of_all + CONVERSATIONS.index(name)), "enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
            await pilot.pause()
            for key in keys:
                await pilot.press(key)
                assert_panels_are_the_fold(replay_of(pilot), timeline, events)

    walk()


def test_the_shipped_recording_holds_these_conversations() -> None:
    recording = Recording.open(Path(demo_recording()))
    assert tuple(recording.conversation_ids(recording.run().id)) == CONVERSATIONS
    recording.close()
