"""``S`` on the explanation of a wrong answer: the smallest conversation that fails so, saved for an issue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.conversations.registry import load as read_conversations
from memreplay.tui.launch import Launch
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.why import WhyScreen
from tests.stubs.in_process import made_in
from tests.tui.conftest import open_app, until


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which hybrid keeps no turn verbatim."""
    folder = tmp_path_factory.mktemp("lossy")
    asked = ("--batch", "--dataset", "identity-02", "--backend", "hybrid", "--ablate", "verbatim")
    made_in(folder, *asked, "--recording", folder / "lossy.sqlite3")
    return folder / "lossy.sqlite3"


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
    assert "def test_" in case.with_suffix(".py").read_text(encoding="utf-8")
