"""Loading LongMemEval files."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.errors import DatasetError
from tests.unit.conversations.samples import longmemeval_entry, written, written_lines
from tests.unit.conversations.spoiling import Spoil, with_value, without


def loaded(path: Path, warnings: list[str] | None = None) -> list[Conversation]:
    heard = [] if warnings is None else warnings
    return list(load([str(path)], on_warning=heard.append))


@pytest.mark.parametrize("write", [written, written_lines], ids=["array", "lines"])
def test_an_entry_is_a_conversation_with_its_question(tmp_path: Path, write: Callable[[Path, Any], Path]) -> None:
    (conversation,) = loaded(write(tmp_path / "oracle.data.json", [longmemeval_entry()]))
    assert (conversation.id, conversation.dataset) == ("7a_1", "oracle.data")
    assert [(turn.id, turn.session, turn.role, turn.text) for turn in conversation.turns] == [
        ("1", 1, "user", "Rain again."),
        ("2", 1, "assistant", "Take a coat."),
        ("3", 2, "user", "I hung the hammock on the fire escape."),
        ("4", 2, "assistant", "Mind the neighbours."),
    ]
    assert [(session.id, session.date) for session in conversation.sessions] == [
        ("s_9", datetime(2023, 5, 20, 2, 21)),
        ("answer_1", datetime(2023, 5, 22, 18, 5)),
    ]
    (question,) = conversation.questions
    assert (question.id, question.kind, question.type) == ("7a_1", "recall", "multi-session")
    assert (question.expected, question.abstain) == ("on the fire escape", False)
    assert (question.evidence, question.evidence_role) == (("3",), "supports")


def test_when_a_question_is_asked_is_part_of_it(tmp_path: Path) -> None:
    undated = longmemeval_entry(question_id="7a_2", question_date=None)
    (conversation,) = loaded(written(tmp_path / "l.json", [longmemeval_entry(), undated]))
    assert [question.text for question in conversation.questions] == [
        "Where did I hang the hammock? (asked on 2023-06-01 09:30)",
        "Where did I hang the hammock?",
    ]


def test_sessions_come_in_the_order_of_their_dates(tmp_path: Path) -> None:
    entry = longmemeval_entry(haystack_dates=["2023/05/23 (Tue) 02:21", "2023/05/22 (Mon) 18:05"])
    (conversation,) = loaded(written(tmp_path / "l.json", [entry]))
    assert [session.id for session in conversation.sessions] == ["answer_1", "s_9"]
    assert conversation.turns[0].text == "I hung the hammock on the fire escape."
    assert conversation.questions[0].evidence == ("1",)


def test_sessions_without_a_date_stay_in_the_published_order(tmp_path: Path) -> None:
    entry = longmemeval_entry(haystack_dates=["2023/05/23 (Tue) 02:21", None])
    (conversation,) = loaded(written(tmp_path / "l.json", [entry]))
    assert [session.id for session in conversation.sessions] == ["s_9", "answer_1"]
    assert conversation.date_of(conversation.turns[3]) is None


def test_without_marked_turns_the_answer_sessions_are_evidence(tmp_path: Path) -> None:
    entry = longmemeval_entry()
    del entry["haystack_sessions"][1][0]["has_answer"]
    (conversation,) = loaded(written(tmp_path / "l.json", [entry]))
    assert conversation.questions[0].evidence == ("3", "4")


def test_a_question_to_abstain_from_is_known_by_its_id(tmp_path: Path) -> None:
    (conversation,) = loaded(written(tmp_path / "l.json", [longmemeval_entry(question_id="7a_1_abs")]))
    question = conversation.questions[0]
    assert (question.abstain, question.evidence_role) == (True, "tempting")


def test_questions_over_one_haystack_share_a_conversation_though_other_turns_answer_them(tmp_path: Path) -> None:
    other = longmemeval_entry(question_id="8b", question="What does the assistant fear?", answer=3)
    del other["haystack_sessions"][1][0]["has_answer"]
    other["haystack_sessions"][1][1]["has_answer"] = True
    alone = longmemeval_entry(question_id="9c")
    alone["haystack_sessions"][0][0]["content"] = "Sun again."
    first, second = loaded(written(tmp_path / "l.json", [longmemeval_entry(), alone, other]))
    assert [(question.id, question.evidence) for question in first.questions] == [("7a_1", ("3",)), ("8b", ("4",))]
    assert first.questions[1].expected == "3"
    assert (second.id, second.turns[0].text) == ("9c", "Sun again.")


def test_an_answer_session_that_is_not_there_is_reported(tmp_path: Path) -> None:
    warnings: list[str] = []
    entry = longmemeval_entry(answer_session_ids=["answer_1", "answer_2"])
    (conversation,) = loaded(written(tmp_path / "l.json", [entry]), warnings)
    assert conversation.questions[0].evidence == ("3",)
    assert len(warnings) == 1 and "/0/answer_session_ids/1" in warnings[0] and "answer_2" in warnings[0]


ERRORS = [
    (without("question_id"), "/0/question_id", "is missing"),
    (without("question"), "/0/question", "is missing"),
    (without("answer"), "/0/answer", "is missing"),
    (with_value("multi", "question_type"), "/0/question_type", 'is "multi"'),
    (with_value("June", "question_date"), "/0/question_date", 'is "June"'),
    (with_value(["x"], "haystack_session_ids"), "/0/haystack_session_ids", "has 1 entry"),
    (with_value("May", "haystack_dates", 1), "/0/haystack_dates/1", 'is "May"'),
    (with_value([[], []], "haystack_sessions"), "/0/haystack_sessions", "has no turns"),
    (with_value("yes", "haystack_sessions", 1, 0, "has_answer"), "/0/haystack_sessions/1/0/has_answer", 'is "yes"'),
    (with_value("human", "haystack_sessions", 1, 0, "role"), "/0/haystack_sessions/1/0/role", 'is "human"'),
]


@pytest.mark.parametrize(("spoil", "pointer", "problem"), ERRORS)
def test_an_error_is_reported_with_its_place(tmp_path: Path, spoil: Spoil, pointer: str, problem: str) -> None:
    entry = longmemeval_entry()
    spoil(entry)
    with pytest.raises(DatasetError) as caught:
        loaded(written(tmp_path / "l.json", [entry]))
    assert (caught.value.pointer, caught.value.problem) == (pointer, problem)


@pytest.mark.parametrize("write", [written, written_lines], ids=["array", "lines"])
def test_one_haystack_at_a_time_is_held(tmp_path: Path, write: Callable[[Path, Any], Path]) -> None:
    entries = []
    for number in range(60):
        entry = longmemeval_entry(question_id=f"q{number}")
        entry["haystack_sessions"][0] += [{"role": "user", "content": f"{number} " * 4000}] * 8
        entries.append(entry)
    path = write(tmp_path / "l.json", entries)
    tracemalloc.start()
    try:
        questions = sum(len(conversation.questions) for conversation in load([str(path)]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert questions == 60
    assert path.stat().st_size > 5_000_000
    assert peak < 2_500_000
