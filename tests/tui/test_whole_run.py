"""The results of a whole run: the questions of all its conversations in one list, and from each to its evidence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from memreplay.engine.events import AnswerScored
from memreplay.grading import RetrievalScore, Score
from memreplay.paths import demo_recording
from memreplay.scoring.aggregates import headline_of
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.groups import group_of
from memreplay.scoring.holding import Answerable
from memreplay.scoring.rows import question_row
from memreplay.timeline.timeline import Timeline
from memreplay.tui.launch import Launch
from memreplay.tui.screens.budget import BudgetScreen
from memreplay.tui.screens.dialogs import PickScreen
from memreplay.tui.screens.regression import RegressionScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.start import StartScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.sources import labels_in
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.panels.answers import AnswersTable
from memreplay.views.panels.results import Matrix, tally, title_of
from tests.stubs.in_process import exit_code
from tests.tui.answers import answers
from tests.tui.builder import conversation, events, record, record_changed
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import questions_title, seen, text_of, typed


async def listed(pilot: Pilot[None]) -> ResultsScreen:
    """The list with all that there is to know of it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
    await until(pilot, lambda: "guessed" in text_of(pilot, "#legend"))
    screen = pilot.app.screen
    assert isinstance(screen, ResultsScreen)
    return screen


@pytest.mark.parametrize("size", [(80, 24), (118, 36)])
async def test_an_uncertain_verdict_has_a_mark_after_its_letter(
    launch: Launch, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = record(tmp_path / "one.sqlite3")
    assert exit_code("report", path, "--output", tmp_path / "out.json") == 0
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "update scores set failure_doubt = 'same_session'"
            " where failure = 'not_retrieved' and backend = 'hybrid'"
        )
    async with open_app(replace(launch, recordings=lambda: [path]), size) as pilot:
        await until(pilot, lambda: pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0)
        await pilot.press("R")
        await listed(pilot)
        rows = text_of(pilot, "#questions").splitlines()
        assert [("R~" in row, "[R]~" in row) for row in rows[:3]] == [(False, False), (True, False), (False, False)]
        await pilot.press("j")
        await pilot.pause()
        assert "[R]~" in text_of(pilot, "#questions").splitlines()[1]
        assert " R~ hybrid" in text_of(pilot, "#details")
        assert "~ uncertain" in text_of(pilot, "#legend")


async def test_a_short_screen_says_how_many_conversations_are_attributed(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record(tmp_path / "two.sqlite3", "one", "the-other")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("delete from scores")
    titles = []
    async with open_app(replace(launch, recordings=lambda: [path]), (80, 24)) as pilot:

        def looking(*of: Any) -> Any:
            titles.append(questions_title(pilot))
            return labels_in(*of)

        monkeypatch.setattr("memreplay.tui.screens.results.labels_in", looking)
        await until(pilot, lambda: pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0)
        await pilot.press("R")
        await listed(pilot)
        assert "attributing failures …" in titles[0] and "attributing failures: 1 of 2 conversations" in titles[1]
        assert "attributing" not in questions_title(pilot)


async def test_a_run_is_narrowed_as_one_list_and_leads_to_the_evidence_in_the_right_conversation(
    launch: Launch, tmp_path: Path
) -> None:
    path = record(tmp_path / "two.sqlite3", "[red]one", "the-other")
    async with open_app(replace(launch, recordings=lambda: [path])) as pilot:
        await until(pilot, lambda: pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0)
        await pilot.press("R")
        run = await listed(pilot)
        assert "6 questions of 2 conversations" in text_of(pilot, "#header")
        scores = [row.split() for row in text_of(pilot, "#scores").splitlines()]
        assert scores[0][6:] == ["!", "?", "R", "g"]
        assert [row[1:5] for row in scores[1:]] == [
            ["hybrid", "4/6", "67", "%"],
            ["rag", "2/4", "50", "%"],
            ["full_context", "4/6", "67", "%"],
        ]
        assert scores[2][10:] == ["2", "2", "·", "2"]
        assert "1. [red]one · What is the user" in text_of(pilot, "#details")
        await pilot.press("o")
        options = pilot.app.screen.query_one("#pick", OptionList).options
        names = [str(option.prompt) for option in options]
        assert names[:2] == ["all · 6", "disagreement · 6"]
        pilot.app.screen.query_one("#pick", OptionList).highlighted = names.index("error · 2")
        await pilot.press("enter", "j")
        assert "error · 2 of 6" in questions_title(pilot)
        await pilot.press("[")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen) and replay_of(pilot).cursor == 1)
        assert replay_of(pilot).timeline.conversation.id == "the-other"
        await pilot.press("escape")
        assert pilot.app.screen is run
        assert run.document.cursor == 1
        assert "error · 2 of 6" in questions_title(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        assert "What is the user's full name?" in text_of(pilot, "#head")
        await pilot.press("escape")
        assert pilot.app.screen is run
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, StartScreen)


