"""Drafted questions on the screen: each decision is in the file before the next key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from memreplay.conversations.models import Conversation, Session, Turn
from memreplay.drafting.drafts import DraftBook, DraftedPart, DraftedQuestion, Quote
from memreplay.drafting.review import ReviewApp
from memreplay.tui.launch import ThemeChoice
from memreplay.tui.screens.dialogs import TypingScreen
from memreplay.tui.widgets.lines_view import LinesView

HOSTILE = "[bold]\x1b[2JTilda[/bold]"
TEXTS = [f"Small talk number {n}." for n in range(30)]
TEXTS[4] = "My neighbour is Bertram, on plot 14."
TEXTS[20] = f"My sister is {HOSTILE}. " + "On and on. " * 400 + "The boat is called Merle."


def log() -> Conversation:
    turns = tuple(
        Turn(
            id=str(n + 1),
            number=n + 1,
            session=1,
            role="assistant" if n % 2 else "user",
            speaker=None,
            text=text,
        )
        for n, text in enumerate(TEXTS)
    )
    return Conversation(id="chat", dataset="chat", sessions=(Session(number=1, id="1"),), turns=turns, questions=())


def draft(number: int, question: str, answer: str, turn: str, quote: str) -> DraftedQuestion:
    evidence = (Quote(turn=turn, quote=quote),)
    return DraftedQuestion(
        id=f"1.{number}", question=question, answer=answer, type="single_fact", evidence=evidence
    )


@pytest.fixture
def book(tmp_path: Path) -> DraftBook:
    made = DraftBook(tmp_path / "chat.drafts.jsonl", log())
    drafts = (
        draft(1, "Who is the neighbour?", "Bertram", "5", "neighbour is Bertram"),
        draft(2, "Who is the sister?", "Tilda Vance", "21", "My sister is"),
        draft(3, "What is the boat called?", "Merle", "21", "boat is called Merle"),
    )
    made.add(DraftedPart(number=1, first="1", last="30", model="m", drafts=drafts))
    return made


def reread(book: DraftBook) -> list[tuple[str, str, str]]:
    """Decisions as another process would find them."""
    found = DraftBook(book.path, log()).drafts
    return [(draft.decision, draft.question, draft.answer) for draft in found]


@asynccontextmanager
async def reviewing(book: DraftBook, size: tuple[int, int] = (140, 40)) -> AsyncIterator[Pilot[Any]]:
    app = ReviewApp(book, {}, ThemeChoice())
    async with app.run_test(size=size) as pilot:
        yield pilot


def shown(pilot: Pilot[Any], name: str) -> str:
    return " ".join(pilot.app.screen.query_one(name, LinesView).text.split())


async def test_a_decision_is_kept_at_once_and_leads_to_the_next_open_draft(book: DraftBook) -> None:
    async with reviewing(book) as pilot:
        assert "Who is the neighbour?" in shown(pilot, "#draft")
        await pilot.press("y")
        assert [decision for decision, *_ in reread(book)] == ["accepted", "open", "open"]
        assert "Who is the sister?" in shown(pilot, "#draft")
        await pilot.press("n", "g", "u", "n")
        assert [decision for decision, *_ in reread(book)] == ["rejected", "rejected", "open"]
        assert "0 accepted, 2 rejected · 1 left" in shown(pilot, "#header")
        await pilot.press("q")
    async with reviewing(DraftBook(book.path, log())) as pilot:
        assert "What is the boat called?" in shown(pilot, "#draft"), "it goes on where one stopped"
        await pilot.press("y")
        assert any("Every draft is decided" in note.message for note in pilot.app._notifications)


async def test_the_evidence_is_shown_in_its_context(book: DraftBook) -> None:
    async with reviewing(book) as pilot:
        text = shown(pilot, "#draft")
        assert "◇ [5] User" in text and "My neighbour is Bertram, on plot 14." in text
        assert "Small talk number 3." in text and "Small talk number 6." in text
        assert "Small talk number 1." not in text and "Small talk number 8." not in text
        await pilot.press("G")
        text = shown(pilot, "#draft")
        assert "The boat is called Merle." in text, "of a long turn the part around the quote"
        await pilot.press("k")
        text = shown(pilot, "#draft")
        assert "answer does not stand in its evidence" in text
        assert "[bold]\\u001b[2JTilda[/bold]" in text, "what the conversation says is shown and not obeyed"


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_question_and_answer_are_edited_and_what_they_must_not_be_is_said(
    size: tuple[int, int], book: DraftBook
) -> None:
    async with reviewing(book, size) as pilot:
        await pilot.press("j", "enter")
        assert isinstance(pilot.app.screen, TypingScreen)
        typed = pilot.app.screen.query_one("#typed", Input)
        assert typed.value == "Tilda Vance"
        typed.value = "sister"
        await pilot.press("enter")
        assert "contains this answer" in shown(pilot, "#fits")
        typed.value = "Tilda"
        await pilot.press("enter")
        await pilot.press("E")
        pilot.app.screen.query_one("#typed", Input).value = "What is the sister's name?"
        await pilot.press("enter")
        assert reread(book)[1] == ("open", "What is the sister's name?", "Tilda")
        assert "answer does not stand" not in shown(pilot, "#draft")
        await pilot.press("enter", "escape", "y")
        assert reread(book)[1] == ("accepted", "What is the sister's name?", "Tilda")


async def test_a_decision_that_cannot_be_written_is_not_shown_as_made(book: DraftBook) -> None:
    async with reviewing(book) as pilot:
        book.path.unlink()
        book.path.mkdir()
        await pilot.press("y")
        assert any("cannot be written" in note.message for note in pilot.app._notifications)
        assert "0 accepted" in shown(pilot, "#header")
