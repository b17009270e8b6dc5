"""How the main screens look. After a wanted change: ``pytest tests/tui/test_snapshots.py --snapshot-update``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot
from textual.widgets import OptionList

from memory_backends.stores.trace import Extraction, SentMessage
from memreplay.grading import Outcome
from memreplay.runtime.rewriting import LostFact, WriterAgain
from memreplay.scoring.holding import Answerable
from memreplay.scoring.writer import Finding
from memreplay.settings import read_settings
from memreplay.tui.app import MemreplayApp
from memreplay.tui.launch import FEW_COLOURS, FEW_LIGHT_COLOURS, Launch
from memreplay.tui.screens.duel import DuelColumn
from memreplay.tui.screens.regression import RegressionScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.rewriting import RewritingScreen
from memreplay.tui.screens.what_if import WhatIfScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.tui.builder import record, record_changed, record_interrupted
from tests.tui.conftest import replay_of, until

Prepare = Callable[[Pilot[Any]], Awaitable[None]]

MIDDLE = (120, 36)
SIZES = ((80, 24), (160, 45), MIDDLE)
AT_EVERY_SIZE = ("start", "replay", "results", "why")
"""The other screens are pictured at the middle size."""


@pytest.fixture
def recorded(launch: Launch) -> Launch:
    return replace(launch, recording=launch.recordings()[0])


def at_turn(turn: int, *keys: str) -> Prepare:
    """A replay at a turn, and keys pressed there."""

    async def prepare(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        replay_of(pilot).move_to(turn)
        await pilot.press(*keys)
        await pilot.pause()

    return prepare


async def listed(pilot: Pilot[Any]) -> None:
    """The start screen with its lists filled."""
    await until(pilot, lambda: pilot.app.screen.query_one("#datasets", OptionList).option_count == 2)
    recordings = pilot.app.screen.query_one("#recordings", OptionList)
    prompts = (str(recordings.get_option_at_index(at).prompt) for at in range(recordings.option_count))
    await until(pilot, lambda: not any("…" in prompt for prompt in prompts))


async def attributed(pilot: Pilot[Any]) -> None:
    """The results, with the stage at which each fact was lost."""
    await at_turn(6, "r")(pilot)
    # Labels come from a thread and make questions longer: what is in view depends on which was first.
    await until(pilot, lambda: "unparsed" in pilot.app.screen.query_one("#legend", LinesView).text)
    await pilot.press("down")


async def explained(pilot: Pilot[Any]) -> None:
    """Why the first answer that is wrong is what it is, worked out."""
    await at_turn(6, "r", "down", "enter")(pilot)
    await until(pilot, lambda: "the architectures" in pilot.app.screen.query_one("#verdict", LinesView).text)


async def duelling(pilot: Pilot[Any]) -> None:
    """The retrieval duel, with the stage at which each memory lost the fact."""
    await explained(pilot)
    await pilot.press("a")
    await until(pilot, lambda: all("  wrong" not in column.text for column in pilot.app.screen.query(DuelColumn)))


async def compared(pilot: Pilot[Any]) -> None:
    """Two runs, with labels."""
    await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
    await until(pilot, lambda: "not retrieved" in pilot.app.screen.query_one("#legend", LinesView).text)


async def browsed(pilot: Pilot[Any]) -> None:
    """Everything that the second memory holds."""
    await at_turn(8, "2", "M")(pilot)
    await until(pilot, lambda: "4 items" in pilot.app.screen.query_one("#header", LinesView).text)
    await until(pilot, lambda: "×" in pilot.app.screen.query_one("#list", LinesView).text)


Opens = Literal["conversation", "recording", "two runs", "interrupted", "three recordings"]


def _opening(opens: Opens, launch: Launch, recorded: Launch, folder: Path) -> Launch:
    match opens:
        case "conversation":
            return launch
        case "recording":
            return recorded
        case "two runs":
            outcomes: dict[tuple[str, str], Outcome] = {
                ("q2", "hybrid"): "correct",
                ("q3", "full_context"): "wrong",
            }
            return replace(recorded, against=record_changed(folder / "other.sqlite3", outcomes, top_k=20))
        case "interrupted":
            return replace(launch, recording=record_interrupted(folder / "stopped.sqlite3", 3))
        case "three recordings":
            stopped = record_interrupted(folder / "stopped.sqlite3", 3)
            several = record(folder / "several.sqlite3", "tiny-01", "tiny-02")
            return replace(launch, recordings=lambda: [*launch.recordings(), several, stopped])


async def pictured(pilot: Pilot[Any]) -> str:
    """The screen when nothing on it changes any more."""
    compositor = pilot.app.screen._compositor
    before, now = None, compositor.render_strips()
    while before != now:
        await pilot.pause()
        before, now = now, compositor.render_strips()
    return pilot.app.export_screenshot()


async def told(pilot: Pilot[Any]) -> None:
    """The biography of a fact."""
    await at_turn(3, "f")(pilot)
    await until(pilot, lambda: "observed" in pilot.app.screen.query_one("#life", LinesView).text)


async def weighed(pilot: Pilot[Any]) -> None:
    """The budget curve."""
    await at_turn(6, "r", "u")(pilot)
    await until(pilot, lambda: "tokens" in pilot.app.screen.query_one("#header", LinesView).text)


async def run_listed(pilot: Pilot[Any]) -> None:
    """The results of a whole run."""
    await at_turn(6, "R")(pilot)
    await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
    await until(pilot, lambda: "unparsed" in pilot.app.screen.query_one("#legend", LinesView).text)


async def supposed(pilot: Pilot[Any]) -> None:
    """What if, before anything is asked."""
    await explained(pilot)
    await pilot.press("i")
    await until(pilot, lambda: isinstance(pilot.app.screen, WhatIfScreen))
    await until(pilot, lambda: "unchanged" in pilot.app.screen.query_one("#changes", LinesView).text)


async def rewritten(pilot: Pilot[Any]) -> None:
    """The writer to be asked again about a fact that it did not name."""
    await explained(pilot)
    why = pilot.app.screen
    assert isinstance(why, WhyScreen)
    timeline = replay_of(pilot).timeline
    question, known = timeline.conversation.questions[0], timeline.conversation.turns_by_id
    messages = SentMessage(role="system", text="List the facts."), SentMessage(role="user", text="I am Marta.")
    fact = LostFact(
        question.id, "hybrid", question.evidence[0], Finding("kept_nothing", "the writer named no fact", 2),
        Extraction(model="openai/writer", turns=question.evidence, messages=messages, reply="[]", read="parsed"),
        Answerable(question, known),
    )  # fmt: skip
    writer = WriterAgain(read_settings(extractor="openai/writer"), "live")
    pilot.app.push_screen(RewritingScreen(timeline, question, why.answer, [fact], writer))
    await until(pilot, lambda: isinstance(pilot.app.screen, RewritingScreen))


SCREENS: dict[str, tuple[Opens, Prepare]] = {
    "start": ("conversation", listed),
    "recordings": ("three recordings", listed),
    "replay": ("recording", at_turn(8)),
    "retrieval": ("recording", at_turn(6, "v")),
    "interrupted": ("interrupted", at_turn(5)),
    "results": ("recording", attributed),
    "why": ("recording", explained),
    "duel": ("recording", duelling),
    "browser": ("recording", browsed),
    "biography": ("recording", told),
    "regression": ("two runs", compared),
    "help": ("recording", at_turn(6, "?")),
    "run": ("recording", run_listed),
    "budget": ("recording", weighed),
    "what if": ("recording", supposed),
    "writer": ("recording", rewritten),
}
THEMES = {"light": "textual-light", "16-colours": FEW_COLOURS, "16-colours-light": FEW_LIGHT_COLOURS}
"""The themes in which each screen is pictured at the middle size, besides the dark one."""


@pytest.mark.parametrize("name", SCREENS)
async def test_screen(
    snapshot: SnapshotAssertion, launch: Launch, recorded: Launch, tmp_path: Path, name: str
) -> None:
    """One app for all sizes: to start one costs more than all pictures."""
    opens, prepare = SCREENS[name]
    app = MemreplayApp(_opening(opens, launch, recorded, tmp_path))
    async with app.run_test(size=MIDDLE) as pilot:
        await prepare(pilot)
        for width, height in SIZES if name in AT_EVERY_SIZE else [MIDDLE]:
            if app.size != (width, height):
                await pilot.resize_terminal(width, height)
                await until(pilot, lambda: app.screen._compositor.size == (width, height))  # noqa: B023 - awaited
            assert await pictured(pilot) == snapshot(name=f"{width}x{height}", extension_class=SVGImageExtension)
        for in_words, theme in THEMES.items():
            app.theme = theme
            assert await pictured(pilot) == snapshot(name=in_words, extension_class=SVGImageExtension)
