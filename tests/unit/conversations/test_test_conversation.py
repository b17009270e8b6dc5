"""Loading TestConversation files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load
from memreplay.errors import DatasetError
from tests.unit.conversations.samples import boat_conversation, recall_question, written
from tests.unit.conversations.spoiling import Spoil, with_value, without


def loaded(path: Path, warnings: list[str] | None = None) -> Conversation:
    heard = [] if warnings is None else warnings
    (conversation,) = load([str(path)], on_warning=heard.append)
    return conversation


def test_every_field_of_the_schema_arrives(tmp_path: Path) -> None:
    conversation = loaded(written(tmp_path / "boat.json", boat_conversation()))
    assert (conversation.id, conversation.dataset) == ("harbour-07", "boat")
    assert (conversation.language, conversation.tags) == ("en", ("correction",))
    assert len(conversation.sessions) == 1 and conversation.sessions[0].date is None
    turn = conversation.turns[4]
    assert (turn.id, turn.number, turn.session, turn.role, turn.speaker) == ("5", 5, 1, "user", None)
    assert turn.key_info is not None
    assert (turn.key_info.key_info_type, turn.key_info.salience) == ("fact", "low")
    assert conversation.turns[1].key_info is None
    question = conversation.questions[1]
    assert (question.id, question.kind, question.type) == ("harbour-07-q2", "recall", "middle")
    assert (question.expected, question.expected_entities) == ("1,340", ("1,340",))
    assert (question.info_location, question.salience, question.category) == ("middle", "low", "harbour")
    assert (question.abstain, question.evidence_role) == (False, "supports")


def test_evidence_is_derived_from_the_key_turns(tmp_path: Path) -> None:
    conversation = loaded(written(tmp_path / "boat.json", boat_conversation()))
    assert [question.evidence for question in conversation.questions] == [("1",), ("7",), ("9",)]


def test_text_that_looks_like_markup_or_a_format_stays_as_it_is(tmp_path: Path) -> None:
    conversation = loaded(written(tmp_path / "boat.json", boat_conversation()))
    assert conversation.turns[2].text == "Thanks. [laughs] {0} %s"


def test_language_tags_and_metadata_may_be_left_out(tmp_path: Path) -> None:
    data = boat_conversation()
    del data["language"], data["tags"]
    conversation = loaded(written(tmp_path / "boat.json", data))
    assert (conversation.language, conversation.tags) == (None, ())


def test_an_id_without_a_number_has_no_category(tmp_path: Path) -> None:
    conversation = loaded(written(tmp_path / "boat.json", boat_conversation() | {"id": "harbour"}))
    assert {question.category for question in conversation.questions} == {None}


def test_a_question_whose_entities_no_key_turn_holds_is_reported_and_has_no_evidence(tmp_path: Path) -> None:
    data = boat_conversation()
    data["recallQuestions"] = [recall_question(expectedAnswer="Skua", expectedEntities=["Skua"])]
    warnings: list[str] = []
    question = loaded(written(tmp_path / "boat.json", data), warnings).questions[0]
    assert (question.evidence, question.evidence_role) == ((), None)
    assert len(warnings) == 1 and "/recallQuestions/0" in warnings[0]


def test_without_expected_entities_the_expected_answer_leads_to_the_evidence(tmp_path: Path) -> None:
    data = boat_conversation()
    data["recallQuestions"] = [recall_question(expectedEntities=[])]
    assert loaded(written(tmp_path / "boat.json", data)).questions[0].evidence == ("1",)


def test_a_file_of_one_line_and_one_with_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "boat.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(boat_conversation()).encode())
    assert len(loaded(path).turns) == 10


ERRORS = [
    (without("id"), "/id", "is missing"),
    (without("turns"), "/turns", "is missing"),
    (with_value([], "turns"), "/turns", "has 0 entries"),
    (with_value("hello", "turns"), "/turns", 'is "hello"'),
    (without("turns", 2, "content"), "/turns/2/content", "is missing"),
    (with_value("", "turns", 2, "content"), "/turns/2/content", 'is ""'),
    (with_value(7, "turns", 2, "content"), "/turns/2/content", "is 7"),
    (with_value("system", "turns", 1, "role"), "/turns/1/role", 'is "system"'),
    (with_value("user", "turns", 1), "/turns/1", 'is "user"'),
    (with_value("yes", "turns", 0, "metadata", "containsKeyInfo"), "/turns/0/metadata/containsKeyInfo", 'is "yes"'),
    (with_value("huge", "turns", 0, "metadata", "salienceLevel"), "/turns/0/metadata/salienceLevel", 'is "huge"'),
    (with_value("x", "turns", 0, "metadata", "salience"), "/turns/0/metadata/salience", "not a field"),
    (without("recallQuestions"), "/recallQuestions", "is missing"),
    (without("recallQuestions", 0, "expectedAnswer"), "/recallQuestions/0/expectedAnswer", "is missing"),
    (with_value([1], "recallQuestions", 0, "expectedEntities"), "/recallQuestions/0/expectedEntities/0", "is 1"),
    (with_value("late", "recallQuestions", 0, "infoLocation"), "/recallQuestions/0/infoLocation", 'is "late"'),
    (with_value("x", "a/b~c"), "/a~1b~0c", "not a field"),
]


@pytest.mark.parametrize(("spoil", "pointer", "problem"), ERRORS)
def test_an_error_is_reported_with_its_place(tmp_path: Path, spoil: Spoil, pointer: str, problem: str) -> None:
    data = boat_conversation()
    spoil(data)
    path = written(tmp_path / "boat.json", data)
    with pytest.raises(DatasetError) as caught:
        loaded(path)
    assert caught.value.pointer == pointer
    assert problem in caught.value.problem
    assert caught.value.expected
    assert "\n" not in str(caught.value) and str(caught.value).startswith(f"{path}: {pointer}: ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b'{"id": "x",\n "turns": [', "is not valid JSON (line 2"),
        (b'{"id": "\xff"}', "is not UTF-8 (byte 9)"),
        ('{"id": "x"}'.encode("utf-16"), "is not UTF-8"),
        (b"SQLite format 3\0\x10\0", "is an SQLite file"),
        (b"42", "is of no known format"),
        (b'{"name": "x"}', "is of no known format"),
        (b"[]", "is empty"),
        (b'[{"name": "x"}]', "is of no known format"),
        (b'[{"name": ', "is not valid JSON"),
        (b'{"script": [], "is_question": []}', "GoodAI"),
    ],
)
def test_a_file_that_is_no_dataset_is_refused_in_one_sentence(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "thing.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        loaded(path)
    assert problem in caught.value.problem
    assert "\n" not in str(caught.value)
