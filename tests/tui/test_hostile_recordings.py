"""On the screen too, a recording runs and contacts only what its reader allows."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from memreplay.goodai.run import ShownTests
from memreplay.runtime.recorded import continued
from memreplay.runtime.run import Run
from memreplay.settings import Settings
from memreplay.trust import Consent
from memreplay.tui.launch import Launch
from memreplay.tui.requests import ForkWanted, WhatIfWanted
from memreplay.tui.screens.dialogs import PickScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.what_if import WhatIfScreen
from memreplay.views.panels.what_if import Row
from tests.stubs.in_process import made_in
from tests.stubs.reach import reached
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import text_of


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a whole run."""
    folder = tmp_path_factory.mktemp("finished")
    made_in(folder, *"--batch --dataset identity-02 --backend rag --top-k 1 --recording r.sqlite3".split())
    return folder / "r.sqlite3"


@pytest.fixture
def hostile(tmp_path: Path, launch: Launch, finished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    """Straight into an interrupted recording that names a module of the current folder, which notes its import."""
    path = tmp_path / "r.sqlite3"
    path.write_bytes(finished.read_bytes())
    with closing(sqlite3.connect(path)) as db, db:
        (settings,) = db.execute("select settings from runs").fetchone()
        changed = {"backend": ["rag", "evilmod:Memory"], "closed_book_asked_along": False}
        db.execute(
            "update runs set status = 'interrupted', settings = ?", [json.dumps(json.loads(settings) | changed)]
        )
        for column in ("backend", "body"):
            db.execute(f"update events set {column} = replace({column}, 'closed_book', 'evilmod:Memory')")
    (tmp_path / "evilmod.py").write_text("from pathlib import Path\nPath('PWNED').touch()\nclass Memory: ...\n")
    monkeypatch.chdir(tmp_path)
    shown = ShownTests(Settings())

    def resume(recording: Path, settings: Mapping[str, Any], consent: Consent) -> Run:
        return continued(recording, settings, Settings(), consent)

    def assemble(backends: Sequence[str], model: str) -> Run:
        return shown.assemble(backends, model, tmp_path / "live.sqlite3")

    yield replace(launch, recording=path, recordings=lambda: [path], resume=resume, assemble=assemble)
    sys.modules.pop("evilmod", None)


async def press_continue(pilot: Pilot[None]) -> None:
    await pilot.press("L")


async def press_ask(pilot: Pilot[None]) -> None:
    await pilot.press("a")
    await until(pilot, lambda: bool(pilot.app.screen.query("#typed")))
    pilot.app.screen.query_one(Input).value = "Where do I live?"
    await pilot.press("enter")


async def press_fork(pilot: Pilot[None]) -> None:
    pilot.app.post_message(ForkWanted(replay_of(pilot).source, 8, changed=("top-k=2",)))


async def press_what_if(pilot: Pilot[None]) -> None:
    source = replay_of(pilot).source
    answer = next(iter(source.timeline.answers()))
    question = next(q for q in source.timeline.conversation.questions if q.id == answer.asked.question_id)
    pilot.app.post_message(WhatIfWanted(source.timeline, question, answer, source))
    await until(pilot, lambda: bool(rows_of_what_if(pilot)))


async def press_what_if_and_ask(pilot: Pilot[None]) -> None:
    await press_what_if(pilot)
    await pilot.press("enter")


def rows_of_what_if(pilot: Pilot[None]) -> Sequence[Row]:
    screen = pilot.app.screen
    return screen._rows if isinstance(screen, WhatIfScreen) else ()


def said(pilot: Pilot[None]) -> str:
    """What the screen reports: notifications, and the line about problems."""
    trouble = text_of(pilot, "#trouble") if pilot.app.screen.query("#trouble") else ""
    return " ".join([*(note.message for note in pilot.app._notifications), *trouble.split()])


WAYS = {"L": press_continue, "a": press_ask, "F": press_fork, "i": press_what_if_and_ask}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("allowed", [False, True], ids=["no", "yes"])
async def test_the_reader_is_asked_first(
    hostile: Launch, tmp_path: Path, way: Callable[[Pilot[None]], Any], allowed: bool
) -> None:
    with reached() as noted:
        async with open_replay(hostile) as pilot:
            await way(pilot)
            await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
            options = pilot.app.screen.query_one(OptionList)
            assert "asks for what your settings do not name" in str(options.border_title)
            assert "backend evilmod:Memory runs its code" in str(options.get_option_at_index(1).prompt)
            assert options.highlighted == 0 and not (tmp_path / "PWNED").exists()
            await pilot.press(*(["down"] if allowed else []), "enter")
            below = WhatIfScreen if way is press_what_if_and_ask else ReplayScreen
            if not allowed:
                await until(pilot, lambda: isinstance(pilot.app.screen, below))
                await until(pilot, lambda: "so nothing was started" in said(pilot))
            elif way is press_what_if_and_ask:
                await until(pilot, lambda: rows_of_what_if(pilot)[0].reask is not None)
            else:
                await until(pilot, lambda: (tmp_path / "PWNED").exists())
    assert not noted
    if not allowed:
        assert not (tmp_path / "PWNED").exists() and "evilmod" not in sys.modules


async def test_replies_that_are_in_the_file_are_shown_without_asking_the_reader(hostile: Launch) -> None:
    async with open_replay(replace(hostile, allows_recordings=True)) as pilot:
        await press_what_if_and_ask(pilot)
        await until(pilot, lambda: rows_of_what_if(pilot)[0].reask is not None)
    async with open_replay(hostile) as pilot:
        await press_what_if(pilot)
        assert rows_of_what_if(pilot)[0].reask is not None
