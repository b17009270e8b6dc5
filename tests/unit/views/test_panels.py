"""What panels make of a timeline, without a screen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memreplay.debugger.biography import biographies
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.engine.events import ConversationOpened
from memreplay.timeline.fold import MISSING
from memreplay.timeline.timeline import Timeline
from memreplay.views.document import Layout, LinesDocument
from memreplay.views.panels.architectures import panels_of
from memreplay.views.panels.biography import biography_lines
from memreplay.views.panels.browser import few_turns
from memreplay.views.panels.conversation import ConversationDocument
from memreplay.views.panels.stores import state_lines
from memreplay.views.text import Row, line, visible
from tests.tables import failing
from tests.tui.builder import BACKENDS, HOSTILE, conversation, events, timeline

WIDTH = 60
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def rows_of(document: Any, width: int = WIDTH) -> list[Row]:
    return [row for block in range(len(document)) for row in document.rows(block, width)]


def text_of(document: Any, width: int = WIDTH) -> str:
    return "\n".join(row.text.rstrip() for row in rows_of(document, width))


def signs_of(before: Any, after: Any) -> list[str]:
    return ["".join(span.text for span in each.spans) for each in state_lines(before, after).lines]


def panel_text(known: Timeline, backend: str, name: str, cursor: int) -> str:
    panel = next(panel for panel in panels_of(known, backend) if panel.name == name)
    view = panel.at(cursor)
    view = view.unfolded(view.folds)
    return f"{view.title}\n{text_of(view.document)}\n{view.note}"


def test_a_biography_quotes_the_whole_turn() -> None:
    known = conversation()
    text = "\n".join(f"Line {number} of a long message." for number in range(1, 10))
    turns = (known.turns[0].model_copy(update={"text": text}), *known.turns[1:])
    long = Timeline(known.model_copy(update={"turns": turns}), events(known))
    told = biographies(long, RetrievalIndex(long), "hybrid", long.conversation.questions[0])
    shown = text_of(LinesDocument(biography_lines(long.conversation, told, None)))
    assert "Line 9 of a long message." in shown


@pytest.mark.parametrize("height", [5, 20, 25, 33, 60])
def test_a_biography_lists_as_many_ranks_as_there_is_room_for(height: int) -> None:
    known = timeline()
    (told,) = biographies(known, RetrievalIndex(known), "hybrid", known.conversation.questions[0])
    seen = told.retrievals.model_copy(update={"ranks": tuple((turn, 1, False) for turn in range(100, 130))})
    lives = [told.model_copy(update={"retrievals": seen})]
    lines = biography_lines(known.conversation, lives, None, room=(WIDTH, height))
    rows = rows_of(LinesDocument(lines))
    listed = [number for number in range(100, 130) if any(row.text.startswith(f"  {number} ") for row in rows)]
    left_out = 30 - len(listed)
    assert listed == list(range(130 - len(listed), 130)) and len(listed) >= 8
    assert len(rows) <= height or len(listed) == 8
    assert not left_out or len(rows) >= height, "no row is empty while ranks are left out"
    assert (f"{left_out} earlier ranks not listed" in text_of(LinesDocument(lines))) is (left_out > 0)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["1"], "1"),
        (["1", "2"], "1, 2"),
        (["D5:1", "D5:2"], "91 (D5:1)…92"),
        (["D5:1", "D5:2", "D5:3"], "91 (D5:1)…93"),
        (["elsewhere"], "elsewhere"),
    ],
)
def test_source_turns_fit_their_column(ids: list[str], words: str) -> None:
    plain = conversation().turns[0]
    turns = [plain, plain.model_copy(update={"id": "2", "number": 2})]
    turns += [plain.model_copy(update={"id": f"D5:{number}", "number": 90 + number}) for number in (1, 2, 3)]
    assert few_turns(conversation().model_copy(update={"turns": tuple(turns)}), ids) == words


# ---- states ----------------------------------------------------------------------------------------------------


def test_a_state_shows_what_was_added_removed_and_changed() -> None:
    shown = signs_of({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": {"x": []}})
    assert shown == ["  {", '    "a": 1,', '~   "b": 5,   was 2', '+   "d": {"x": []}', '−   "c": 3', "  }"]


def test_a_list_shows_which_items_came_and_went() -> None:
    assert signs_of(["one", "two"], ["two", "three"]) == ["  [", '−   "one"', '    "two",', '+   "three"', "  ]"]


def test_a_state_that_appears_is_added_and_one_that_goes_is_removed() -> None:
    assert signs_of(MISSING, {"a": 1}) == ['+ {"a": 1}']
    assert signs_of({"a": 1}, MISSING) == ['− {"a": 1}']
    assert signs_of(MISSING, MISSING) == []


@given(JSON)
def test_an_unchanged_state_has_no_sign(value: Any) -> None:
    state = state_lines(value, value)
    assert state.first_change is None
    assert all(each.spans[0].text == "  " for each in state.lines)


@given(JSON, JSON)
def test_a_changed_state_has_a_sign_where_it_says(before: Any, after: Any) -> None:
    state = state_lines(before, after)
    signed = [index for index, each in enumerate(state.lines) if each.spans[0].text != "  "]
    assert state.first_change == (signed[0] if signed else None)


# ---- panels ----------------------------------------------------------------------------------------------------


def test_the_hybrid_panels_show_the_states_of_the_position() -> None:
    known = timeline()
    assert "not written yet" in panel_text(known, "hybrid", "shared state", 1)
    early, late = panel_text(known, "hybrid", "shared state", 2), panel_text(known, "hybrid", "shared state", 6)
    assert "user.city" not in early
    assert '+     "user.city": {"value": "Girona", "turn": "5"}' in late
    assert '~   "status": "resolved",   was "active"' in panel_text(known, "hybrid", "shared state", 9)
    assert '"query"' not in panel_text(known, "hybrid", "personal state", 1)
    assert "planner_agent/run-1/tiny-01/hybrid" in panel_text(known, "hybrid", "personal state", 1)


def test_promotions_show_score_decision_and_why_at_their_turn_alone() -> None:
    known = timeline()
    dropped = panel_text(known, "hybrid", "promotions", 4)
    assert "− DROP   0.41 of 0.60  database.port" in dropped
    assert "a number in passing" in dropped
    assert "ADD 1 · DROP 1" in dropped
    assert "no candidate was judged" in panel_text(known, "hybrid", "promotions", 5)


def test_retrievals_show_rank_score_channels_source_turns_and_what_was_cut() -> None:
    shown = panel_text(timeline(), "hybrid", "retrievals", 7)
    assert "retrievals · for turn 7" in shown
    assert " 1 0.830  turn 5, 6 ◇  hybrid_verbatim  dense 1 · keyword 2" in shown
    assert " 3 0.690  turn 1, 2 ◇ × cut" in shown
    assert "User: Correction: operations moved us to Girona" in shown


def test_retrievals_of_a_user_turn_stay_until_the_next() -> None:
    known = timeline()
    now, later = (panel_text(known, "rag", "retrievals", turn).splitlines() for turn in (5, 6))
    assert later == [now[0], "turn 6 searches nothing", *now[1:]]


def test_rag_shows_what_was_written_at_the_turn() -> None:
    known = timeline()
    shown = panel_text(known, "rag", "written", 4)
    assert "+ goodai_ltm_full_history  point-4" in shown
    assert "content: User: A billing service." in shown
    assert "2 points stored · in goodai_ltm_full_history" in shown
    assert "nothing was written" in panel_text(known, "rag", "written", 5)


def test_the_context_log_marks_what_was_cut_and_keeps_its_newest_end_in_view() -> None:
    known = timeline()
    panel = next(panel for panel in panels_of(known, "full_context") if panel.name == "context log")
    view = panel.at(7)
    shown = text_of(view.document)
    assert "× User: Hello. I am Marta Vidal" in shown
    assert "× AI: Welcome aboard" in shown
    assert "  User: A billing service" in shown
    assert "Please do" not in shown
    assert view.in_view == 2
    assert "× cut up to turn 2 · 90 tokens in the prompt" in view.note
    assert "×" not in text_of(panel.at(6).document)


def test_the_context_log_is_the_log_of_the_store_at_every_position() -> None:
    known = timeline()
    panel = next(panel for panel in panels_of(known, "full_context") if panel.name == "context log")
    for cursor in (8, 2, 6, 4, 9, 3):
        stored = known.snapshot_at("full_context", cursor).values["redis"][
            "full_history:run-1/tiny-01/full_context"
        ]
        rows = rows_of(panel.at(cursor).document, 1000)
        assert [row.text[2:] for row in rows] == list(_shown(stored))


def _shown(stored: str) -> list[str]:
    return visible(stored.removesuffix("\n")).split("\n")


@pytest.mark.parametrize("name", ["my.memory:Fancy", "closed_book"])
def test_an_undescribed_memory_gets_panels_for_everything_it_stores(name: str) -> None:
    known = Timeline(
        conversation(),
        (event.model_copy(update={"backend": name}) for event in _events_of_backends()),
    )
    shown = panel_text(known, name, "stores", 2)
    assert "personal_state:planner_agent" in shown
    assert "+ goodai_ltm_full_history" in shown
    assert "User: Hello. I am Marta Vidal" in shown


def _events_of_backends() -> list[Any]:
    """What happens to the backends, none of which says anything of itself."""
    kept = [event for event in events(conversation()) if getattr(event, "backend", None) in BACKENDS]
    return [event for event in kept if not isinstance(event, ConversationOpened)]


def test_a_memory_that_stores_nothing_says_so() -> None:
    known = Timeline(conversation())
    for panel in panels_of(known, "closed_book"):
        assert text_of(panel.at(3).document)


def test_every_panel_is_a_function_of_the_position_alone() -> None:
    def check(backend: str) -> None:
        known = timeline()
        forward = {
            (panel.name, cursor): text_of(panel.at(cursor).document)
            for panel in panels_of(known, backend)
            for cursor in range(10)
        }
        for panel in panels_of(known, backend):
            for cursor in (9, 0, 5, 3, 8, 1, 7, 2, 6, 4):
                assert text_of(panel.at(cursor).document) == forward[panel.name, cursor]

    assert failing(BACKENDS, check) == []


# ---- the conversation, and layout ------------------------------------------------------------------------------


def test_the_conversation_marks_the_cursor_evidence_sessions_and_what_is_to_come() -> None:
    document = ConversationDocument(Timeline(conversation()))
    document.cursor = 5
    shown = text_of(document)
    assert "── session 2 · 11 Mar 2024 18:05" in shown, "on a narrow screen the number is seen first"
    assert "Marta moves to Girona." in shown
    assert "▶ 5 User  ◇ 3" in shown
    assert shown.count("▶") == 1
    assert {span.tone for span in document.rows(7, WIDTH)[1].spans} == {"dim"}
    assert "dim" not in {span.tone for span in document.rows(3, WIDTH)[1].spans}
    assert [row.fill for row in document.rows(4, WIDTH)] == [None, None, "current", "current", "current"]


def test_hostile_text_is_shown_literally_in_the_conversation() -> None:
    shown = text_of(ConversationDocument(Timeline(conversation())), 200)
    assert "[bold red]not red[/] \\u001b[31mnor this\\u001b[0m \\u202eesrever\\u202c 日本" in shown
    assert "{0.__class__} %s    end" in shown
    assert "\x1b" in HOSTILE


def test_blocks_are_as_high_as_they_say_whatever_the_cursor() -> None:
    document = ConversationDocument(Timeline(conversation()))
    for width in (20, 37, 80):
        for cursor in range(9):
            document.cursor = cursor
            assert [document.height(index, width) for index in range(8)] == [
                len(document.rows(index, width)) for index in range(8)
            ]


@given(st.lists(st.text(st.sampled_from("ab "), max_size=30), max_size=12), st.integers(4, 12))
def test_a_layout_finds_each_row_where_its_block_put_it(texts: list[str], width: int) -> None:
    document = LinesDocument([line(text) for text in texts])
    layout = Layout(document, width)
    rows = rows_of(document, width)
    assert layout.total == len(rows)
    for number in range(len(rows)):
        assert layout.rows_from(number, 3) == [*rows, None, None][number : number + 3]
        block = layout.block_at(number)
        assert block is not None
        assert layout.start(block) <= number < layout.start(block + 1)


def test_a_layout_that_guesses_is_exact_where_it_was_measured() -> None:
    class Guessed(LinesDocument):
        def guess(self, index: int, width: int) -> int:
            return 3

    lines = [line(" ".join(["word"] * (1 + number % 7))) for number in range(3000)]
    guessed, exact = Layout(Guessed(lines), 12), Layout(LinesDocument(lines), 12)
    guessed.measure(2500, before=50, after=50)
    assert guessed.total != exact.total
    shift = guessed.start(2500) - exact.start(2500)
    for number in range(-50, 50):
        row = exact.start(2500) + number
        assert guessed.rows_from(row + shift, 1) == exact.rows_from(row, 1)
    guessed.measure(0, before=0, after=100_000)
    assert [guessed.start(block) for block in range(3001)] == [exact.start(block) for block in range(3001)]
