"""A running agent on the screen: what memory should have returned, and what it does while one looks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.conversations.registry import load as read_conversations
from memreplay.tui.launch import Launch
from tests.stubs.agents import SAYS, converse, recorded_notebook
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import explained, found, text_of, typed


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
        assert "turn 3 is not in what memory returned" in text_of(pilot, "#prompt")
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
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name],
        capture_output=True,
        text=True,
        cwd=kept,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


async def test_a_question_of_a_dataset_is_not_kept_again(recorded: Launch):
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "enter")
        await explained(pilot)
        await pilot.press("t")
        await until(pilot, lambda: any("is kept already" in note.message for note in pilot.app._notifications))
