"""What a low screen has no room for is counted, and the scores can be scrolled."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from memreplay.tui.launch import Launch
from memreplay.tui.screens import Scores
from memreplay.tui.screens.dialogs import Hint
from memreplay.tui.screens.results import Details, ResultsScreen
from memreplay.tui.terminal import TerminalApp
from memreplay.tui.widgets.lines_view import Fixed, Head, Legend
from memreplay.views.text import line
from tests.conftest import REPOSITORY
from tests.stubs.in_process import made_in
from tests.tui.conftest import open_replay, until
from tests.tui.looking import screen_rows

OPTIONS = 12


class _Low(App[None]):
    """A view with fewer rows than it shows lines."""

    COMPONENT_CLASSES = TerminalApp.COMPONENT_CLASSES
    CSS_PATH = TerminalApp.CSS_PATH

    def __init__(self, view: type[Fixed]) -> None:
        super().__init__()
        self.view = view()

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self.view.styles.height = 3
        self.view.show([line(f"line {number}") for number in range(5)])


@pytest.mark.parametrize("view", [Scores, Details, Head, Legend, Hint])
async def test_a_view_that_nothing_moves_through_says_how_many_rows_do_not_fit(view: type[Fixed]) -> None:
    async with _Low(view).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        rows = [row.strip() for row in screen_rows(pilot)[:3]]
        assert rows == ["line 0", "line 1", "… 3 more rows"]


@pytest.fixture(scope="module")
def with_options(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over a question with many options."""
    folder = tmp_path_factory.mktemp("options")
    known = json.loads((REPOSITORY / "datasets" / "identity" / "identity-02.json").read_text())
    question = known["recallQuestions"][0]
    others = [f"something else {number}" for number in range(OPTIONS - 1)]
    known["recallQuestions"][0] = {**question, "options": [question["expectedAnswer"], *others]}
    (folder / "options.json").write_text(json.dumps(known))
    made_in(folder, *"--batch --dataset options.json --backend rag --recording r.sqlite3".split())
    return folder / "r.sqlite3"


async def test_every_row_of_the_scores_is_reached_on_a_low_screen(launch: Launch, with_options: Path) -> None:
    async with open_replay(replace(launch, recording=with_options), (80, 24)) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        for _ in range(9):
            if any("options chosen by" in row for row in screen_rows(pilot)):
                break
            await pilot.press("v")
            await pilot.pause()

        def listed() -> list[int]:
            rows = screen_rows(pilot)
            (top,) = (at for at, row in enumerate(rows) if "options chosen by" in row)
            scores = rows[top + 1 : top + 1 + pilot.app.screen.query_one(Scores).size.height]
            return [int(found[1]) for row in scores if (found := re.match(r"(\d+)  +·", row))]

        assert any("more rows" in row for row in screen_rows(pilot))
        seen = listed()
        for _ in range(OPTIONS):
            if not any("more row" in row for row in screen_rows(pilot)):
                break
            await pilot.press("ctrl+d")
            await pilot.pause()
            seen += listed()
        assert sorted(set(seen)) == list(range(OPTIONS))
        await pilot.press("ctrl+u", "ctrl+u", "ctrl+u")
        await until(pilot, lambda: 0 in listed())
