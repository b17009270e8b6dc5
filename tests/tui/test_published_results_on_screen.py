"""Results of another harness on the screens: the answers with their contexts, the verdicts, the results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from memreplay.published.files import read_source
from memreplay.published.importing import import_published_run
from memreplay.tui.launch import Launch
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.why import WhyScreen
from tests.stubs.published_results import amb, amb_row, locomo, said
from tests.tui.conftest import open_replay, until


async def test_a_published_run_is_stepped_through_answered_and_explained(launch: Launch, tmp_path: Path) -> None:
    source, path = tmp_path / "shelf.json", tmp_path / "published.sqlite3"
    rows = (
        amb_row(0, "On 11 June. [bold]\x1b[2J", said("D1:1"), False),
        amb_row(1, "A blue bowl.", said("D1:3"), True),
    )
    source.write_text(json.dumps(amb(*rows)))
    import_published_run(read_source(source)[0], path, [locomo(tmp_path / "locomo10.json")])
    async with open_replay(replace(launch, recording=path)) as pilot:
        await pilot.press("G")
        await pilot.pause()
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        assert "\x1b" not in pilot.app.export_screenshot()
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
