"""The start screen: what it offers, and how it answers to what cannot be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from memreplay.conversations.catalog import Catalog
from memreplay.conversations.models import Conversation
from memreplay.errors import DatasetError, UsageError
from memreplay.tui.launch import Launch
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.start import MemoryList, StartScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.conftest import REPOSITORY
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import conversation
from tests.tui.conftest import Entry, open_app, open_replay, until


async def listed(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: pilot.app.screen.query_one("#datasets", OptionList).option_count > 0)


def status_of(pilot: Pilot[None]) -> str:
    start = next(screen for screen in pilot.app.screen_stack if isinstance(screen, StartScreen))
    return start.query_one("#status", LinesView).text.strip()


def datasets_of(pilot: Pilot[None]) -> list[str]:
    options = pilot.app.screen.query_one("#datasets", OptionList).options
    return [str(option.prompt).split()[0] for option in options]


async def test_enter_plays_the_demo_at_once_and_needs_no_memory(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        await until(pilot, lambda: pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        pilot.app.screen.query_one("#filter", Input).value = str(launch.recordings()[0])
        await until(pilot, lambda: not datasets_of(pilot))
        await pilot.press("/", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))


async def test_conversations_are_filtered_by_what_is_typed(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        await listed(pilot)
        await pilot.press("/", *"postgres")
        assert datasets_of(pilot) == ["technical-02"]
        await pilot.press(*("backspace",) * 8)
        assert datasets_of(pilot) == ["identity-01", "technical-02"]


async def test_a_dataset_that_cannot_be_read_gives_its_sentence(launch: Launch) -> None:
    def load(specs: Sequence[str], catalog: Catalog) -> Sequence[Conversation]:
        raise DatasetError(specs[0], "/turns/0", "has no [role]", "user or assistant")

    async with open_app(replace(launch, load=load)) as pilot:
        await listed(pilot)
        pilot.app.screen.query_one("#datasets").focus()
        await pilot.press("enter")
        await until(pilot, lambda: "expected" in status_of(pilot))
        assert status_of(pilot) == "identity-01: /turns/0: has no [role]; expected user or assistant"


async def test_a_path_that_no_dataset_matches_is_opened_as_a_file(launch: Launch, tmp_path: Path) -> None:
    asked: list[str] = []

    def load(specs: Sequence[str], catalog: Catalog) -> Sequence[Conversation]:
        asked.extend(specs)
        return [conversation("from-a-file")]

    def assemble(names: Sequence[str], model: str) -> StubAssembly:
        return StubAssembly(tuple(names), tmp_path / "live.sqlite3")

    async with open_app(replace(launch, load=load, assemble=assemble)) as pilot:
        await listed(pilot)
        await pilot.press("/", *"some/file.json", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
    assert asked == ["some/file.json"]


async def test_a_model_that_cannot_be_used_gives_its_sentence(launch: Launch) -> None:
    def assemble(names: Sequence[str], model: str) -> StubAssembly:
        raise UsageError(f"{model} is of no known provider")

    async with open_app(replace(launch, assemble=assemble)) as pilot:
        await listed(pilot)
        pilot.app.screen.query_one("#model", Input).value = "nobody/[nothing]"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "provider" in status_of(pilot))
        assert status_of(pilot) == "nobody/[nothing] is of no known provider"


async def test_without_a_memory_or_a_model_nothing_starts(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        await listed(pilot)
        pilot.app.screen.query_one("#model", Input).value = ""
        await pilot.press("ctrl+s")
        assert "Name a model" in status_of(pilot)
        memories = pilot.app.screen.query_one("#backends", MemoryList)
        memories.focus()
        for _ in range(3):
            await pilot.press("space", "down")
        assert memories.ticked == ()
        await pilot.press("ctrl+s")
        assert "at least one memory" in status_of(pilot)
        assert isinstance(pilot.app.screen, StartScreen)


async def test_the_embedded_reader_is_labelled_and_another_model_is_not(launch: Launch) -> None:
    async with open_app(launch) as pilot:
        model = pilot.app.screen.query_one("#model", Input)
        assert "embedded reader" in str(model.border_title)
        model.value = "openai/some-model"
        await pilot.pause()
        assert "embedded reader" not in str(model.border_title)


async def test_names_from_files_are_no_markup(launch: Launch) -> None:
    entries = (Entry("[red]odd[/red]", "a [bold]description"),)
    async with open_app(replace(launch, datasets=lambda: entries)) as pilot:
        await listed(pilot)
        option = pilot.app.screen.query_one("#datasets", OptionList).options[0]
        assert str(option.prompt) == "[red]odd[/red]  a [bold]description"


async def test_without_a_recording_the_conversations_have_the_focus(launch: Launch) -> None:
    async with open_app(replace(launch, recordings=list)) as pilot:
        await listed(pilot)
        assert "no recording yet" in status_of(pilot)
        focused = pilot.app.screen.focused
        assert focused is not None
        assert focused.id == "datasets"


async def test_what_the_command_line_asks_for_opens_before_any_list_is_read(recorded: Launch) -> None:
    read: list[Path] = []

    def recordings() -> Sequence[Path]:
        read.extend(recorded.recordings())
        return read

    async with open_replay(replace(recorded, recordings=recordings)) as pilot:
        assert read == []
        await pilot.press("escape")
        await listed(pilot)
        assert pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0


async def test_why_a_recording_did_not_open_is_said_when_the_lists_are_there(
    launch: Launch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.sqlite3"
    broken.write_text("a text", encoding="utf-8")
    async with open_app(replace(launch, recording=broken, recordings=list)) as pilot:
        await listed(pilot)
        assert "broken.sqlite3" in status_of(pilot)


@pytest.mark.parametrize("module", ["memreplay.tui, memreplay.tui.launch", "memreplay.cli.replay"])
def test_the_command_line_loads_neither_screen_nor_stores_before_it_opens_one(module: str) -> None:
    heavy = {"textual", "litellm", "qdrant_client", "redis", "sqlite_utils", "numpy"}
    code = f"import sys, {module}; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0


def test_the_app_loads_nothing_that_its_first_frame_has_no_use_for() -> None:
    heavy = "{'litellm', 'qdrant_client', 'redis', 'onnxruntime'}"
    code = f"import sys, memreplay.tui.app; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
