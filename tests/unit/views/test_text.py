"""Text from outside, as rows of cells."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from memreplay.views.text import (
    Line,
    Span,
    beside,
    clip,
    line,
    one_line,
    pad,
    paragraphs,
    visible,
    width_of,
    wrap,
    wrapped,
)
from tests.tables import failing

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)
WORDS = st.text(st.sampled_from("ab ñ日👩\u200d💻.\u0301 -"), max_size=120).map(visible)


def test_what_would_act_on_a_terminal_is_shown_instead() -> None:
    def check(text: str, shown: str) -> None:
        assert visible(text) == shown

    assert (
        failing(
            [
                ("\x1b[31mred\x1b[0m", "\\u001b[31mred\\u001b[0m"),
                ("a\tb", "a    b"),
                ("a\r\nb", "a\nb"),
                ("bell\x07 del\x7f csi\x9b", "bell\\u0007 del\\u007f csi\\u009b"),
                ("\u202eevil\u202c", "\\u202eevil\\u202c"),
                ("lone \ud800 half", "lone \\ud800 half"),
                ("1\u202f000\xa0€", "1\u202f000\xa0€"),
                ("a tag\U000e0041", "a tag\\udb40\\udc41"),
                ("[bold]as it is[/] {0} %s", "[bold]as it is[/] {0} %s"),
                ("👩\u200d💻 stays whole", "👩\u200d💻 stays whole"),
                ("a joiner\u200d of nothing", "a joiner\\u200d of nothing"),
            ],
            check,
        )
        == []
    )


@given(ANY_TEXT)
def test_no_text_keeps_a_control_character_and_all_can_be_written(text: str) -> None:
    shown = one_line(text)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown)
    shown.encode("utf-8")


@given(WORDS, st.integers(4, 40), st.integers(0, 6))
def test_wrapped_rows_fit_the_width_and_lose_nothing_but_white_space(text: str, width: int, hang: int) -> None:
    rows = wrap(Line((Span(text),), hang=hang), width)
    assert all(width_of(row.spans) <= width for row in rows)
    assert "".join("".join(row.text.split()) for row in rows) == "".join(text.split())


@given(WORDS, st.integers(4, 30), st.integers(1, 3))
def test_a_line_takes_at_most_the_rows_it_is_given(text: str, width: int, most: int) -> None:
    rows = wrap(Line((Span(text),), most=most), width)
    assert len(rows) <= most
    assert all(width_of(row.spans) <= width for row in rows)


def test_words_are_not_broken_where_they_fit_on_a_row_of_their_own() -> None:
    rows = wrap(line("the quick brown fox", hang=2), 8)
    assert [row.text.rstrip() for row in rows] == ["the", "  quick", "  brown", "  fox"]


def test_a_word_wider_than_the_row_is_broken_between_cells_and_not_within_one() -> None:
    rows = wrap(line("日本語テキスト"), 5)
    assert [row.text for row in rows] == ["日本", "語テ", "キス", "ト"]


def test_tones_survive_wrapping() -> None:
    rows = wrap(line(Span("alpha beta ", "good"), Span("gamma", "bad")), 11)
    assert rows[1].spans == (Span("gamma", "bad"),)
    assert rows[0].spans[0].tone == "good"


@given(WORDS, st.integers(1, 20))
def test_padded_text_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    assert cell_len(pad(text, width)) == width
    assert cell_len(clip(text, width)) <= width


def test_a_text_of_several_lines_becomes_as_many() -> None:
    assert [row.text for row in wrapped(paragraphs("one\n\ntwo", indent=2), 20)] == ["  one", "  ", "  two"]


def test_columns_stand_beside_each_other() -> None:
    rows = beside([[line("left")], [line("right one")]], [6, 5])
    assert [row.text.rstrip() for row in rows] == ["left    right", "        one"]
