"""Loading LoCoMo-MC10 rows, and joining the evidence that LoCoMo publishes."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.errors import DatasetError
from tests.unit.conversations.samples import locomo_sample, mc10_haystack, mc10_row, written, written_lines
from tests.unit.conversations.spoiling import Spoil, with_value, without


def loaded(path: Path, evidence: Path | None = None, warnings: list[str] | None = None) -> list[Conversation]:
    heard = [] if warnings is None else warnings
    return list(load([str(path)], evidence, on_warning=heard.append))


def rows(count: int = 5) -> list[dict[str, Any]]:
    return [mc10_row(number) for number in range(count)]


@pytest.mark.parametrize("write", [written, written_lines], ids=["array", "lines"])
def test_all_rows_of_a_conversation_share_one_copy_of_its_turns(
    tmp_path: Path, write: Callable[[Path, Any], Path]
) -> None:
    (conversation,) = loaded(write(tmp_path / "rows.data", rows()))
    assert (conversation.id, conversation.dataset) == ("garden-1", "rows")
    assert [question.id for question in conversation.questions] == [f"garden-1_q{n}" for n in range(5)]
    assert len(conversation.turns) == 6


@pytest.fixture
def garden(tmp_path: Path) -> Conversation:
    """All rows of the sample, loaded without evidence."""
    (conversation,) = loaded(written_lines(tmp_path / "rows.jsonl", rows()))
    return conversation


def test_sessions_are_sorted_by_number_with_dates_and_summaries(garden: Conversation) -> None:
    assert [(session.number, session.id) for session in garden.sessions] == [
        (1, "session_1"),
        (2, "session_2"),
        (10, "session_10"),
    ]
    assert garden.sessions[0].date == datetime(2023, 5, 8, 13, 56)
    assert [session.summary for session in garden.sessions] == ["Vera planted quinces.", None, None]


def test_the_speaker_in_brackets_becomes_a_name_and_leaves_the_text(garden: Conversation) -> None:
    turn = garden.turns[0]
    assert (turn.speaker, turn.text, turn.role, turn.session) == ("Vera", "I planted quinces.", "user", 1)


@pytest.mark.parametrize(
    ("content", "speaker", "text"),
    [
        ("[JEAN-LUC O'NEIL]: [laughs]: hi", "Jean-Luc O'Neil", "[laughs]: hi"),
        ("[McCoy]:hi", "McCoy", "hi"),
        ("no brackets [TOM]: hi", None, "no brackets [TOM]: hi"),
        ("[laughs] hi", None, "[laughs] hi"),
        ("[TOM]: ", "Tom", ""),
    ],
)
def test_only_a_bracketed_name_before_a_colon_is_a_speaker(
    tmp_path: Path, content: str, speaker: str | None, text: str
) -> None:
    row = mc10_row()
    row["haystack_sessions"][1][0]["content"] = content
    (conversation,) = loaded(written_lines(tmp_path / "rows.jsonl", [row]))
    turn = conversation.turns[0]
    assert (turn.speaker, turn.text) == (speaker, text)
    assert conversation.label_of(turn) == (speaker or "User")


def test_without_evidence_turns_are_numbered(garden: Conversation) -> None:
    assert [turn.id for turn in garden.turns] == ["1", "2", "3", "4", "5", "6"]
    assert {question.evidence for question in garden.questions} == {()}


def test_a_question_has_its_options_and_both_names_of_its_type(garden: Conversation) -> None:
    question = garden.questions[1]
    assert (question.kind, question.type, question.other_type) == ("choice", "multi_hop", "temporal")
    assert (question.expected, question.correct_index, len(question.choices)) == ("2021", 1, 10)
    assert question.choices[1] == "2021"
    assert [question.abstain for question in garden.questions] == [False, False, False, False, True]


def test_evidence_is_joined_from_a_given_file(tmp_path: Path) -> None:
    path = written_lines(tmp_path / "rows.jsonl", rows())
    (conversation,) = loaded(path, written(tmp_path / "elsewhere" / "gold.json", [locomo_sample()]))
    assert [turn.id for turn in conversation.turns] == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2", "D10:1"]
    assert [question.evidence for question in conversation.questions] == [
        ("D1:1",),
        ("D2:2",),
        ("D1:2", "D2:1", "D10:1"),
        (),
        ("D2:1",),
    ]
    assert [question.evidence_role for question in conversation.questions] == [
        "supports",
        "supports",
        "supports",
        None,
        "tempting",
    ]


def test_evidence_is_joined_from_a_locomo10_file_beside_the_rows(tmp_path: Path) -> None:
    written(tmp_path / "locomo10_first.json", {"not": "of that format"})
    written(tmp_path / "locomo10_second.json", [locomo_sample()])
    (conversation,) = loaded(written_lines(tmp_path / "rows.jsonl", rows()))
    assert conversation.questions[0].evidence == ("D1:1",)


def test_a_conversation_that_the_evidence_does_not_cover_is_reported(tmp_path: Path) -> None:
    other = locomo_sample() | {"sample_id": "orchard"}
    warnings: list[str] = []
    path = written_lines(tmp_path / "rows.jsonl", rows())
    (conversation,) = loaded(path, written(tmp_path / "gold.json", [other]), warnings)
    assert conversation.turns[0].id == "1"
    assert len(warnings) == 1 and "garden-1" in warnings[0]


def test_no_evidence_is_joined_where_the_haystack_is_another_conversation(tmp_path: Path) -> None:
    row = mc10_row()
    row["haystack_sessions"][0].append({"role": "user", "content": "[VERA]: One more."})
    warnings: list[str] = []
    gold = written(tmp_path / "gold.json", [locomo_sample()])
    (conversation,) = loaded(written_lines(tmp_path / "rows.jsonl", [row]), gold, warnings)
    assert (conversation.turns[0].id, conversation.questions[0].evidence) == ("1", ())
    assert len(warnings) == 1 and "differ" in warnings[0]


def test_no_evidence_is_joined_to_a_question_of_another_text(tmp_path: Path) -> None:
    warnings: list[str] = []
    gold = written(tmp_path / "gold.json", [locomo_sample()])
    path = written_lines(tmp_path / "rows.jsonl", [mc10_row(0, question="What else?"), mc10_row(1)])
    (conversation,) = loaded(path, gold, warnings)
    assert [question.evidence for question in conversation.questions] == [(), ("D2:2",)]
    assert len(warnings) == 1 and "line 1" in warnings[0] and "garden-1_q0" in warnings[0]


def test_rows_of_several_conversations_may_be_mixed(tmp_path: Path) -> None:
    other = mc10_row(question_id="orchard_q0")
    other["haystack_sessions"][1][0]["content"] = "[VERA]: I planted figs."
    path = written_lines(tmp_path / "rows.jsonl", [mc10_row(0), other, mc10_row(1)])
    first, second = loaded(path)
    assert (first.id, len(first.questions), second.id, len(second.questions)) == ("garden-1", 2, "orchard", 1)
    assert second.turns[0].text == "I planted figs."


def test_rows_whose_ids_name_no_conversation_are_told_apart_by_their_haystacks(tmp_path: Path) -> None:
    second = mc10_row(1, question_id="b")
    second["haystack_sessions"][1][0]["content"] = "[VERA]: I planted figs."
    path = written_lines(tmp_path / "r.jsonl", [mc10_row(0, question_id="a"), second, mc10_row(2, question_id="c")])
    found = {c.id: [question.id for question in c.questions] for c in loaded(path)}
    assert found == {"r-1": ["a", "c"], "r-2": ["b"]}


def test_without_summaries_and_dates_the_time_is_unknown(tmp_path: Path) -> None:
    bare = rows(2)
    for row in bare:
        del row["haystack_session_summaries"], row["haystack_session_datetimes"]
    warnings: list[str] = []
    path = written_lines(tmp_path / "rows.jsonl", bare)
    (conversation,) = loaded(path, None, warnings)
    assert {(session.date, session.summary) for session in conversation.sessions} == {(None, None)}
    assert warnings == [
        f"{path}: 3 sessions have no date: when things were said stays unknown"
        " (first at line 1/haystack_session_datetimes)"
    ]


def test_a_row_of_fewer_options_says_so_in_num_choices(tmp_path: Path) -> None:
    row = mc10_row(num_choices=3, choices=["quinces", 7, "figs"], correct_choice_index=0)
    (conversation,) = loaded(written_lines(tmp_path / "rows.jsonl", [row]))
    assert conversation.questions[0].choices == ("quinces", "7", "figs")


ERRORS = [
    (without("question_id"), "question_id", "is missing"),
    (without("question"), "question", "is missing"),
    (without("choices"), "choices", "is missing"),
    (with_value(["quinces"], "choices"), "choices", "has 1 options"),
    (with_value("quinces", "choices"), "choices", 'is "quinces"'),
    (with_value(10, "correct_choice_index"), "correct_choice_index", "is 10"),
    (with_value(-1, "correct_choice_index"), "correct_choice_index", "is -1"),
    (with_value("0", "correct_choice_index"), "correct_choice_index", 'is "0"'),
    (with_value(1, "correct_choice_index"), "answer", 'is "quinces"'),
    (with_value("pears", "answer"), "answer", 'is "pears"'),
    (with_value(None, "answer"), "answer", "is null"),
    (with_value("cloze", "question_type"), "question_type", 'is "cloze"'),
    (with_value(4, "num_sessions"), "num_sessions", "is 4"),
    (without("num_sessions"), "num_sessions", "is missing"),
    (without("haystack_sessions"), "haystack_sessions", "is missing"),
    (with_value(["session_1"], "haystack_session_ids"), "haystack_session_ids", "has 1 entry"),
    (with_value([], "haystack_session_summaries"), "haystack_session_summaries", "has 0 entries"),
    (without("haystack_session_datetimes", 0), "haystack_session_datetimes", "has 2 entries"),
    (with_value("session_1", "haystack_session_ids", 0), "haystack_session_ids/1", 'is "session_1" again'),
    (with_value("first", "haystack_session_ids", 0), "haystack_session_ids/0", 'is "first"'),
    (with_value("May", "haystack_session_datetimes", 2), "haystack_session_datetimes/2", 'is "May"'),
    (
        with_value("system", "haystack_sessions", 1, 0, "role"),
        "haystack_sessions/1/0/role",
        'is "system"',
    ),
    (without("haystack_sessions", 1, 0, "content"), "haystack_sessions/1/0/content", "is missing"),
    (with_value([[], [], []], "haystack_sessions"), "haystack_sessions", "has no turns"),
]


@pytest.mark.parametrize(("spoil", "pointer", "problem"), ERRORS)
def test_an_error_is_reported_with_its_place(tmp_path: Path, spoil: Spoil, pointer: str, problem: str) -> None:
    row = mc10_row()
    spoil(row)
    with pytest.raises(DatasetError) as caught:
        loaded(written_lines(tmp_path / "rows.jsonl", [row]))
    assert (caught.value.pointer, caught.value.problem) == (f"line 1/{pointer}", problem)
    with pytest.raises(DatasetError) as caught:
        loaded(written(tmp_path / "rows.json", [row]))
    assert (caught.value.pointer, caught.value.problem) == (f"/0/{pointer}", problem)


def test_the_line_of_an_error_counts_blank_lines_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(mc10_row(0))}\n\n{json.dumps(mc10_row(1, choices=[]))}\n", encoding="utf-8")
    with pytest.raises(DatasetError) as caught:
        loaded(path)
    assert caught.value.pointer == "line 3/choices"


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{json.dumps(mc10_row(0))}\n{{"question_id": \n', encoding="utf-8")
    with pytest.raises(DatasetError) as caught:
        loaded(path)
    assert caught.value.pointer == "line 2" and "is not valid JSON" in caught.value.problem


@pytest.mark.parametrize(
    ("damage", "pointer", "problem"),
    [
        (lambda text: text[:-3], "/1", "is not valid JSON"),
        (lambda text: text + b"x", "/2", "is not valid JSON"),
        (lambda text: text.replace(b'"answer"', b'"answer": 1, "answer"')[:-3], "/1", "is not valid JSON"),
        (lambda text: text.replace(b"garden-1_q1", b"garden-\xff_q1"), "/1", "is not UTF-8"),
    ],
)
def test_a_broken_array_is_refused_in_one_sentence(
    tmp_path: Path, damage: Callable[[bytes], bytes], pointer: str, problem: str
) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(damage(json.dumps(rows(2)).encode()))
    with pytest.raises(DatasetError) as caught:
        loaded(path)
    assert caught.value.pointer == pointer
    assert caught.value.problem.startswith(problem) and "\n" not in str(caught.value)


def test_a_question_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        loaded(written_lines(tmp_path / "rows.jsonl", [mc10_row(0), mc10_row(0)]))
    assert caught.value.pointer == "line 2/question_id" and "again" in caught.value.problem


def test_two_haystacks_under_one_conversation_are_refused(tmp_path: Path) -> None:
    second = mc10_row(1)
    second["haystack_sessions"][1][0]["content"] = "[VERA]: I planted figs."
    with pytest.raises(DatasetError) as caught:
        loaded(written_lines(tmp_path / "rows.jsonl", [mc10_row(0), second]))
    assert caught.value.pointer == "line 2/haystack_sessions" and "line 1" in caught.value.problem


@pytest.mark.parametrize("question_id", ["garden-1_q{}", "garden-{}_q0"], ids=["one id", "an id each"])
@pytest.mark.parametrize("write", [written, written_lines], ids=["array", "lines"])
def test_memory_grows_with_the_distinct_haystacks_and_not_with_the_file(
    tmp_path: Path, write: Callable[[Path, Any], Path], question_id: str
) -> None:
    filler = [{"role": "user", "content": "[VERA]: " + "word " * 2000}] * 10
    haystack = mc10_haystack()
    haystack["haystack_sessions"][1] += filler
    many = [mc10_row(0, question_id=question_id.format(number)) | haystack for number in range(100)]
    path = write(tmp_path / "rows.data", many)
    tracemalloc.start()
    try:
        conversations = loaded(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(len(conversation.questions) for conversation in conversations) == 100
    assert path.stat().st_size > 10_000_000
    assert peak < 3_000_000


@pytest.mark.shared_data
def test_sixty_rows_are_five_conversations_with_their_evidence(shared_data: Path) -> None:
    warnings: list[str] = []
    conversations = loaded(shared_data / "locomo" / "mc10_dev.jsonl", None, warnings)
    questions = [question for conversation in conversations for question in conversation.questions]
    assert [len(conversation.turns) for conversation in conversations] == [419, 369, 663, 675, 689]
    assert len(questions) == 60
    assert all(set(q.evidence) <= set(c.turns_by_id) for c in conversations for q in c.questions)
    assert sum(bool(question.evidence) for question in questions) == 60
    assert {c.turns[0].speaker for c in conversations} >= {"Caroline"}
