from __future__ import annotations

from datetime import datetime

import pytest

from memory_backends.hybrid.question import parse_question

LABELS = ("caroline", "melanie", "jean luc")


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("What is Caroline's favourite colour?", "What is my favourite colour?"),
        ("When did Caroline move?", "When did I move?"),
        ("Where did Jean-Luc go in Jean-Luc’s car?", "Where did I go in my car?"),
        ("What is the user's name?", "What is my name?"),
        ("¿Dónde vive la usuaria?", "¿Dónde vive I?"),
    ],
)
def test_the_topic_is_in_the_words_of_the_speaker_that_is_named(question, topic):
    asked = parse_question(question, (*LABELS, "user"))
    assert len(asked.speakers) == 1
    assert asked.topic == topic


def test_of_several_speakers_no_name_is_part_of_the_topic():
    asked = parse_question("What do Caroline and Melanie's kids share?", LABELS)
    assert asked.speakers == {"caroline", "melanie"}
    assert asked.topic == "What do and kids share?"


def test_a_label_of_two_words_counts_as_a_whole():
    assert parse_question("Where did Jean-Luc go?", LABELS).speakers == {"jean luc"}
    assert parse_question("Where did Jean go?", LABELS).speakers == frozenset()


def test_a_part_of_another_word_is_no_name():
    asked = parse_question("Did the users agree?", ("user",))
    assert asked.speakers == frozenset() and asked.topic == asked.text


def test_a_question_of_nothing_but_names_is_its_own_topic():
    assert parse_question("Caroline?", LABELS).topic == "Caroline?"


@pytest.mark.parametrize(
    ("question", "months", "years"),
    [
        ("What did she do in May 2023?", {5}, {2023}),
        ("Where was she on 3 July, 2022?", {7}, {2022}),
        ("¿Qué hizo en septiembre?", {9}, set()),
        ("May she bring a guest?", set(), set()),
        ("Who may march in the parade?", set(), set()),
        ("What happened on May 7?", {5}, set()),
    ],
)
def test_months_and_years_are_read_where_they_are_dates(question, months, years):
    asked = parse_question(question, LABELS)
    assert (asked.months, asked.years) == (months, years)


def test_a_date_is_meant_in_its_month_of_its_year():
    asked = parse_question("What did she do in May 2023?", LABELS)
    assert asked.means_date(datetime(2023, 5, 30))
    assert not asked.means_date(datetime(2022, 5, 30))
    assert not asked.means_date(datetime(2023, 6, 1))
    assert not asked.means_date(None)