async def test_from_the_results_of_a_conversation_to_those_of_its_run(recorded: Launch) -> None:
    async with open_replay(recorded, (80, 24)) as pilot:
        await pilot.press("r", "R")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        await until(pilot, lambda: "1. What is the user" in text_of(pilot, "#details"))
        assert "3 questions of one conversation" in text_of(pilot, "#header")
        await pilot.press("[")
        await until(pilot, lambda: pilot.app.screen is replay_of(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        assert " RUN " in text_of(pilot, "#header"), "back to the tab that led to the evidence"


async def test_the_tabs_of_the_results_stand_in_one_place(recorded: Launch, tmp_path: Path) -> None:
    other = record_changed(tmp_path / "other.sqlite3", {("q2", "hybrid"): "correct"}, top_k=20)
    async with open_replay(replace(recorded, recordings=lambda: [other]), (80, 24)) as pilot:

        def tabs() -> str:
            headers = pilot.app.screen.query("#header").results(LinesView)
            return next((header.text.partition("compared ")[0] for header in headers), "")

        replay, below = pilot.app.screen, len(pilot.app.screen_stack)
        await pilot.press("r")
        assert tabs() == " CONVERSATION  R run  d "
        await pilot.press("R")
        await until(pilot, lambda: tabs() == " r conversation  RUN  d ")
        assert len(pilot.app.screen_stack) == below + 1
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RegressionScreen))
        assert "2 other.sqlite3" in text_of(pilot, "#header")
        await pilot.press("r")
        await until(pilot, lambda: tabs() == " CONVERSATION  R run  d ")
        assert len(pilot.app.screen_stack) == below + 1
        await pilot.press("r")
        assert pilot.app.screen is replay


async def test_only_recordings_of_the_same_conversations_are_offered_for_a_comparison(
    recorded: Launch, tmp_path: Path
) -> None:
    same = record_changed(tmp_path / "same.sqlite3", {("q2", "hybrid"): "correct"}, top_k=20)
    apart = record(tmp_path / "apart.sqlite3", "elsewhere")
    no_recording = tmp_path / "broken.sqlite3"
    no_recording.write_text("nothing")
    found = [apart, no_recording, same]
    async with open_replay(replace(recorded, recordings=lambda: found), (80, 24)) as pilot:
        await pilot.press("r", "d")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        offered = pilot.app.screen.query_one("#pick", OptionList)
        assert [str(option.prompt).split()[0] for option in offered.options] == ["same"]
        assert str(offered.border_title) == "compare with · left out: 2 without a common conversation"
        await pilot.press("escape")
        found.remove(same)
        await pilot.press("d")
        await until(pilot, lambda: bool(pilot.app._notifications))
        (note,) = pilot.app._notifications
        assert "left out: 2 without a common conversation" in note.message


async def test_the_legend_is_whole_on_a_small_screen(launch: Launch) -> None:
    async with open_app(replace(launch, recordings=lambda: [demo_recording()]), (80, 24)) as pilot:
        await until(pilot, lambda: pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0)
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        await until(pilot, lambda: "M misread" in text_of(pilot, "#legend"))
        await pilot.pause()
        legend = seen(pilot.app.screen.query_one("#legend", LinesView))
        assert legend.endswith("if none, or all, of the uncertain grades are right")
        assert "R not retrieved" in legend and len(legend.splitlines()) == 2


async def test_settings_stand_beside_the_budget_curve(recorded: Launch) -> None:
    async with open_replay(recorded, (120, 40)) as pilot:
        await pilot.press("r", "u")
        await until(pilot, lambda: isinstance(pilot.app.screen, BudgetScreen))
        await until(pilot, lambda: "tokens" in text_of(pilot, "#header"))
        await pilot.press("tab")
        await until(pilot, lambda: "no ranking or evidence was recorded" in text_of(pilot, "#settings"))
        assert "SETTINGS" in text_of(pilot, "#header")
        await pilot.press("tab")
        await until(pilot, lambda: "BUDGET" in text_of(pilot, "#header"))


