"""Writing conversations in the TestConversation format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memreplay.conversations.export import as_test_conversation_text, lost_in_export
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import load, named_files
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


def test_a_conversation_of_named_speakers_keeps_names_words_and_evidence(tmp_path: Path) -> None:
    conversation = loaded(written(tmp_path / "garden.json", [locomo_sample()]))
    again = loaded(exported(conversation, tmp_path / "again"))
    assert [turn.text for turn in again.turns[:2]] == [
        "Vera: I planted quinces. [shares a photo: a young tree]",
        "Tom: I have beans.",
    ]
    assert [turn.role for turn in again.turns] == [turn.role for turn in conversation.turns]
    assert [question.text for question in again.questions] == [q.text for q in conversation.questions[:4]]
    assert [question.expected for question in again.questions] == ["quinces", "2021", "beans", "Yes"]
    marked = {turn.number for turn in again.turns if turn.key_info is not None}
    assert marked == {1, 2, 4, 5, 6}
    assert again.questions[0].evidence == ("1",)
    assert [question.info_location for question in again.questions] == ["early", "middle", "middle", "recent"]


def test_what_the_format_cannot_hold_is_named(tmp_path: Path) -> None:
    rows = written_lines(tmp_path / "rows.jsonl", [mc10_row(0), mc10_row(4)])
    lost = " · ".join(lost_in_export(loaded(rows)))
    for phrase in (
        "1 questions whose correct answer",
        "options of 1",
        "3 sessions",
        "dates",
        "summaries",
        "salience",
    ):
        assert phrase in lost
    haystacks = lost_in_export(loaded(written(tmp_path / "l.json", [longmemeval_entry()])))
    assert not any("options" in phrase or "summaries" in phrase for phrase in haystacks)


def test_a_message_without_words_can_be_exported(tmp_path: Path) -> None:
    entry = longmemeval_entry()
    entry["haystack_sessions"][0][0]["content"] = ""
    again = loaded(exported(loaded(written(tmp_path / "l.json", [entry])), tmp_path / "again"))
    assert again.turns[0].text == " "
