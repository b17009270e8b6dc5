"""Writing conversations in the TestConversation format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memreplay.conversations.export import as_test_conversation, as_test_conversation_text, lost_in_export
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load, named_files
from memreplay.errors import UsageError
from memreplay.paths import datasets_folder
from tests.unit.conversations.samples import (
    boat_conversation,
    locomo_sample,
    longmemeval_entry,
    mc10_row,
    written,
    written_lines,
)


def loaded(path: Path) -> Conversation:
    (conversation,) = load([str(path)])
    return conversation


def exported(conversation: Conversation, folder: Path) -> Path:
    path = folder / f"{conversation.id}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(as_test_conversation_text(conversation), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", named_files([str(datasets_folder())]), ids=lambda path: path.stem)
def test_a_shipped_conversation_is_exported_as_it_is_written(path: Path) -> None:
    conversation = loaded(path)
    assert json.loads(as_test_conversation_text(conversation)) == json.loads(path.read_text(encoding="utf-8"))
    assert lost_in_export(conversation) == ()


def test_metadata_that_says_no_and_fields_left_out_come_back(tmp_path: Path) -> None:
    data = boat_conversation()
    data["turns"][1]["metadata"] = {"containsKeyInfo": False}
    del data["language"], data["tags"]
    data["recallQuestions"][0]["expectedEntities"] = []
    conversation = loaded(written(tmp_path / "harbour-07.json", data))
    assert json.loads(as_test_conversation_text(conversation)) == data
    assert loaded(exported(conversation, tmp_path / "again")) == conversation


def test_a_dated_conversation_of_named_speakers_comes_back(tmp_path: Path) -> None:
    conversation = loaded(written(tmp_path / "garden.json", [locomo_sample()]))
    again = loaded(exported(conversation, tmp_path / "again"))
    assert [(turn.role, turn.speaker, turn.text) for turn in again.turns] == [
        (turn.role, turn.speaker, turn.text) for turn in conversation.turns
    ]
    assert [again.date_of(turn) for turn in again.turns] == [conversation.date_of(t) for t in conversation.turns]
    assert again.sessions[0].summary == "Vera planted quinces."
    assert [question.text for question in again.questions] == [q.text for q in conversation.questions]
    assert [question.expected for question in again.questions] == [
        "quinces",
        "2021",
        "beans",
        "Yes",
        "Not answerable",
    ]
    assert [question.abstain for question in again.questions] == [False] * 4 + [True]
    assert [question.evidence for question in again.questions] == [
        ("D1:1",),
        ("D2:2",),
        ("D1:2", "D2:1", "D3:1"),
        (),
        ("D2:1",),
    ]
    assert lost_in_export(conversation) == ("the question types", "the ids of the turns")


def test_sessions_without_dates_become_one_conversation(tmp_path: Path) -> None:
    rows = written_lines(tmp_path / "rows.jsonl", [mc10_row(0, haystack_session_datetimes=[None, None, None])])
    conversation = loaded(rows)
    lost = " · ".join(lost_in_export(conversation))
    for phrase in ("3 sessions", "summaries", "salience", "question types", "1 multiple-choice questions"):
        assert phrase in lost
    again = loaded(exported(conversation, tmp_path / "again"))
    assert [turn.id for turn in again.turns] == [str(turn.number) for turn in conversation.turns]


def test_a_multiple_choice_question_keeps_its_options(tmp_path: Path) -> None:
    rows = written_lines(tmp_path / "rows.jsonl", [mc10_row(0), mc10_row(4)])
    conversation = loaded(rows)
    again = loaded(exported(conversation, tmp_path / "again"))
    choices = [question for question in again.questions if question.kind == "choice"]
    assert [set(choice.choices) for choice in choices] == [set(q.choices) for q in conversation.questions]
    assert [choice.expected for choice in choices] == [question.expected for question in conversation.questions]
    assert [choice.abstain for choice in choices] == [False, True]
    haystacks = lost_in_export(loaded(written(tmp_path / "l.json", [longmemeval_entry()])))
    assert not any("options" in phrase or "summaries" in phrase for phrase in haystacks)


def test_a_message_without_words_can_be_exported(tmp_path: Path) -> None:
    entry = longmemeval_entry()
    entry["haystack_sessions"][0][0]["content"] = ""
    again = loaded(exported(loaded(written(tmp_path / "l.json", [entry])), tmp_path / "again"))
    assert again.turns[0].text == " "


def test_a_conversation_in_which_nobody_says_anything_is_not_exported(tmp_path: Path) -> None:
    conversation = loaded(written(tmp_path / "l.json", [longmemeval_entry()]))
    silent = tuple(turn.model_copy(update={"role": "other"}) for turn in conversation.turns)
    with pytest.raises(UsageError, match="no message of a user or an assistant"):
        as_test_conversation(conversation.model_copy(update={"turns": silent}))
