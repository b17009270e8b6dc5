"""The walk-through of the README: the command and the three keys it names do find the planted bug."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.tui.launch import Launch
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.conftest import REPOSITORY
from tests.stubs.in_process import made_in
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import seen, selected_panel

SECTION = re.search(r"^## Finding a memory bug\n(.*?)^## ", (REPOSITORY / "README.md").read_text(), re.S | re.M)
NO_SECTION = "the README has no walk-through"


@pytest.fixture(scope="module")
def walk() -> str:
    assert SECTION is not None, NO_SECTION
    return SECTION.group(1)


@pytest.fixture(scope="module")
def bug(walk: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording that the command of the walk-through makes."""
    command = re.search(r"^\$ memreplay (.*)$", walk, re.MULTILINE)
    assert command is not None
    folder = tmp_path_factory.mktemp("walk")
    made_in(folder, *shlex.split(command.group(1)))
    return folder / "bug.sqlite3"


def test_the_table_shows_the_answers_and_the_verdicts_of_the_run(walk: str, bug: Path) -> None:
    table = re.search(r"^```text\n(.*?)^```", walk, re.MULTILINE | re.DOTALL)
    assert table is not None
    rows = re.findall(r"^ (\w+) +(\d+) of (\d+) ", table[1], re.MULTILINE)
    results = json.loads(bug.with_suffix(".results.json").read_text())["backends"]
    assert {name: (int(right), int(graded)) for name, right, graded in rows} == {
        name: (backend["recall"]["correct"], backend["recall"]["graded"]) for name, backend in results.items()
    }
    lost = dict(re.findall(r"^(\w+) lost: (.*)\.$", table[1], re.MULTILINE))
    assert lost == {"hybrid": "1 not written"}
    assert results["hybrid"]["failures"]["not_written"] == 1


async def test_three_keys_find_the_fact_that_promotion_dropped(walk: str, bug: Path, launch: Launch) -> None:
    keys = re.findall(r"^\d\. `(\w+)`", walk, re.MULTILINE)
    assert len(keys) == 3
    async with open_replay(replace(launch, recording=bug), (80, 24)) as pilot:
        for key in keys[:2]:
            await pilot.press(key)
            await pilot.pause()
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        verdict = pilot.app.screen.query_one("#verdict", LinesView)
        await until(pilot, lambda: "the architectures" in verdict.text)
        assert "significance 0.45 is below 0.60" in verdict.text and "never promoted" in verdict.text
        assert "turn 1 is not word for word in this prompt" in pilot.app.screen.query_one("#prompt", LinesView).text
        await pilot.press(keys[2])
        await until(pilot, lambda: pilot.app.screen is replay_of(pilot))
        screen = replay_of(pilot)
        assert (screen.cursor, screen.architectures.focused_backend) == (2, "hybrid")
        name, ledger = selected_panel(screen)
        assert name == "promotions"
        for words in ("− DROP   0.45 of 0.60", "Balgillo", "Rule “quantity” read 'eleven years'"):
            assert words in seen(ledger), "on the smallest screen too"
        await pilot.press("backspace")
        assert screen.cursor == 1
