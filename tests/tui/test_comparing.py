"""What changed: since another turn, against another architecture or recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from textual.widgets import OptionList
from textual.widgets._footer import FooterKey

from memreplay.grading import Outcome
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import BesideScreen
from memreplay.tui.screens.regression import RegressionScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.why import TwoWhysScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.tui.builder import record, record_changed
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import header_of, panel_text, text_of, typed


async def test_comparing_cycles_through_turn_before_bookmark_architectures_and_off(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(2)
        await pilot.press("m")
        await typed(pilot, "start here it begins")
        screen.move_to(6)
        shown = []
        for _ in range(7):
            await pilot.press("d")
            shown.append((header_of(pilot), panel_text(screen, "hybrid", "shared state")))
        assert "± since the previous turn" in shown[0][0]
        assert "± since ★ start (turn 2)" in shown[1][0]
        assert "unchanged" in shown[1][1]
        assert "+" in shown[1][1]
        assert "± against hybrid" in shown[2][0]
        assert "± off" in shown[5][0]
        assert "+ " not in shown[5][1]
        assert "±" not in shown[6][0]


async def test_before_and_after_stand_side_by_side(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(5)
        await pilot.press("1", "D")
        assert isinstance(pilot.app.screen, BesideScreen)
        before, after = text_of(pilot, "#before").split("\n"), text_of(pilot, "#after").split("\n")
        assert len(before) == len(after)
        assert any(line.startswith("~") for line in after)
        await pilot.press("escape")
        assert pilot.app.screen is screen


async def test_pages_show_candidates_composition_ledger_commands_and_raw_events(recorded: Launch) -> None:
    async with open_replay(recorded, (160, 60)) as pilot:
        screen = replay_of(pilot)
        screen.move_to(6)
        await pilot.press("v")
        await pilot.pause()
        assert "dense 1 (0.60)" in panel_text(screen, "hybrid", "candidates")
        assert "tokens" not in panel_text(screen, "full_context", "candidates")
        assert "█" in panel_text(screen, "full_context", "context")
        ledger = panel_text(screen, "hybrid", "promotion ledger")
        assert "certainty 0.95 × impact 0.90" in " ".join(ledger.split())
        assert ledger.index("user.city") < ledger.index("database.port") < ledger.index("user.name")
        await pilot.press("v")
        await pilot.pause()
        assert "0.2 ms" in panel_text(screen, "hybrid", "operations")
        assert '"command": "SET"' in panel_text(screen, "hybrid", "raw events")
        await pilot.press("v")
        assert "shared state" in [view.panel.name for view in screen.architectures.panes[0].panels]


async def test_significance_colours_the_conversation_with_signs_of_its_own(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.press("s")
        text = screen.query_one("#conversation", LinesView).text
        assert "┃ Hello. I am Marta" in text
        assert "╎ A billing service" in text
        await pilot.press("s")
        assert "┃" not in screen.query_one("#conversation", LinesView).text


async def test_two_recordings_show_what_was_fixed_what_broke_and_both_explanations(
    recorded: Launch, tmp_path: Path
) -> None:
    outcomes: dict[tuple[str, str], Outcome] = {("q2", "hybrid"): "correct", ("q3", "full_context"): "wrong"}
    other = record_changed(tmp_path / "other.sqlite3", outcomes, top_k=20)
    async with open_app(replace(recorded, against=other)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        screen = pilot.app.screen
        await until(pilot, lambda: "not retrieved" in text_of(pilot, "#legend"))
        scores = " ".join(text_of(pilot, "#scores").split())
        assert "settings top_k 10 → 20" in scores
        assert "right accuracy fixed broken otherwise p" in scores
        assert "hybrid 2/3 → 3/3 67 % → 100 % +1 1 0 0 " in scores
        assert "full_context 2/3 → 1/3 67 % → 33 % -1 0 1 0 " in scores
        changes = text_of(pilot, "#questions").splitlines()
        assert [row.rstrip() for row in changes if "·" in row] == ["fixed · 1", "broken · 1"]
        assert changes[1].split()[:4] == ["▶", "R", "→", "g"], "from stage to stage"
        assert "expected 6543" in text_of(pilot, "#details")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TwoWhysScreen))
        await until(pilot, lambda: "the architectures" in text_of(pilot, "#after"))
        assert "✗ written but not retrieved" in text_of(pilot, "#before")
        assert "not_retrieved" not in text_of(pilot, "#after")
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, TwoWhysScreen) and screen.document.cursor == 1)
        await until(pilot, lambda: "✗ Girona" in text_of(pilot, "#after"))
        await pilot.press("escape", "]")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen) and replay_of(pilot).cursor == 5)
        await pilot.press("escape")
        assert pilot.app.screen is screen


async def test_two_marked_recordings_are_compared_from_the_start_screen(launch: Launch, tmp_path: Path) -> None:
    before = record(tmp_path / "before.sqlite3")
    after = record_changed(tmp_path / "after.sqlite3", {("q2", "hybrid"): "correct"}, top_k=20)
    other = record(tmp_path / "other.sqlite3")
    async with open_app(replace(launch, recordings=lambda: [after, other, before])) as pilot:
        listed = pilot.app.screen.query_one("#recordings", OptionList)
        await until(pilot, lambda: listed.option_count == 3 and "hybrid" in str(listed.options[2].prompt))
        assert {"mark", "compare"} <= {key.description for key in pilot.app.screen.query(FooterKey)}
        await pilot.press("d")
        assert "Mark two recordings" in text_of(pilot, "#status")
        await pilot.press("down", "space", "space", "down", "space", "home", "space")
        assert [str(option.prompt).split()[:2] for option in listed.options] == [
            ["2", "after"],
            ["other", "finished"],
            ["1", "before"],
        ]
        await pilot.press("down", "space")
        assert "Two recordings are marked" in text_of(pilot, "#status")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        assert "top_k 10 → 20" in " ".join(text_of(pilot, "#scores").split()), "the first marked comes first"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        assert str(listed.options[2].prompt).split()[0] == "1", "marks stay"


async def test_recordings_without_a_question_in_common_say_so(recorded: Launch, tmp_path: Path) -> None:
    other = record(tmp_path / "other.sqlite3", "elsewhere")
    async with open_app(replace(recorded, against=other)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        assert "nothing in common" in text_of(pilot, "#questions")
        await pilot.press("j", "enter", "G", "escape")
        assert not isinstance(pilot.app.screen, RegressionScreen)
