"""Loading LoCoMo files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.errors import DatasetError
from tests.unit.conversations.samples import locomo_sample, locomo_turn, written
from tests.unit.conversations.spoiling import Spoil, with_value, without


def loaded(path: Path, warnings: list[str] | None = None) -> list[Conversation]:
    heard = [] if warnings is None else warnings
    return list(load([str(path)], on_warning=heard.append))


@pytest.fixture
def garden(tmp_path: Path) -> Conversation:
    """The sample, loaded."""
    (conversation,) = loaded(written(tmp_path / "garden.json", [locomo_sample()]))
    return conversation


def test_sessions_are_sorted_as_numbers_and_a_date_alone_is_no_session(garden: Conversation) -> None:
    assert [session.number for session in garden.sessions] == [1, 2, 10]
    assert [turn.id for turn in garden.turns] == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2", "D10:1"]
    assert [turn.number for turn in garden.turns] == [1, 2, 3, 4, 5, 6]


def test_sessions_have_dates_and_summaries(garden: Conversation) -> None:
    assert [session.date for session in garden.sessions] == [
        datetime(2023, 5, 8, 13, 56),
        datetime(2023, 5, 25, 9, 0),
        datetime(2024, 1, 1, 0, 5),
    ]
    assert [session.summary for session in garden.sessions] == ["Vera planted quinces.", None, None]
    assert garden.date_of(garden.turns[5]) == datetime(2024, 1, 1, 0, 5)


def test_speaker_a_is_the_user(garden: Conversation) -> None:
    assert [(turn.speaker, turn.role) for turn in garden.turns[:2]] == [("Vera", "user"), ("Tom", "assistant")]


def test_the_caption_of_a_shared_photo_is_part_of_the_text(garden: Conversation) -> None:
    assert garden.turns[0].text == "I planted quinces. [shares a photo: a young tree]"
    assert garden.turns[1].text == "I have beans."


def test_questions_bear_both_names_of_their_category(garden: Conversation) -> None:
    assert [(question.id, question.type, question.other_type) for question in garden.questions] == [
        ("garden-1_q0", "single-hop", "open_domain"),
        ("garden-1_q1", "temporal", "multi_hop"),
        ("garden-1_q2", "multi-hop", "single_hop"),
        ("garden-1_q3", "open-domain", "temporal_reasoning"),
        ("garden-1_q4", "adversarial", "adversarial"),
    ]
    assert {question.kind for question in garden.questions} == {"recall"}


def test_an_integer_answer_is_read_as_text(garden: Conversation) -> None:
    assert garden.questions[1].expected == "2021"


def test_what_was_never_said_is_to_be_refused_and_its_evidence_only_tempts(garden: Conversation) -> None:
    question = garden.questions[4]
    assert (question.expected, question.abstain) == ("Not answerable", True)
    assert (question.evidence, question.evidence_role) == (("D2:1",), "tempting")


def test_an_adversarial_question_with_a_published_answer_expects_that_answer(tmp_path: Path) -> None:
    sample = locomo_sample()
    sample["qa"][4]["answer"] = "No"
    (conversation,) = loaded(written(tmp_path / "garden.json", [sample]))
    question = conversation.questions[4]
    assert (question.expected, question.abstain, question.evidence_role) == ("No", False, "tempting")


def test_evidence_in_one_text_with_stray_colons_or_zeros_is_put_right(garden: Conversation) -> None:
    assert garden.questions[2].evidence == ("D1:2", "D2:1", "D10:1")


def test_a_question_without_evidence_has_no_role_for_it(garden: Conversation) -> None:
    assert (garden.questions[3].evidence, garden.questions[3].evidence_role) == ((), None)


@pytest.mark.parametrize("evidence", ["D", "D4:36", "D1:1; D9:9", "see above"])
def test_evidence_that_names_no_turn_is_left_out_and_reported(tmp_path: Path, evidence: str) -> None:
    sample = locomo_sample()
    sample["qa"][0]["evidence"] = ["D1:1", evidence]
    warnings: list[str] = []
    (conversation,) = loaded(written(tmp_path / "garden.json", [sample]), warnings)
    assert conversation.questions[0].evidence == ("D1:1",)
    assert len(warnings) == 1
    assert "/0/qa/0/evidence/1" in warnings[0] and evidence in warnings[0]


def test_good_evidence_causes_no_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    loaded(written(tmp_path / "garden.json", [locomo_sample()]), warnings)
    assert warnings == []


def test_a_session_without_a_date_has_none(tmp_path: Path) -> None:
    sample = locomo_sample()
    del sample["conversation"]["session_2_date_time"]
    (conversation,) = loaded(written(tmp_path / "garden.json", [sample]))
    assert [session.date is None for session in conversation.sessions] == [False, True, False]


def test_what_a_file_leaves_out_is_counted_and_not_made_up(tmp_path: Path) -> None:
    """Only a question with an offered wrong answer is known to be adversarial."""
    sample = locomo_sample()
    del sample["sample_id"], sample["conversation"]["session_2_date_time"]
    sample["conversation"]["session_12"] = None
    for question in sample["qa"]:
        del question["category"], question["evidence"]
    warnings: list[str] = []
    path = written(tmp_path / "garden.json", sample)
    (conversation,) = loaded(path, warnings)
    assert [(each.id, each.type, each.other_type) for each in conversation.questions] == [
        *((f"garden-1_q{number}", "recall", None) for number in range(4)),
        ("garden-1_q4", "adversarial", "adversarial"),
    ]
    assert [each.abstain for each in conversation.questions] == [False] * 4 + [True]
    assert not any(each.evidence for each in conversation.questions)
    assert warnings == [
        f"{path}: 1 conversation without a sample_id is named after the file",
        f"{path}: 4 questions have no category: no LoCoMo F1, and no results by category (first at /qa/0)",
        f"{path}: 5 questions have no evidence: retrieval cannot be measured (first at /qa/0)",
        f"{path}: 1 session has no date: when things were said stays unknown (first at /conversation)",
    ]


def test_several_conversations_lie_in_one_file(tmp_path: Path) -> None:
    other = locomo_sample() | {"sample_id": "garden-2"}
    conversations = loaded(written(tmp_path / "garden.json", [locomo_sample(), other]))
    assert [conversation.id for conversation in conversations] == ["garden-1", "garden-2"]
    assert {conversation.dataset for conversation in conversations} == {"garden"}


@pytest.mark.parametrize(
    ("spoil", "pointer", "problem"),
    [
        (with_value("", "sample_id"), "/0/sample_id", 'is ""'),
        (with_value([], "conversation"), "/0/conversation", "is a list of 0"),
        (without("conversation", "speaker_a"), "/0/conversation/speaker_a", "is missing"),
        (with_value(5, "conversation", "speaker_b"), "/0/conversation/speaker_b", "is 5"),
        (with_value("x", "conversation", "session_2"), "/0/conversation/session_2", 'is "x"'),
        (without("conversation", "session_2", 1, "text"), "/0/conversation/session_2/1/text", "is missing"),
        (without("conversation", "session_2", 1, "dia_id"), "/0/conversation/session_2/1/dia_id", "is missing"),
        (
            with_value("D1:1", "conversation", "session_2", 1, "dia_id"),
            "/0/conversation/session_2/1/dia_id",
            'is "D1:1" again',
        ),
        (
            with_value("Ada", "conversation", "session_2", 1, "speaker"),
            "/0/conversation/session_2/1/speaker",
            'is "Ada"',
        ),
        (
            with_value("8 May 2023", "conversation", "session_1_date_time"),
            "/0/conversation/session_1_date_time",
            'is "8 May 2023"',
        ),
        (without("qa", 0, "question"), "/0/qa/0/question", "is missing"),
        (without("qa", 0, "answer"), "/0/qa/0/answer", "is missing"),
        (with_value(6, "qa", 0, "category"), "/0/qa/0/category", "is 6"),
        (with_value("D1:1", "qa", 0, "evidence"), "/0/qa/0/evidence", 'is "D1:1"'),
        (with_value(True, "qa", 0, "answer"), "/0/qa/0/answer", "is true"),
    ],
)
def test_an_error_is_reported_with_its_place(tmp_path: Path, spoil: Spoil, pointer: str, problem: str) -> None:
    sample = locomo_sample()
    spoil(sample)
    with pytest.raises(DatasetError) as caught:
        loaded(written(tmp_path / "garden.json", [sample]))
    assert (caught.value.pointer, caught.value.problem) == (pointer, problem)


def test_a_conversation_without_turns_is_refused(tmp_path: Path) -> None:
    sample = locomo_sample()
    sample["conversation"] = {"speaker_a": "Vera", "speaker_b": "Tom", "session_1": []}
    with pytest.raises(DatasetError, match="has no turns"):
        loaded(written(tmp_path / "garden.json", [sample]))


def test_a_photo_without_words_is_its_caption(tmp_path: Path) -> None:
    sample = locomo_sample()
    sample["conversation"]["session_10"].append(locomo_turn("D10:2", "Vera", "", blip_caption="a fig"))
    (conversation,) = loaded(written(tmp_path / "garden.json", [sample]))
    assert conversation.turns[-1].text == "[shares a photo: a fig]"


@pytest.mark.shared_data
def test_the_published_development_conversations_load(shared_data: Path) -> None:
    warnings: list[str] = []
    conversations = loaded(shared_data / "locomo" / "locomo10_dev.json", warnings)
    questions = [question for conversation in conversations for question in conversation.questions]
    assert (len(conversations), len(questions)) == (5, 845)
    assert sum(question.evidence_role == "supports" for question in questions) == 656
    assert all(set(q.evidence) <= set(c.turns_by_id) for c in conversations for q in c.questions)
    assert [warning for warning in warnings if '"D4:36"' in warning] == warnings and len(warnings) == 1
    repaired = next(question for question in questions if question.id == "conv-26_q37")
    assert repaired.evidence == ("D8:6", "D9:17")
