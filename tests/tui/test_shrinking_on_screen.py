"""``S`` on the explanation of a wrong answer: the smallest conversation that fails so, saved for an issue."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.conversations.registry import load as read_conversations
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording
from memreplay.timeline.annotations import FAILS, Bookmark
from memreplay.tui.launch import Launch
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.why import WhyScreen
from tests.stubs.in_process import made_in
from tests.tui.conftest import open_app, replay_of, until


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which hybrid keeps no turn verbatim."""
    folder = tmp_path_factory.mktemp("lossy")
    asked = ("--batch", "--dataset", "identity-02", "--backend", "hybrid", "--ablate", "verbatim")
    made_in(folder, *asked, "--recording", folder / "lossy.sqlite3")
    return folder / "lossy.sqlite3"


async def test_a_recording_opens_at_the_failure_that_it_was_shrunk_to(launch: Launch, lossy: Path) -> None:
    with closing(Recording.open(lossy)) as recording:
        run = recording.run().id
    annotations = annotations_of(lossy, run, "identity-02")
    annotations.set_bookmark(Bookmark(mark=FAILS, turn=5, note="here it fails"))
    async with open_app(replace(launch, recording=lossy)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert replay_of(pilot).cursor == 5
    annotations.remove_bookmark(FAILS)


async def test_a_wrong_answer_is_shrunk_from_its_explanation(
    launch: Launch, lossy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_app(replace(launch, recording=lossy)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        await pilot.press("n", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        await pilot.press("S")
        await until(pilot, lambda: any("turns →" in note.message for note in pilot.app._notifications))
        assert isinstance(pilot.app.screen, WhyScreen)
    (case,) = tmp_path.glob("memreplay-*.json")
    (smallest,) = read_conversations([str(case)])
    assert 1 <= len(smallest.turns) <= 6
    assert "## Conversation" in case.with_suffix(".md").read_text(encoding="utf-8")
    (test,) = tmp_path.glob("test_memreplay_*.py")
    assert "def test_" in test.read_text(encoding="utf-8")