@pytest.mark.parametrize("size", [(200, 60), (120, 36), (80, 24)])
async def test_all_settings_can_be_scrolled_to_and_none_is_chosen_by_an_estimate(
    launch: Launch, size: tuple[int, int]
) -> None:
    async with open_app(replace(launch, recordings=lambda: [demo_recording()]), size) as pilot:
        await until(pilot, lambda: pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0)
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultsScreen))
        await pilot.press("u")
        await until(pilot, lambda: isinstance(pilot.app.screen, BudgetScreen))
        await until(pilot, lambda: "at 1,024 tokens" in text_of(pilot, "#header"))
        await pilot.press("tab")
        await until(pilot, lambda: "chosen" in text_of(pilot, "#settings"))
        settings = pilot.app.screen.query_one("#settings", LinesView)
        assert settings.text.count("Pareto front") > 2 and "full_context" in settings.text
        top = seen(settings)
        assert " ".join(top.split()).startswith(
            "hybrid: it composes its prompt anew for each setting; memreplay sweep FILE asks it under each. rag"
        ), "it has no row, and no setting is chosen for it"
        await pilot.press("G")
        await pilot.pause()
        assert " ".join(seen(settings).split()).endswith("memreplay sweep --split reports it on others.")
        await pilot.press("g", "j", "ctrl+f", "pageup", "up")
        await pilot.pause()
        assert seen(settings) == top
        await pilot.press("question_mark")
        await until(pilot, lambda: "Scroll the settings down by a page." in text_of(pilot, "#help"))


async def test_n_walks_the_wrong_answers_of_one_filter_across_conversations_without_losing_the_place(
    launch: Launch, tmp_path: Path
) -> None:
    path = record(tmp_path / "two.sqlite3", "one", "other")
    async with open_app(replace(launch, recordings=lambda: [path])) as pilot:
        await until(pilot, lambda: pilot.app.screen.query_one("#recordings", OptionList).highlighted == 0)
        await pilot.press("R")
        run = await listed(pilot)
        await pilot.press("slash")
        await typed(pilot, "full_context:not_retrieved")
        assert "2 of 6" in questions_title(pilot)
        await pilot.press("n", "N", "home", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        seen = []
        for key in "nNn":
            seen.append(why_of(pilot))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen) and why_of(pilot) != seen[-1])
        one, other = ("one", "full_context"), ("other", "full_context")
        assert [*seen, why_of(pilot)] == [one, other, one, other], "rag was wrong too, and is not asked for"
        await pilot.press("escape")
        assert pilot.app.screen is run
        assert (run.document.cursor, run.document.column) == (1, 2)
        for _ in "ab":  # the same column again reverses the order
            await pilot.press("O")
            pilot.app.screen.query_one("#pick", OptionList).highlighted = 1
            await pilot.press("enter")
        await pilot.press("1", "2", "down", "escape", "R")
        again = await listed(pilot)
        assert again is not run
        assert "“full_context:not_retrieved” · 2 of 6" in questions_title(pilot)
        assert again.document.cursor == 1
        assert "▼" in text_of(pilot, "#columns"), "the order survives as well"
        await pilot.press("7", "G")
        assert again.document.cursor == 1, "question 7 does not exist"
        await pilot.press("4", "G")
        assert again.document.selected_question is not None
        assert "4. other" in text_of(pilot, "#details")
        await pilot.press("home", "end", "pageup", "g")
        assert again.document.cursor == 0


def why_of(pilot: Pilot[None]) -> tuple[str, str]:
    """Whose answer the page explains."""
    screen = pilot.app.screen
    assert isinstance(screen, WhyScreen)
    return screen.answer.asked.conversation, screen.answer.asked.backend


def test_scores_count_every_repeat_as_the_results_of_the_run_do() -> None:
    known = conversation()
    repeated = [*events(known)]
    for event in answers(known):
        again = event.model_copy(update={"repeat": 1})
        if isinstance(again, AnswerScored) and again.question_id == "q2":
            wrong = Score(outcome="wrong", score=0.0, predicted="neither", predicted_index=None)
            again = again.model_copy(update={"score": wrong, "retrieval": RetrievalScore(evidence_in_prompt=False)})
        repeated.append(again)
    played = Timeline(known, repeated)
    matrix = Matrix(AnswersTable.until(played, played.reached))
    assert title_of(matrix, None) == "scores by architecture, all repeats"
    attributor = Attributor(played)
    by_id = {question.id: Answerable(question, known.turns_by_id) for question in known.questions}
    for system in matrix.table.systems:
        rows = [
            question_row(
                by_id[one.asked.question_id], known, attributor.stages(one.asked), one.received, one.scored
            )
            for one in played.answers()
            if one.asked.backend == system.backend and one.received is not None and one.scored is not None
        ]
        shown, written = tally(matrix, matrix.table.questions, system), headline_of(rows)
        assert len(rows) == shown.total == 2 * len(known.questions)
        assert (shown.correct, shown.graded) == (group_of(rows).correct, group_of(rows).graded)
        assert (shown.accuracy, shown.evidence_in_prompt) == (written.accuracy, written.evidence_in_prompt)
