"""Dates in text, absolute and relative."""

from __future__ import annotations

from datetime import date

import pytest

from memreplay.llm.extractive.dates import Span, absolute_spans, likeness, spans_in, written_span

MONDAY = date(2023, 5, 8)


def day(year: int, month: int, number: int) -> Span:
    return Span(date(year, month, number), date(year, month, number))


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("7 May 2023", day(2023, 5, 7)),
        ("7 May, 2023", day(2023, 5, 7)),
        ("May 7, 2023", day(2023, 5, 7)),
        ("the 7th of May 2023", day(2023, 5, 7)),
        ("2023-05-07", day(2023, 5, 7)),
        ("7 de mayo de 2023", day(2023, 5, 7)),
        ("1:56 pm on 8 May, 2023", day(2023, 5, 8)),
        ("May 2023", Span(date(2023, 5, 1), date(2023, 5, 31))),
        ("June, 2023", Span(date(2023, 6, 1), date(2023, 6, 30))),
        ("2022", Span(date(2022, 1, 1), date(2022, 12, 31))),
        ("Since 2016", Span(date(2016, 1, 1), date(2016, 12, 31))),
        ("The week before 9 June 2023", Span(date(2023, 6, 2), date(2023, 6, 8))),
        ("The week after 9 June 2023", Span(date(2023, 6, 10), date(2023, 6, 16))),
        ("The Friday before 15 July 2023", day(2023, 7, 14)),
        ("The Sunday after 25 May 2023", day(2023, 5, 28)),
        ("two weekends before 17 July 2023", Span(date(2023, 7, 8), date(2023, 7, 9))),
    ],
)
def test_an_absolute_date_is_parsed(text: str, span: Span) -> None:
    assert written_span(text) == span


@pytest.mark.parametrize("text", ["", "Sweden", "may I come?", "31 February 2023", "3 dogs", "7 May"])
def test_other_text_is_not_a_date(text: str) -> None:
    assert written_span(text) is None


def test_a_missing_year_is_taken_from_the_day_it_was_said() -> None:
    assert absolute_spans("see you on 13 August", 2023) == [day(2023, 8, 13)]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("I went yesterday.", day(2023, 5, 7)),
        ("We leave tomorrow", day(2023, 5, 9)),
        ("last Saturday we ran", day(2023, 5, 6)),
        ("I joined last Tues.", day(2023, 5, 2)),
        ("next Friday", day(2023, 5, 12)),
        ("three days ago", day(2023, 5, 5)),
        ("last week", Span(date(2023, 5, 1), date(2023, 5, 7))),
        ("two weeks ago", Span(date(2023, 4, 24), date(2023, 4, 30))),
        ("last weekend", Span(date(2023, 5, 6), date(2023, 5, 7))),
        ("next month", Span(date(2023, 6, 1), date(2023, 6, 30))),
        ("last month", Span(date(2023, 4, 1), date(2023, 4, 30))),
        ("this month", Span(date(2023, 5, 1), date(2023, 5, 31))),
        ("last year", Span(date(2022, 1, 1), date(2022, 12, 31))),
        ("seven years now", Span(date(2016, 1, 1), date(2016, 12, 31))),
        ("ayer", day(2023, 5, 7)),
        ("la semana pasada", Span(date(2023, 5, 1), date(2023, 5, 7))),
        ("hace dos semanas", Span(date(2023, 4, 24), date(2023, 4, 30))),
        ("el mes que viene", Span(date(2023, 6, 1), date(2023, 6, 30))),
        ("el sábado pasado", day(2023, 5, 6)),
    ],
)
def test_a_relative_date_is_resolved_against_the_day_it_was_said(text: str, span: Span) -> None:
    assert spans_in(text, MONDAY) == [span]


@pytest.mark.parametrize(
    "text", ["we sat in the sun", "she is wed", "I may go", "about 900 years ago we were 9999 years old"]
)
def test_words_that_only_look_like_dates_are_ignored(text: str) -> None:
    assert all(span.start.year > 1000 for span in spans_in(text, MONDAY))
    assert not [span for span in spans_in(text, MONDAY) if span.days == 1]


def test_without_a_day_no_relative_date_is_resolved() -> None:
    assert spans_in("I went yesterday, on 3 June 2020.", None) == [day(2020, 6, 3)]


def test_a_count_beyond_the_calendar_is_ignored() -> None:
    assert spans_in("999 years ago and 999 months ago", date(900, 1, 1)) in (
        [],
        [Span(date(816, 10, 1), date(816, 10, 31))],
    )


def test_likeness_is_one_for_the_same_days_and_zero_for_disjoint_ones() -> None:
    may = Span(date(2023, 5, 1), date(2023, 5, 31))
    assert likeness(may, may) == 1.0
    assert likeness(may, day(2023, 6, 1)) == 0.0
    assert 0 < likeness(may, day(2023, 5, 7)) < 0.1
