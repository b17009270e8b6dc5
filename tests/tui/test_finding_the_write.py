"""From a wrong answer to the write that should have happened, and back."""

from __future__ import annotations

from dataclasses import replace

from textual.widgets import OptionList

from memreplay.tui.launch import Launch
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.dialogs import ConversationScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.views.subjects import DecisionSubject, ValueSubject
from tests.conftest import REPOSITORY
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import explained, found, questions_title, seen, selected_panel, text_of


async def test_three_keys_lead_from_a_wrong_answer_to_where_it_should_have_been_written(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        await pilot.press("v", "v")  # the ledger is on another page than this
        await pilot.press("r")
        assert isinstance(pilot.app.screen, ResultsScreen)
        await pilot.press("j")
        await pilot.press("enter")
        await explained(pilot)
        await pilot.press("w")
        assert pilot.app.screen is screen
        assert screen.cursor == 4, "the exchange of turn 3 is complete at turn 4"
        assert screen.architectures.focused_backend == "hybrid"
        assert "Turn 3" in found(pilot)
        name, ledger = selected_panel(screen)
        assert (name, ledger.selected) == ("promotions", DecisionSubject("hybrid", 4, "c4", None))
        assert "DROP" in seen(ledger) and "a number in passing" in seen(ledger)
        await pilot.press("backspace")
        assert screen.cursor == 1
        assert found(pilot) == ""


async def test_two_keys_lead_from_a_recording_to_the_missing_write_and_back_leads_to_the_reason(
    recorded: Launch,
) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "j", "w")
        await until(pilot, lambda: pilot.app.screen is replay_of(pilot))
        assert replay_of(pilot).cursor == 4
        name, ledger = selected_panel(replay_of(pilot))
        assert (name, ledger.selected) == ("promotions", DecisionSubject("hybrid", 4, "c4", None))
        await pilot.press("backspace")
        await explained(pilot)


async def test_results_name_the_failures_and_are_narrowed_by_failure_and_by_disagreement(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "unparsed" in text_of(pilot, "#legend"))
        await pilot.press("o")
        picked = pilot.app.screen.query_one(OptionList)
        names = [str(picked.get_option_at_index(index).prompt) for index in range(picked.option_count)]
        assert names[:3] == ["all · 3", "disagreement · 3", "not right · 3"]
        assert {"error · 1", "unparsed · 1"} <= set(names)
        picked.highlighted = names.index("unparsed · 1")
        await pilot.press("enter")
        assert questions_title(pilot) == "questions · unparsed · 1 of 3"
        assert text_of(pilot, "#questions").split()[:2] == ["▶", "3"]
        assert "▸ ?  rag" in text_of(pilot, "#details") and "Barcelona or Girona" in text_of(pilot, "#details")
        await pilot.press("enter")
        await explained(pilot)
        assert "Barcelona or Girona" in text_of(pilot, "#head")
        await pilot.press("escape")
        await pilot.press("[")
        assert replay_of(pilot).cursor == 5


async def test_why_shows_the_prompt_the_reply_its_reading_and_the_other_architectures(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "enter")
        await explained(pilot)
        verdict = text_of(pilot, "#verdict")
        head = text_of(pilot, "#head")
        assert "What is the user's full name?" in head
        assert "expected  Marta Vidal  →  !" in head and "an error, not an answer" in head
        assert "What is the user's full name?" not in verdict, "each thing is said once"
        assert "! the collection does not answer" in verdict
        assert [name for name in ("hybrid", "rag", "full_context") if name in verdict] == [
            "hybrid",
            "rag",
            "full_context",
        ]
        assert "✗ turn 1 is not word for word in this prompt" in text_of(pilot, "#prompt")
        await pilot.press("right")
        assert "full_context" in text_of(pilot, "#header")
        assert "The conversation does not say." in text_of(pilot, "#head")
        await pilot.press("escape", "escape")
        assert isinstance(pilot.app.screen, ReplayScreen)


