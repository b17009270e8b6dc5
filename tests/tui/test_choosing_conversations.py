"""The list of conversations: its rows, its filter, and files that are read while it is open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from memreplay.conversations.catalog import Catalog, ListedConversation
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load as load_files
from memreplay.errors import DatasetError
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import ConversationScreen, TextScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import conversation, record
from tests.tui.conftest import open_app, replay_of, until


def chat(number: int, title: str, *words: str) -> dict[str, Any]:
    """A chat as ChatGPT exports it."""
    nodes = {
        f"n{place}": {
            "id": f"n{place}",
            "parent": f"n{place - 1}" if place else None,
            "children": [],
            "message": {
                "author": {"role": "assistant" if place % 2 else "user"},
                "content": {"content_type": "text", "parts": [text]},
            },
        }
        for place, text in enumerate(words)
    }
    began = datetime(2024, 3, number, tzinfo=UTC).timestamp()
    return {
        "title": title,
        "create_time": began,
        "conversation_id": f"0f3c-{number}",
        "current_node": f"n{len(words) - 1}",
        "mapping": nodes,
    }


def live(launch: Launch, tmp_path: Path) -> Launch:
    """A launch that can open a live replay."""
    return replace(launch, assemble=lambda names, model: StubAssembly(tuple(names), tmp_path / "live.sqlite3"))


def rows_of(pilot: Pilot[None]) -> list[str]:
    """The rows of the list; none before it is laid out."""
    lists = pilot.app.screen.query("#pick").results(OptionList)
    return [str(option.prompt) for each in lists for option in each.options]


def is_choosing(pilot: Pilot[None]) -> bool:
    return isinstance(pilot.app.screen, ConversationScreen)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 45)])
async def test_a_row_has_title_date_first_words_and_turns(
    launch: Launch, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "export.json"
    chats = [
        chat(7, "Boats and tides " * 8, "When is it? " * 20, "At noon."),
        chat(9, "面包 [red]", "Hello"),
    ]
    path.write_text(json.dumps(chats), encoding="utf-8")
    async with open_app(replace(launch, one_of=tuple(load_files([str(path)]))), size) as pilot:
        await until(pilot, lambda: is_choosing(pilot) and len(rows_of(pilot)) == 2)
        boats, bread = rows_of(pilot)
        listed = pilot.app.screen.query_one("#pick", OptionList)
        width = listed.scrollable_content_region.width
        assert "Boats and tides" in boats and " 7 Mar 2024  When is" in boats and boats.endswith("2 turns")
        assert "面包 [red]" in bread and " 9 Mar 2024  Hello" in bread and bread.endswith(" 1 turn")
        assert {option.prompt.cell_length for option in listed.options} == {width - 2}


async def test_all_typed_words_must_occur(launch: Launch, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    chats = [
        chat(7, "Boats", "When is high tide?"),
        chat(8, "Bread", "How long does it rise?"),
        chat(9, "Tides", "Why?"),
    ]
    path.write_text(json.dumps(chats), encoding="utf-8")
    one_of = tuple(load_files([str(path)]))
    async with open_app(live(replace(launch, one_of=one_of), tmp_path)) as pilot:
        await until(pilot, lambda: is_choosing(pilot) and len(rows_of(pilot)) == 3)
        await pilot.press("slash", *"TIDE")
        assert [row.split()[0] for row in rows_of(pilot)] == ["Boats", "Tides"]
        await pilot.press("space", *"why")
        assert [row.split()[0] for row in rows_of(pilot)] == ["Tides"]
        assert "1 of 3" in str(pilot.app.screen.query_one("#pick").border_subtitle)
        await pilot.press("escape")
        assert len(rows_of(pilot)) == 3 and is_choosing(pilot)
        await pilot.press("slash", *"mar rise", "enter", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert replay_of(pilot).timeline.conversation.id == "0f3c-8"


async def test_of_thousands_only_those_near_the_cursor_are_laid_out(launch: Launch) -> None:
    entries = [ListedConversation(f"chat-{n}", "2 turns", opening=f"words {n % 7}") for n in range(5000)]
    async with open_app(launch, (80, 24)) as pilot:
        pilot.app.push_screen(ConversationScreen("many", entries))
        await until(pilot, lambda: is_choosing(pilot) and bool(rows_of(pilot)))
        assert len(rows_of(pilot)) < 500
        await pilot.press("slash", *"words 3")
        assert len(rows_of(pilot)) < 500 and rows_of(pilot)[1].startswith("chat-10 ")
        await pilot.press("escape")
        for _ in range(20):
            await pilot.press("pagedown")
        listed = pilot.app.screen.query_one("#pick", OptionList)
        assert listed.highlighted is not None and 200 < listed.highlighted < len(rows_of(pilot)) < 1000
        await pilot.press("end")
        assert rows_of(pilot)[listed.highlighted].startswith("chat-4999 ")


class SlowFile:
    """A dataset of which the second part is read only when the test says so."""

    def __init__(self, path: Path, problem: DatasetError | None = None) -> None:
        self.goes_on = Event()
        self.ended = Event()
        self._path = path
        self._problem = problem
        path.write_bytes(b" " * 1000)

    def load(self, specs: Sequence[str], catalog: Catalog) -> Iterator[Conversation]:
        advance = catalog.opened(self._path)
        try:
            yield conversation("tiny-01")
            advance(400)
            yield conversation("tiny-02")
            assert self.goes_on.wait(30)
            advance(600)
            if self._problem is not None:
                raise self._problem
            yield conversation("tiny-03")
        finally:
            catalog.warnings += ["3 parts of type audio are not shown", "1 chat is left out"]
            self.ended.set()


def reads(launch: Launch, file: SlowFile) -> Launch:
    return replace(launch, load=file.load, to_read=("big.json",))


async def test_conversations_are_listed_while_the_file_is_read(launch: Launch, tmp_path: Path) -> None:
    file = SlowFile(tmp_path / "big.json")
    async with open_app(reads(launch, file)) as pilot:
        await until(pilot, lambda: is_choosing(pilot) and len(rows_of(pilot)) == 2)
        assert "reading big.json: 40 %" in str(pilot.app.screen.query_one("#pick").border_subtitle)
        file.goes_on.set()
        await until(pilot, lambda: len(rows_of(pilot)) == 3)
        await until(pilot, lambda: "reading" not in str(pilot.app.screen.query_one("#pick").border_subtitle))


async def test_one_is_chosen_before_the_end_and_what_was_left_out_is_said(launch: Launch, tmp_path: Path) -> None:
    file = SlowFile(tmp_path / "big.json")
    async with open_app(live(reads(launch, file), tmp_path)) as pilot:
        await until(pilot, lambda: is_choosing(pilot) and len(rows_of(pilot)) == 2)
        await pilot.press("down", "enter")
        file.goes_on.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert replay_of(pilot).timeline.conversation == conversation("tiny-02")
        said = [note.message for note in pilot.app._notifications]
        assert "3 parts of type audio are not shown (and 1 more kind: K lists them)" in said
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, TextScreen))
        assert "1 chat is left out" in pilot.app.screen.query_one("#text", LinesView).text


async def test_escape_ends_the_reading(launch: Launch, tmp_path: Path) -> None:
    file = SlowFile(tmp_path / "big.json")
    async with open_app(reads(launch, file)) as pilot:
        await until(pilot, lambda: is_choosing(pilot) and len(rows_of(pilot)) == 2)
        await pilot.press("escape")
        file.goes_on.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen) and file.ended.is_set())
        assert pilot.app.screen.query_one("#status", LinesView).text.strip() == ""


async def test_an_error_in_a_large_file_gives_its_sentence(launch: Launch, tmp_path: Path) -> None:
    file = SlowFile(tmp_path / "big.json", DatasetError("big.json", "/3", "is not valid JSON", "JSON"))
    async with open_app(reads(launch, file)) as pilot:
        await until(pilot, lambda: is_choosing(pilot) and len(rows_of(pilot)) == 2)
        file.goes_on.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        await until(pilot, lambda: "is not valid JSON" in pilot.app.screen.query_one("#status", LinesView).text)


async def test_recorded_conversations_are_listed_with_their_first_words(launch: Launch, tmp_path: Path) -> None:
    path = record(tmp_path / "two.sqlite3", "tiny-01", "tiny-02")
    async with open_app(replace(launch, recording=path)) as pilot:
        await until(pilot, lambda: is_choosing(pilot) and len(rows_of(pilot)) == 3)
        everything, first, second = rows_of(pilot)
        assert everything == "results of all 2 conversations"
        assert first.startswith("tiny-01 ") and "Marta Vidal" in first and first.endswith("8 turns")
        await pilot.press("slash", *"tiny-02", "enter", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert replay_of(pilot).timeline.conversation.id == "tiny-02"
        assert second.startswith("tiny-02 ")


def test_a_conversation_comes_back_from_a_catalog_as_it_was() -> None:
    catalog = Catalog()
    titled = conversation("tiny-02").model_copy(update={"title": "Boats"})
    catalog.fill(lambda specs, _: [conversation("tiny-01"), titled], ["any"])
    assert [catalog.conversation(place) for place in (1, 0)] == [titled, conversation("tiny-01")]
    assert [entry.title for entry in catalog.entries] == [None, "Boats"]
