"""A question asked by hand, of memory as it stood."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memreplay.conversations.models import Question
from memreplay.conversations.registry import load
from memreplay.grading import Score
from memreplay.llm.prompts import KINDS
from memreplay.tui.launch import Launch
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.duel import DuelColumn, DuelScreen
from memreplay.tui.widgets.lines_view import LinesView
from tests.stubs.live_assembly import StubAssembly
from tests.tui.builder import record_changed
from tests.tui.conftest import open_replay, replay_of, until
from tests.tui.looking import explained, rested, text_of


async def test_a_question_by_hand_is_answered_from_memory_as_it_stood(
    live_launch: Launch, assembly: StubAssembly
) -> None:
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        await pilot.press("4", ".")
        await until(pilot, lambda: screen.cursor == 4)
        await rested(pilot)
        screen.move_to(2)
        held = {name: await backend.snapshot() for name, backend in assembly.backends.items()}
        await pilot.press("a", "down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
        await pilot.press("V")
        await explained(pilot)
        assert "asked by hand" in text_of(pilot, "#header")
        assert "at turn 2" in text_of(pilot, "#header")
        await pilot.press("escape")
        assert "by hand, turn 2" in screen.query_one("#answers", LinesView).text
        assert {name: await backend.snapshot() for name, backend in assembly.backends.items()} == held
        await pilot.press("a", *"Who is [Marta]?", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
        assert "Who is [Marta]?" in text_of(pilot, "#asked")
        replies = [column.text for column in pilot.app.screen.query(DuelColumn)]
        assert len(replies) == 3 and all("“" in reply for reply in replies), "every architecture's reply is shown"


async def test_the_duel_shows_where_each_memory_ranked_the_evidence_and_cuts_it_again(recorded: Launch) -> None:
    async with open_replay(recorded, (160, 45)) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.press("a", *"port", "down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
        assert "Which port does the database listen on?" in text_of(pilot, "#asked")
        assert "asked by hand" not in text_of(pilot, "#header"), (
            "the answers of the run are shown; no model is asked"
        )
        columns = [*pilot.app.screen.query(DuelColumn)]
        assert ["“5432”" in columns[0].text, "“6543”" in columns[2].text] == [True, True]
        await until(pilot, lambda: "written but not retrieved" in columns[0].text)
        assert "as recorded" in text_of(pilot, "#header")
        await pilot.press(">")
        assert "and 8,448 tokens; no model is asked" in text_of(pilot, "#header")
        await pilot.press("0", "right", "V")
        await explained(pilot)
        assert "rag" in text_of(pilot, "#header")
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
        await pilot.press("escape", "escape")
        assert pilot.app.screen is screen


async def test_a_question_by_hand_whose_grading_fails_shows_the_reply_and_why(
    live_launch: Launch, assembly: StubAssembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(question: Question, text: str) -> Score:
        raise StopIteration

    monkeypatch.setitem(KINDS, "recall", replace(KINDS["recall"], score=failing))  # type: ignore[arg-type]
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        await pilot.press("4", ".")
        await until(pilot, lambda: screen.cursor == 4)
        await rested(pilot)
        screen.move_to(2)
        await pilot.press("a", "down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
        replies = [column.text for column in pilot.app.screen.query(DuelColumn)]
        assert len(replies) == 3 and all(
            "grading failed: StopIteration" in " ".join(one.split()) for one in replies
        )
        assert all("“" in reply for reply in replies)


async def test_a_question_by_hand_becomes_a_test_that_is_graded_at_once(
    live_launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_replay(live_launch) as pilot:
        screen = replay_of(pilot)
        await rested(pilot)
        await pilot.press("4", ".")
        await until(pilot, lambda: screen.cursor == 4)
        await rested(pilot)
        for question, expected in (("Who is it?", "Marta"), ("Which firm is it?", "Nimbus Labs")):
            await pilot.press("a", *question, "enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
            await pilot.press("t")
            await until(pilot, lambda: isinstance(pilot.app.screen, TypingScreen))
            await pilot.press(*expected, "enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
            await pilot.press("enter")
            said = f"expected {expected}"
            await until(pilot, lambda said=said: said in " ".join(text_of(pilot, "#asked").split()))  # type: ignore[misc]
            await until(pilot, lambda: not text_of(pilot, "#asked").count(" ? "))
            await pilot.press("escape")
            await until(pilot, lambda: pilot.app.screen is screen)
    kept = json.loads(Path("tiny-01-to-turn-4.asked.json").read_text())
    assert [each["question"] for each in kept["recallQuestions"]] == ["Who is it?", "Which firm is it?"]
    assert len(kept.get("turns", ())) + sum(len(each["turns"]) for each in kept.get("sessions", ())) == 4
    (conversation,) = load(["tiny-01-to-turn-4.asked.json"])
    assert [question.expected for question in conversation.questions] == ["Marta", "Nimbus Labs"]
    assert all(question.evidence for question in conversation.questions)
    test = Path("test_tiny_01_to_turn_4_asked.py").read_text()
    compile(test, "test", "exec")
    assert "def test_rag_recalls(memory, question)" in test


async def test_a_question_by_hand_is_asked_under_the_limits_of_the_recording(
    launch: Launch, tmp_path: Path
) -> None:
    path = record_changed(tmp_path / "limited.sqlite3", {}, top_k=1, backend=["rag"], embedder="minilm")
    async with open_replay(replace(launch, recording=path, backends=("rag",))) as pilot:
        await pilot.press("G", "a", *"Who is it?", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DuelScreen))
        by_hand = [answer.asked for answer in replay_of(pilot).timeline.answers() if answer.asked.by_hand]
        assert by_hand and all(len(asked.hits) <= 1 for asked in by_hand if asked.backend == "rag")
