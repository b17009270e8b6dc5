"""The hostile conversation: on every screen and in the exported picture its text is text, and nothing obeys it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unicodedata import category
from xml.etree import ElementTree

import pytest
from textual.pilot import Pilot

from memreplay.recording.reader import Recording
from memreplay.tui.launch import Launch
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.panels import PAGES
from memreplay.views.panels.architectures import panels_of
from tests.stubs.in_process import made_in
from tests.stubs.memory import WordEmbedder
from tests.tui.conftest import open_replay, replay_of, until

MARKUP = "[@click=app.quit]bye[/]"
TITLE = "]0;agent console OWNED"
JOINERS = "\u200b\u200c\u200d\u00ad\ufeff"
"""Invisible, and harmless: they are parts of emoji and words."""


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped hostile conversation, played to the three architectures."""
    folder = tmp_path_factory.mktemp("hostile")
    asked = ("--dataset", "edge-hostile", "--perceive", "--recording", "hostile.sqlite3")
    made_in(folder, "--batch", *asked, embedder=WordEmbedder)
    return folder / "hostile.sqlite3"


def commands_in(text: str) -> set[str]:
    """Characters that a terminal or a text renderer would act on."""
    return {
        char
        for char in set(text)
        if char != "\n" and char not in JOINERS and category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs")
    }


def texts(pilot: Pilot[Any]) -> list[str]:
    """Everything that the views of the screen hold, in view or not."""
    return [view.text for view in pilot.app.screen.query(LinesView)]


def assert_nothing_commands(pilot: Pilot[Any]) -> None:
    for text in texts(pilot):
        assert commands_in(text) == set()


def literal(text: str) -> str:
    return "".join(text.split())


def test_every_panel_shows_it_as_text(recording: Path) -> None:
    reader = Recording.open(recording)
    timeline = reader.timeline(reader.run().id, "edge-hostile")
    shown: set[str] = set()
    for backend, page in product(timeline.backends, PAGES):
        for panel, turn in product(panels_of(timeline, backend, page), range(2, timeline.last_turn + 1, 4)):
            view = panel.at(turn)
            rows = [row.text for block in range(len(view.document)) for row in view.document.rows(block, 60)]
            text = "\n".join([view.title, view.note, *rows])
            assert commands_in(text) == set()
            if literal(MARKUP) in literal(text):
                shown.add(f"{backend}: {panel.name}")
    reader.close()
    assert {"hybrid: raw events", "rag: raw events", "full_context: context log"} <= shown


async def test_the_replay_shows_it_as_text(recording: Path, launch: Launch) -> None:
    async with open_replay(replace(launch, recording=recording), (200, 60)) as pilot:
        screen = replay_of(pilot)
        for turn in range(1, len(screen.timeline.conversation.turns) + 1):
            screen.move_to(turn)
            await pilot.pause()
            assert_nothing_commands(pilot)
        assert literal(MARKUP) in literal(screen.query_one("#conversation", LinesView).text)


async def test_the_pages_about_an_answer_show_it_as_text(recording: Path, launch: Launch) -> None:
    async with open_replay(replace(launch, recording=recording), (160, 45)) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        for question in range(len(replay_of(pilot).timeline.conversation.questions)):
            assert_nothing_commands(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
            verdict = pilot.app.screen.query_one("#verdict", LinesView)
            await until(pilot, lambda view=verdict: "the architectures" in view.text)  # type: ignore[misc]
            assert_nothing_commands(pilot)
            if question == 1:
                await pilot.press("f")
                await until(pilot, lambda: isinstance(pilot.app.screen, BiographyScreen))
                await pilot.pause()
                assert_nothing_commands(pilot)
                await pilot.press("escape")
                await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
            await pilot.press("escape")
            await pilot.press("down")


@pytest.mark.parametrize(("turn", "quoted"), [(3, MARKUP), (5, TITLE)])
async def test_the_picture_is_well_formed_and_holds_it(
    recording: Path, launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int, quoted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_replay(replace(launch, recording=recording), (200, 60)) as pilot:
        replay_of(pilot).move_to(turn)
        await pilot.pause()
        await pilot.press("e")
    picture = tmp_path / f"memreplay-edge-hostile-turn-{turn}.svg"
    drawn = "".join(ElementTree.parse(picture).getroot().itertext())
    assert commands_in(drawn.replace("\xa0", " ")) == set()
    assert literal(quoted)[:12] in literal(drawn)
