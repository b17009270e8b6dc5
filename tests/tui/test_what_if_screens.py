"""What if on the screen: a wrong answer asked again, a fork, and from when to when an answer was known."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from memreplay.conversations.registry import load
from memreplay.debugger.lifetime import Lifetime
from memreplay.recording.reader import Recording
from memreplay.runtime.run import Run
from memreplay.settings import Settings
from memreplay.timeline.timeline import Timeline
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.regression import RegressionScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.what_if import WhatIfScreen
from memreplay.tui.screens.why import TwoWhysScreen, WhyScreen
from memreplay.tui.widgets.strip import StripView
from memreplay.views.text import line
from tests.stubs.in_process import made_in
from tests.tui.builder import conversation
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import text_of, typed


@pytest.fixture(scope="module")
def trunk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trunk")
    asked = ("--dataset", "identity-02", "--backend", "hybrid", "--ablate", "verbatim")
    made_in(folder, "--batch", *asked, "--recording", folder / "r.sqlite3")
    return folder / "r.sqlite3"


async def test_a_wrong_answer_is_asked_again_and_the_replies_are_kept(launch: Launch, trunk: Path) -> None:
    async with open_replay(replace(launch, recording=trunk)) as pilot:
        replay = replay_of(pilot)
        wrong = next(
            answer
            for answer in replay.timeline.answers()
            if answer.scored is not None
            and answer.scored.score.outcome == "wrong"
            and answer.asked.backend == "hybrid"
        )
        replay.inspection.explain(wrong)
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        await pilot.press("i")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhatIfScreen))
        screen = pilot.app.screen
        assert isinstance(screen, WhatIfScreen)
        await until(pilot, lambda: bool(screen._rows))
        await pilot.press("enter")
        await until(pilot, lambda: screen._rows[0].reask is not None)
    reader = Recording.open(trunk)
    (row,) = reader.counterfactual_rows(reader.run().id, "identity-02")
    assert (row["intervention"], row["question_id"]) == ("unchanged", wrong.asked.question_id)
    reader.close()


async def fork_without(pilot: Pilot[None], what: str) -> None:
    """Fork at the cursor; ``what`` is in the name of the thing to delete."""
    await pilot.press("F")
    await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
    options = pilot.app.screen.query_one(OptionList)
    names = [str(options.get_option_at_index(place).prompt) for place in range(options.option_count)]
    assert not any("scratchpad/" in name for name in names) and "in the scratchpads of agents" in names[-1]
    options.highlighted = next(place for place, name in enumerate(names) if what in name)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, TypingScreen))
    pilot.app.screen.query_one(Input).value = ""
    await pilot.press("enter")


async def test_a_fork_shows_which_answers_changed_and_from_when_memory_differs(launch: Launch, trunk: Path) -> None:
    async with open_replay(replace(launch, recording=trunk)) as pilot:
        replay_of(pilot).move_to(8)
        await fork_without(pilot, "message 9:")
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        await until(pilot, lambda: "hybrid differs from turn" in text_of(pilot, "#scores"))
        scores = " ".join(text_of(pilot, "#scores").split())
        assert "fork after turn 8 message 9 dropped" in scores
        assert "hybrid differs from turn 9 on" in scores and "settings the same" in scores
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TwoWhysScreen))
        await pilot.press("escape", "]")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
    reader = Recording.open(trunk)
    (branch,) = (run.branch for run in reader.runs() if run.branch is not None)
    assert (branch.turn, branch.edit) == (8, "message 9 dropped")
    reader.close()


async def test_a_resize_does_not_bring_back_what_the_scores_were_before(launch: Launch, trunk: Path) -> None:
    async with open_replay(replace(launch, recording=trunk)) as pilot:
        replay_of(pilot).move_to(8)
        await fork_without(pilot, "message 9:")
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        await until(pilot, lambda: "hybrid differs from turn" in text_of(pilot, "#scores"))
        screen = pilot.app.screen
        assert isinstance(screen, RegressionScreen)
        screen.on_resize()
        screen._show_scores([line("newer")])
        await pilot.pause()
        assert text_of(pilot, "#scores").strip() == "newer"


def turns_on_disk(path: Path) -> int:
    """Return how many turns of the first run of identity-02 are recorded."""
    with closing(Recording.open(path)) as recording:
        return recording.timeline(recording.runs()[0].id, "identity-02").played


async def test_a_live_run_is_forked_and_goes_on(launch: Launch, tmp_path: Path) -> None:
    path = tmp_path / "live.sqlite3"
    settings = Settings(backend=("hybrid",), ablate=("verbatim",))
    (played,) = load(["identity-02"])
    live = replace(launch, conversation=played, settings=settings, assemble=lambda *_: Run(settings, path))
    async with open_replay(live) as pilot:
        replay = replay_of(pilot)
        await pilot.press("9", "space")
        # While it plays, the cursor follows.
        await until(pilot, lambda: replay.cursor == 9 and replay.player is not None and not replay.player.busy)
        await until(pilot, lambda: turns_on_disk(path) >= 9)  # a fork compares what is recorded
        replay.move_to(8)
        # A cursor that followed late would fork elsewhere.
        await until(pilot, lambda: replay.cursor == 8 or replay.move_to(8) is not None)
        await fork_without(pilot, "shared_data/user.city")
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        await until(pilot, lambda: "hybrid differs from turn 8" in " ".join(text_of(pilot, "#scores").split()))
        assert "no answers yet" in text_of(pilot, "#questions")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is replay)
        await pilot.press("G")
        await until(pilot, lambda: replay.player is not None and replay.player.run.over)
        await until(pilot, lambda: pilot.app.screen is not replay)
        await pilot.press("escape", "F")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        assert "user.city deleted" in str(pilot.app.screen.query_one(OptionList).get_option_at_index(0).prompt)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        await until(pilot, lambda: "did not change" in str(pilot.app.screen.query_one("#questions").border_title))
    reader = Recording.open(path)
    trunk, branch = reader.runs()
    assert (trunk.status, branch.status) == ("finished", "finished")
    assert branch.branch is not None and (branch.branch.parent, branch.branch.turn) == (trunk.id, 8)
    assert len(list(reader.asks(trunk.id, "identity-02"))) == len(list(reader.asks(branch.id, "identity-02")))
    reader.close()


async def test_bars_show_from_when_to_when_an_answer_was_known(launch: Launch, trunk: Path) -> None:
    async with open_replay(replace(launch, recording=trunk)) as pilot:
        await pilot.press("l")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await pilot.press("down", "down", "enter")
        replay = replay_of(pilot)
        await until(pilot, lambda: bool(replay.strip._lives))
        assert (replay.strip._lives["hybrid"].learnt, replay.strip._lives["hybrid"].forgotten) == (6, None)


@pytest.mark.parametrize("width", range(40, 200, 7))
def test_a_bar_begins_and_ends_where_it_is_seen_to_and_its_turns_stand_beside_it(width: int) -> None:
    ends = [(8, None), (1, None), (14, 18), (5, 6), (18, None), (None, None)]
    lives = {
        f"a-memory-named-{number}"[:length]: Lifetime(learnt, forgotten, ())
        for number, (learnt, forgotten) in enumerate(ends)
        for length in (5, 12, 16)
    }
    view = StripView(Timeline(conversation()))
    for (name, life), row in zip(lives.items(), view.lifetimes(lives, width), strict=True):
        text = "".join(span.text for span in row.spans)
        bar = [at for at, sign in enumerate(text) if sign == "█"]
        known = [at for at in range(width) if life.knows(view.position_at(at))]
        assert len(text) <= width and bar[:1] == known[:1] and bar[-1:] == known[-1:], (name, life, text)
        said = "never known" if life.learnt is None else f": {life.learnt}–"
        assert said in text, (name, life, text)


async def test_a_live_run_is_forked_where_it_stands_with_a_new_message(launch: Launch, tmp_path: Path) -> None:
    path = tmp_path / "live.sqlite3"
    settings = Settings(backend=("hybrid",))
    (played,) = load(["identity-02"])
    live = replace(launch, conversation=played, settings=settings, assemble=lambda *_: Run(settings, path))
    async with open_replay(live) as pilot:
        replay = replay_of(pilot)
        await pilot.press("3", "space")
        await until(pilot, lambda: replay.cursor == 3 and replay.player is not None and not replay.player.busy)
        await until(pilot, lambda: turns_on_disk(path) >= 3)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TypingScreen))
        for refused in ("user:", ""):
            await typed(pilot, refused)
            assert isinstance(pilot.app.screen, TypingScreen)
            said = " ".join(text_of(pilot, "#fits").split())
            assert "assistant: " in said and "--insert" not in said
        await typed(pilot, "I moved to Lugo")
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        await until(pilot, lambda: "hybrid" in text_of(pilot, "#scores"))
        scores = " ".join(text_of(pilot, "#scores").split())
        assert "hybrid not compared: the run was played to turn 3" in scores
    with closing(Recording.open(path)) as reader:
        (edit,) = (run.branch.edit for run in reader.runs() if run.branch is not None)
    assert "Lugo" in edit and "user" in edit


@pytest.mark.parametrize("change", ["a setting", "shared_data/user"])
async def test_a_change_that_cannot_be_read_is_refused_where_it_was_typed(
    launch: Launch, trunk: Path, change: str
) -> None:
    async with open_replay(replace(launch, recording=trunk)) as pilot:
        replay_of(pilot).move_to(8)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        options = pilot.app.screen.query_one(OptionList)
        names = [str(options.get_option_at_index(place).prompt) for place in range(options.option_count)]
        options.highlighted = next(place for place, name in enumerate(names) if change in name)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TypingScreen))
        await typed(pilot, "no such thing")
        assert pilot.app.screen.query_one(Input).value == "no such thing"
        said = " ".join(text_of(pilot, "#fits").split())
        assert "expected" in said and "--set" not in said
