"""A running agent on the screen: what memory should have returned, and what it does while one looks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.capture.marks import add_mark
from memreplay.conversations.registry import load as read_conversations
from memreplay.tui.launch import Launch
from memreplay.tui.screens.duel import DuelScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.stubs.agents import SAYS, converse, recorded_notebook
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import explained, found, panel_text, text_of, typed
from tests.unit.capture.test_spans import conversation_of_spans, recorded


@pytest.fixture
def agent(tmp_path: Path, launch: Launch) -> Launch:
    """Straight into the recording of an agent, whose memory dropped the promotion."""
    path = tmp_path / "agent.sqlite3"
    converse(recorded_notebook(path), marked=True)
    return replace(launch, recording=path, recordings=lambda: [path])


async def test_four_keys_lead_to_the_write_that_should_have_happened(agent: Launch):
    async with open_replay(agent) as pilot:
        await pilot.press("G", "comma", "a")
        await typed(pilot, "promotion")
        await explained(pilot)
        assert "never written" in text_of(pilot, "#verdict")
        assert "What was my promotion?" in text_of(pilot, "#head")
        assert "turn 3 is not word for word in what memory returned" in text_of(pilot, "#prompt")
        await pilot.press("w")
        await until(pilot, lambda: "What was stored of turn 3 leaves the answer out." in found(pilot))
        assert replay_of(pilot).cursor == 4


async def test_a_hit_that_was_returned_is_shown_with_its_evidence(agent: Launch):
    async with open_replay(agent) as pilot:
        replay_of(pilot).move_to(9)
        await pilot.press("a")
        await typed(pilot, "Girona")
        await pilot.press("enter")  # several turns say it; the first is chosen
        await explained(pilot)
        said = " ".join(text_of(pilot, "#verdict").split())
        assert "Memory returned the answer at rank 1 of 2; the prompt that the model got was not recorded." in said
        assert "◆ 1 0.100  My name is Ann and I live in Girona." in text_of(pilot, "#prompt")
        assert "2 hits returned · the prompt was not recorded" in said
        assert "its tokens, cost and time were not recorded" in said


@pytest.mark.parametrize("silent", [("search_memory",), ("search_memory", "create_memory")])
async def test_what_a_read_found_is_unknown_where_it_was_not_recorded(
    launch: Launch, tmp_path: Path, silent: tuple[str, ...]
):
    path = tmp_path / "agent.sqlite3"
    spans = conversation_of_spans()
    for each in spans:
        if each["name"] in silent:
            each["attributes"] = [one for one in each["attributes"] if one["key"] != "gen_ai.memory.records"]
    recorded(path, *spans).close()
    add_mark(path, "ann", 7, "Girona", ["1"])
    async with open_replay(replace(launch, recording=path), (120, 40)) as pilot:
        screen = replay_of(pilot)
        screen.move_to(7)
        await pilot.pause()
        assert "what it found was not recorded  5.0 ms" in panel_text(screen, "zep", "operations")
        stored = panel_text(screen, "zep", "stores")
        assert stored.startswith("what this memory stored was not" if len(silent) > 1 else "facts  2 points")
        await pilot.press("v")
        await pilot.pause()
        assert "what it found was not recorded" in panel_text(screen, "zep", "context")
        await pilot.press("r")
        await until(pilot, lambda: "zep" in text_of(pilot, "#scores"))
        assert text_of(pilot, "#scores").splitlines()[1].split() == "1 zep 0/1 0 % – – – 1".split()
        await pilot.press("enter")
        await explained(pilot)
        assert "turn 1  – what memory returned was not recorded" in text_of(pilot, "#verdict")
        assert text_of(pilot, "#prompt").startswith("– what of this prompt memory gave was not recorded")
        assert pilot.app.screen.query_one("#prompt").border_subtitle == "unknown tokens of memory"
        await pilot.press("f")
        await until(pilot, lambda: "asked" in text_of(pilot, "#life"))
        life = text_of(pilot, "#life")
        assert "mark-12  – what memory returned was not recorded" in life
        assert "retrieved unknown: no search at an ordinary turn is recorded" in life and "✗ what" not in life
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
        shown = [view.text for view in pilot.app.screen.query(LinesView)]
        assert any("what memory returned was not recorded" in text for text in shown)
        assert not any("at most" in text for text in shown)


async def test_what_the_agent_does_meanwhile_is_followed(agent: Launch):
    assert agent.recording is not None
    async with open_replay(replace(agent, follow=True)) as pilot:
        assert replay_of(pilot).cursor == replay_of(pilot).timeline.last_turn, "it opens at the newest turn"
        assert text_of(pilot, "#header").startswith(" FOLLOWING ")
        converse(recorded_notebook(agent.recording), marked=True, says=SAYS[:1], session="tuesday")
        # Not with the pilot, which waits for the widgets of a screen that is just being replaced.
        for _ in range(1000):
            await asyncio.sleep(0.02)
            if replay_of(pilot).cursor == 14:
                break
        assert replay_of(pilot).timeline.last_turn == 14


async def test_a_marked_question_is_kept_as_a_dataset_and_a_test(
    agent: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.chdir(kept)
    async with open_replay(agent) as pilot:
        await pilot.press("G", "comma", "a")
        await typed(pilot, "promotion")
        await explained(pilot)
        await pilot.press("t")
        await until(pilot, lambda: any("Saved as" in note.message for note in pilot.app._notifications))
    (dataset,), (test,) = kept.glob("*.json"), kept.glob("test_*.py")
    (conversation,) = read_conversations([str(dataset)])
    assert [turn.text for turn in conversation.turns if turn.role == "user"] == list(SAYS[:-1])
    (question,) = conversation.questions
    assert (question.text, question.expected) == (SAYS[-1], "promotion")
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "pytest", "-q", "-p", "memreplay", "-p", "no:cacheprovider", test.name],
        capture_output=True,
        text=True,
        cwd=kept,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


async def test_a_question_of_a_dataset_is_not_kept_again(recorded: Launch):
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "enter")
        await explained(pilot)
        await pilot.press("t")
        await until(pilot, lambda: any("is kept already" in note.message for note in pilot.app._notifications))
