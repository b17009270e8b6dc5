"""Which texts hold a time that is asked for: in any form that answers the question, and at no other date."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from memreplay.conversations.models import Question, Turn
from memreplay.conversations.registry import load
from memreplay.engine.events import QuestionAsked
from memreplay.grading.judge import score_recall
from memreplay.grading.read import content_of, tokens_of
from memreplay.grading.times import times_in
from memreplay.grading.vocabulary import FORMS_A_QUESTION
from memreplay.scoring.evidence_trail import Stages, trail_of
from memreplay.scoring.holding import Answerable, Piece
from tests.unit.scoring.planted import question
from tests.unit.scoring.test_holding import OF
from tests.unit.scoring.test_holding import stored as stored_of_turn_one

SAID_ON = date(2023, 5, 10)
"""A Wednesday."""


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("Yesterday I went", date(2023, 5, 9)),
        ("the day before yesterday", date(2023, 5, 8)),
        ("last week", date(2023, 5, 3)),
        ("next month", date(2023, 6, 15)),
        ("a year ago", date(2022, 7, 1)),
        ("on Friday", date(2023, 5, 5)),
        ("next Friday", date(2023, 5, 12)),
        ("three days ago", date(2023, 5, 7)),
        ("in two weeks", date(2023, 5, 24)),
        ("last weekend", date(2023, 5, 6)),
        ("ayer fui", date(2023, 5, 9)),
        ("anteayer", date(2023, 5, 8)),
        ("mañana por la mañana", date(2023, 5, 11)),
        ("la semana pasada", date(2023, 5, 3)),
        ("el mes que viene", date(2023, 6, 15)),
        ("hace un año", date(2022, 7, 1)),
        ("hace dos semanas", date(2023, 4, 26)),
        ("el viernes pasado", date(2023, 5, 5)),
        ("dentro de tres días", date(2023, 5, 13)),
    ],
)
def test_relative_words_count_from_the_day_on_which_they_were_said(words: str, day: date) -> None:
    (time,) = times_in(words, SAID_ON)
    assert time.first <= day <= time.last
    assert times_in(words) == ()


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("on Friday, July 14, 2023", date(2023, 7, 14), date(2023, 7, 14)),
        ("last Friday (14 July 2023)", date(2023, 7, 14), date(2023, 7, 14)),
        ("el viernes, 14 de julio de 2023", date(2023, 7, 14), date(2023, 7, 14)),
        ("over July 15-16, 2023", date(2023, 7, 15), date(2023, 7, 16)),
        ("between 15 and 16 July 2023", date(2023, 7, 15), date(2023, 7, 16)),
        ("from 3 to 9 May, 2022", date(2022, 5, 3), date(2022, 5, 9)),
        ("del 15 al 16 de julio de 2023", date(2023, 7, 15), date(2023, 7, 16)),
        ("the first weekend of August 2023", date(2023, 8, 5), date(2023, 8, 6)),
        ("the first Tuesday of August 2023", date(2023, 8, 1), date(2023, 8, 1)),
        ("the second week of May 2024", date(2024, 5, 8), date(2024, 5, 14)),
        ("last Friday of June 2024", date(2024, 6, 28), date(2024, 6, 28)),
        ("the last week in June 2024", date(2024, 6, 24), date(2024, 6, 30)),
        ("el primer fin de semana de agosto de 2023", date(2023, 8, 5), date(2023, 8, 6)),
        ("la tercera semana de mayo de 2024", date(2024, 5, 15), date(2024, 5, 21)),
        ("el último viernes de junio de 2024", date(2024, 6, 28), date(2024, 6, 28)),
    ],
)
def test_a_day_with_its_date_days_in_a_row_and_parts_of_a_month_are_one_time(
    words: str, first: date, last: date
) -> None:
    (time,) = times_in(words)
    assert (time.first, time.last) == (first, last)


def test_a_day_beside_a_date_of_another_weekday_counts_from_it() -> None:
    assert {time.first for time in times_in("on Friday, 12 July 2023")} == {date(2023, 7, 12), date(2023, 7, 7)}


@pytest.mark.parametrize(
    ("expected", "reply", "right"),
    [
        ("The Friday before 15 July 2023", "She went on Friday, July 14, 2023.", True),
        ("The Friday before 15 July 2023", "Last Friday, 14 July 2023.", True),
        ("The Friday before 15 July 2023", "Last Friday, 7 July 2023.", False),
        ("The Friday before 15 July 2023", "On Friday, July 21, 2023.", False),
        ("The Friday before 15 July 2023", "On Friday, July 14, 2022.", False),
        ("The weekend before 20 October 2023", "October 14-15, 2023.", True),
        ("The weekend before 20 October 2023", "October 21-22, 2023.", False),
        ("The weekend before 20 October 2023", "October 14-15, 2022.", False),
        ("The weekend before 20 October 2023", "October 1-31, 2023.", False),
        ("5 July 2023", "July 5-9, 2023", False),
        ("The Tuesday before 20 July 2023", "On July 11, 2023.", False),
    ],
)
def test_a_reply_with_a_day_or_days_in_a_row_is_compared_by_them(expected: str, reply: str, right: bool) -> None:
    asked = Question(id="q", kind="recall", type="t", text="When did she go?", expected=expected)
    assert (score_recall(asked, reply).outcome == "correct") is right


OPEN_DAY = "When did I go to the open day?"


@pytest.mark.parametrize(
    ("expected", "stored", "holds"),
    [
        ("7 May 2023", "Went to the open day on 2023-05-07", True),
        ("7 May 2023", "The open day was on May 7th, 2023.", True),
        ("7 May 2023", "8 May 2023: went to the open day yesterday", True),
        ("7 May 2023", "El 8 de mayo de 2023 dijo: ayer fui al open day", True),
        ("7 May 2023", "Went to the open day yesterday", False),
        ("7 May 2023", "Went to the open day", False),
        ("7 May 2023", "Went to the open day in May 2023", False),
        ("7 May 2023", "Went to the open day in early November 2025", False),
        ("7 May 2023", "Went to the open day on 7 May 2024", False),
        ("May 2023", "Went to the open day on 7 May 2023", True),
        ("The week before 9 June 2023", "Went to the open day on 2 June 2023", True),
        ("The week before 9 June 2023", "9 June 2023: went to the open day last week", True),
        ("The week before 9 June 2023", "Went to the open day on 9 July 2023", False),
        ("The Friday before 22 October 2023", "Went to the open day on 20 October 2023", True),
        ("2022", "8 May 2023: the open day was last year", True),
    ],
)
def test_a_text_holds_a_time_where_it_says_it(expected: str, stored: str, holds: bool) -> None:
    assert answerable(expected).held_by([Piece(stored, frozenset(["1"]))]) is holds


def test_entities_hold_no_answer_where_the_text_says_another_year_or_half_of_the_day() -> None:
    asked = question(
        "What happens on the release day?",
        expected="a party on 18 February 2026",
        expected_entities=("party", "18 February"),
    )
    held = Answerable(asked.model_copy(update={"evidence": ("1",)}), TURNS)
    assert held.held_by([Piece("The party is on 18 February.", frozenset(["1"]))])
    assert not held.held_by([Piece("The party is on 18 February 2025.", frozenset(["1"]))])


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        ("Went to the open day in early November 2025", "says another date (early November 2025)."),
        ("Went to the open day", "leaves when out."),
        ("Went to the open day last month", "says another time, or says it less precisely."),
        ("Went to the open day (said on 8 May 2023)", "leaves when out."),
        ("Went to the open day on 8 May 2023", "says another date (8 May 2023)."),
    ],
)
def test_a_verdict_says_which_date_was_stored_in_place_of_the_true_one(stored: str, sentence: str) -> None:
    memory = stored_of_turn_one({"text": stored, "sources": ["1"]})
    asked = QuestionAsked(
        **OF, model="m", question_id="q", hits=(), cut=(), context_tokens=2, prompt=(), recall_ms=1.0
    )
    trail = trail_of("1", answerable("7 May 2023"), Stages(asked, memory, TURNS))
    assert (trail.lost_at, trail.loss) == ("not_written", "distilled_away")
    assert trail.sentence == f"What was stored of turn 1 {sentence}"


@pytest.mark.shared_data
def test_no_published_answer_is_held_by_a_text_on_its_topic_with_another_date(shared_data: Path) -> None:
    held: dict[str, list[str]] = {"another date": [], "no date": [], "the answer": []}
    asked = 0
    for conversation in load([str(shared_data / "locomo" / "locomo10_dev.json")]):
        for one in conversation.questions:
            if one.evidence_role != "supports" or not one.type.startswith("temporal") or not one.evidence:
                continue
            asked += 1
            topic = topic_of(one)
            for what, stored in (
                ("another date", f"{topic} in January 1999"),
                ("no date", topic),
                ("the answer", f"{topic}: {one.expected}"),
            ):
                piece = Piece(stored, frozenset(one.evidence))
                if Answerable(one, conversation.turns_by_id, conversation.days_by_session).held_by([piece]):
                    held[what].append(one.id)
    assert asked > 100
    assert held["another date"] == []
    assert len(held["no date"]) <= 1
    assert len(held["the answer"]) >= asked - 1


TURNS = {
    "1": Turn(id="1", number=1, session=1, role="user", speaker=None, text="Yesterday I went to the open day.")
}


def answerable(expected: str) -> Answerable:
    return Answerable(question(OPEN_DAY, expected=expected, evidence=("1",)), TURNS, {1: date(2023, 5, 8)})


def topic_of(asked: Question) -> str:
    words = (token for _, token in content_of(tokens_of(asked.text)))
    return " ".join(word.text for word in words if word.kind == "word" and word.text not in FORMS_A_QUESTION)


@pytest.mark.parametrize(
    ("expected", "text", "outcome"),
    [
        ("The friday before 15 July 2023", "July 14, 2023 (last Friday)", "correct"),
        ("The friday before 15 July 2023", "July 7, 2023 (last Friday)", "wrong"),
        ("The week of 23 August 2023", "In late August 2023", "correct"),
        ("The first weekend of August 2023", "On 6 August 2023", "correct"),
        ("The first weekend of August 2023", "On 20 August 2023", "wrong"),
        ("The week of 23 August 2023", "In early August 2023", "wrong"),
        ("The summer of 2022", "It was in the winter of 2022.", "wrong"),
        ("The summer of 2022", "In July 2022", "correct"),
        ("8 pm", "At 8.", "correct"),
        ("8 pm", "At 8 in the morning.", "wrong"),
        ("8:30 pm", "08:30", "wrong"),
    ],
)
def test_a_part_of_a_time_is_read_as_far_as_it_says(expected: str, text: str, outcome: str) -> None:
    assert score_recall(question("When did she go?", expected=expected), text).outcome == outcome
