"""From a wrong answer to the call of the writing model that lost the fact."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from textual.widgets import OptionList

from memreplay.settings import Settings
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import PickScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.rewriting import RewritingScreen
from tests.stubs.in_process import made_in
from tests.stubs.openai_server import Answer, OpenAIServer, Received
from tests.stubs.planted_writer import FACTS, behaves, kept, written_down
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import explained, found, panel_text, seen, selected_panel, text_of

pytestmark = pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording in which mem0's writer loses five facts."""
    folder = tmp_path_factory.mktemp("planted")
    with OpenAIServer(behaves) as server:
        made_in(
            folder,
            *("--batch", "--dataset", written_down(folder), "--no-cache", "--backend", "mem0", "--fresh"),
            *("--extractor", "openai/writer", "--model", "openai/reader", "--api-base", server.url),
            *("--recording", folder / "r.sqlite3"),
        )
    return folder / "r.sqlite3"


WORDS = {
    "key": ("kept nothing", "read: it names no fact"),
    "boat": ("could not be read", "Sure! Here is what I noticed"),
    "rent": ("was cut by its limit", "cut at 4,000 tokens"),
    "dish": ("kept something else", "User likes to eat on Saturdays"),
    "work": ("did not store it", "User works for the Orrin trust"),
}
"""What the way to the write says of each fact, and what is to be seen of the call."""


async def test_four_keys_lead_from_the_results_to_the_call_that_lost_the_fact(
    launch: Launch, planted: Path
) -> None:
    async with open_replay(replace(launch, recording=planted, allows_recordings=True)) as pilot:
        screen = replay_of(pilot)
        await pilot.press("r")
        for place, name in enumerate(FACTS):
            sentence, shown = WORDS[name]
            await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
            await pilot.press(*["j"] * bool(place))
            await pilot.press("w")
            await until(pilot, lambda: pilot.app.screen is screen)
            assert screen.cursor == 2 * place + 2, name
            panel, view = selected_panel(screen)
            assert panel == "writer" and "call 1 of 1" in seen(view), name
            assert sentence in " ".join(found(pilot).split())
            assert shown in panel_text(screen, "mem0", "writer")
            assert FACTS[name][0] in panel_text(screen, "mem0", "writer")
            if name == "key":
                await pilot.press("W")
                await until(pilot, lambda: isinstance(pilot.app.screen, RewritingScreen))
                await pilot.press("escape")
                await until(pilot, lambda: pilot.app.screen is screen)
            await pilot.press("backspace")
            await explained(pilot)
            assert "the writer" in text_of(pilot, "#verdict"), name
            await pilot.press("escape")


async def test_the_biography_of_a_fact_has_the_call_of_the_writer(launch: Launch, planted: Path) -> None:
    async with open_replay(replace(launch, recording=planted)) as pilot:
        await pilot.press("r", "j", "j", "j", "enter")
        await explained(pilot)
        await pilot.press("f")
        await until(pilot, lambda: "User likes to eat on Saturdays" in text_of(pilot, "#life"))
        assert "openai/writer" in text_of(pilot, "#life")


async def test_the_writer_is_asked_again_once_its_cost_is_agreed_to(launch: Launch, planted: Path) -> None:
    def knows_better(received: Received) -> Answer:
        return kept("Mrs Quillan at number fourteen has the spare key")

    with OpenAIServer(knows_better) as server:
        settings = Settings(api_base=server.url, cache=False)
        started = replace(launch, recording=planted, settings=settings, allows_recordings=True)
        async with open_replay(started) as pilot:
            await pilot.press("r", "enter")
            await explained(pilot)
            await pilot.press("W")
            await until(pilot, lambda: isinstance(pilot.app.screen, RewritingScreen))
            screen = pilot.app.screen
            await until(pilot, lambda: "kept nothing" in " ".join(text_of(pilot, "#changes").split()))
            await until(pilot, lambda: "Mrs Quillan" in text_of(pilot, "#original"))
            await pilot.press("A")
            await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
            yes = str(pilot.app.screen.query_one(OptionList).get_option_at_index(1).prompt)
            assert "2 calls, about" in yes and "tokens" in yes
            assert not server.requests
            await pilot.press("down", "enter")
            await until(pilot, lambda: pilot.app.screen is screen and text_of(pilot, "#changes").count("▸") == 2)
            changes = " ".join(text_of(pilot, "#changes").split())
            assert changes.count("would be stored, with the answer") == 2
            assert "paid" in text_of(pilot, "#header")
            await pilot.press("escape")
            await explained(pilot)
    first, second = (received.body["max_tokens"] for received in server.requests)
    assert second == 2 * first


async def test_an_answer_whose_fact_was_written_has_no_writer_to_ask(launch: Launch, planted: Path) -> None:
    async with open_replay(replace(launch, recording=planted)) as pilot:
        await pilot.press("r", *"jjjj", "enter")  # the library alone lost it
        await explained(pilot)
        await pilot.press("W")
        await until(
            pilot,
            lambda: (
                "No fact of this answer was lost by a writer"
                in " ".join(str(note.message) for note in pilot.app._notifications)
            ),
        )
