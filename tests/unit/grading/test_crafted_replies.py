"""The grader agrees with a careful human on replies written by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from memreplay.grading.judge import score_recall
from tests.unit.grading.crafted_replies import ACCEPTED, FRESH, HELD_OUT, REJECTED, Case
from tests.unit.scoring.samples import recall


@pytest.mark.parametrize(
    ("cases", "least"),
    [(ACCEPTED, 120), (REJECTED, 119), (HELD_OUT, 60), (FRESH, 123)],
    ids=["accepted", "rejected", "held out", "passed over"],
)
def test_the_grader_agrees_with_a_careful_human(cases: Sequence[Case], least: int) -> None:
    differing = []
    for expected, question, reply, is_right in cases:
        score = score_recall(recall(text=question, expected=expected, expected_entities=()), reply)
        if (score.outcome == "correct") != is_right:
            differing.append(f"{expected} | {question} | {reply}: {score.outcome} by {score.decided_by}")
    assert len(cases) - len(differing) >= least, "\n".join(differing)


def test_the_entities_of_an_answer_decide_where_its_words_differ() -> None:
    question = recall(text="Who came?", expected="Both Ida and little Bo", expected_entities=("Ida", "Bo"))
    assert score_recall(question, "Bo came first, and Ida an hour later.").decided_by == "entities"
    assert score_recall(question, "Ida, Bo").outcome == "correct"
    assert score_recall(question, "Ida came, but not Bo.").decided_by == "denied"
    assert score_recall(question, "Ida, Bo, Cy, Di, Ed").decided_by == "candidates"


def test_a_reply_that_also_asserts_an_earlier_value_is_wrong() -> None:
    question = recall(text="Where is it?", expected="Girona", expected_entities=(), supersedes=("Lleida",))
    assert score_recall(question, "In Girona and in Lleida").decided_by == "candidates"
    assert score_recall(question, "In Girona, not in Lleida").outcome == "correct"


OF_ANOTHER = [
    ("What did Ada eat?", "sushi", "Ada had pizza; sushi was what Ben had eaten.", "Ada ate sushi, as Ben had."),
    ("Where does Bo live?", "Oslo", "Oslo... or maybe Bergen.", "He can't put Oslo behind him."),
    ("Did Sara pass?", "Yes", "Unfortunately, Sara did not pass.", "Yes, and she couldn't wait to tell me."),
    ("Which bread?", "spelt", "She prefers rye over spelt.", "She prefers spelt over rye."),
    ("¿Qué prefiere?", "el autobús", "Prefiere el tren al autobús.", "Prefiere el autobús al tren."),
    ("What mark did he get?", "B+", "He got a B.", "He got a B+ in physics."),
    ("What is her blood group?", "O-", "It is O+.", "It is O-."),
    ("When is it?", "12 May 2024", "On 12 May, after that of 2023.", "In 2024: 10 + 2 = 12 → on May 12."),
]


def test_a_value_in_a_reason_or_of_another_is_no_answer() -> None:
    for text, expected, wrong, right in OF_ANOTHER:
        question = recall(text=text, expected=expected, expected_entities=())
        assert [score_recall(question, reply).outcome for reply in (wrong, right)] == ["wrong", "correct"], text


LONG = """Girona |Girona, |not Girona |maybe Girona |it was Girona, now |from |two and |1,111|1.| |(|a/|"|thousand
half past |january |7 of |é|options """.replace("\n", "|").split("|")


@pytest.mark.parametrize("piece", [*LONG, "\n"])
def test_a_reply_of_100_kb_is_graded_in_under_a_second(piece: str) -> None:
    question = recall(text="Where?", expected="tea and Girona", expected_entities=("Girona",))
    reply = piece * (100_000 // len(piece)) + " Girona"
    started = time.process_time()
    score_recall(question, reply)
    assert time.process_time() - started < 1