async def test_enter_on_an_answer_beside_the_conversation_opens_why(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.pause()
        screen.query_one("#answers").focus()
        await pilot.press("down", "enter")
        await explained(pilot)
        assert "What is the user's full name?" in text_of(pilot, "#head")


async def test_who_wrote_this_leads_to_the_command_and_back(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(8)
        await pilot.press("1")
        view = next(view for view in screen.architectures.panes[0].panels if view.panel.name == "shared state")
        view.focus()
        await pilot.pause()
        key = screen.timeline.state_keys("hybrid")[1]
        lines = range(len(view.document))
        place = next(
            at
            for at in lines
            if view.document.subject(at) == ValueSubject("hybrid", key, ("shared_data", "user.name"))
        )
        view.select(place)
        await pilot.press("w")
        assert screen.cursor <= 8
        assert "redis SET shared_state · " in found(pilot), "without the ids of run and conversation"
        await pilot.press("backspace")
        assert screen.cursor == 8
        assert screen.focused is view


async def test_following_a_hit_leads_to_the_turn_that_stored_it(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(7)
        await pilot.press("3")
        await pilot.press("down")
        await pilot.press("enter")
        assert screen.cursor in (2, 4, 6)
        assert "redis APPEND full_history · " in found(pilot)


async def test_the_biography_shows_every_stage_of_a_fact(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        screen = replay_of(pilot)
        screen.move_to(3)
        await pilot.press("f")
        await until(
            pilot, lambda: isinstance(pilot.app.screen, BiographyScreen) and "said" in text_of(pilot, "#life")
        )
        life = text_of(pilot, "#life")
        for step in ("said", "observed", "DROP 0.41 of 0.60", "a number in passing", "retrieved", "asked"):
            assert step in life
        await pilot.press("right")
        await until(pilot, lambda: "DROP" not in text_of(pilot, "#life"))
        await pilot.press("down", "down", "enter")
        assert pilot.app.screen is screen
        assert screen.cursor in (3, 4)


async def test_the_head_of_each_page_about_an_answer_stays_in_sight(recorded: Launch) -> None:
    async with open_replay(recorded, (80, 24)) as pilot:
        await pilot.press("r", "enter")
        await explained(pilot)
        for key, place in (("f", "BIOGRAPHY"), ("a", "DUEL")):
            await pilot.press(key)
            await pilot.pause()
            assert place in text_of(pilot, "#header")
            head = pilot.app.screen.query_one("#head" if key == "f" else "#asked", LinesView)
            assert "What is the user's full name?" in head.text and "Marta Vidal" in head.text
            await pilot.press("end", "G", "down", "down")
            assert head.region.y == 1 and head.region.height >= 2
            await pilot.press("escape")
            assert "WHY" in text_of(pilot, "#header"), "escape leads back to where one came from"


async def test_the_screens_about_an_answer_switch_to_each_other_and_escape_leads_back(recorded: Launch) -> None:
    async with open_replay(recorded) as pilot:
        await pilot.press("r", "right", "enter")
        await explained(pilot)
        why = pilot.app.screen
        depth = len(pilot.app.screen_stack)
        await pilot.press("f")
        for key, place in (("a", "DUEL"), ("f", "BIOGRAPHY"), ("a", "DUEL")):
            await pilot.press(key)
            await until(pilot, lambda place=place: f" {place} " in text_of(pilot, "#header"))  # type: ignore[misc]
            assert len(pilot.app.screen_stack) == depth + 1
            assert pilot.app.screen_stack[-2] is why
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is why)
        for key in ("f", "a"):
            await pilot.press(key)
            await until(pilot, lambda: pilot.app.screen is not why)
            await pilot.press("V")
            await until(pilot, lambda: pilot.app.screen is why)


async def test_a_biography_leaves_out_no_rank_while_rows_are_empty(launch: Launch) -> None:
    demo = REPOSITORY / "recordings" / "demo.sqlite3"
    async with open_app(replace(launch, recording=demo), (120, 60)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ConversationScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        replay_of(pilot).move_to(13)
        await pilot.press("f")
        await until(
            pilot, lambda: isinstance(pilot.app.screen, BiographyScreen) and "rank" in text_of(pilot, "#life")
        )
        assert "not listed" not in text_of(pilot, "#life")
        assert text_of(pilot, "#life").count("rank ") > 8
        await pilot.resize_terminal(120, 24)
        await until(pilot, lambda: "not listed" in text_of(pilot, "#life"))
