"""The JSON Schema that is shipped for editors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from memreplay.conversations.export import conversation_schema, conversation_schema_text
from memreplay.conversations.registry import load, named_files
from memreplay.paths import datasets_folder
from tests.unit.conversations.samples import boat_conversation, written
from tests.unit.conversations.spoiling import Spoil, with_value, without

SHIPPED = datasets_folder() / "conversation.schema.json"


def test_the_shipped_schema_is_that_of_the_models() -> None:
    assert SHIPPED.read_text(encoding="utf-8") == conversation_schema_text(), (
        "write it anew: memreplay datasets schema > datasets/conversation.schema.json"
    )


def test_every_shipped_conversation_satisfies_it() -> None:
    validator = Draft202012Validator(conversation_schema())
    for path in named_files([str(datasets_folder())]):
        assert list(validator.iter_errors(json.loads(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "spoil",
    [
        without("id"),
        with_value("x", "turns", 0, "metadata", "salience"),
        with_value("late", "recallQuestions", 0, "infoLocation"),
        with_value("", "turns", 0, "content"),
    ],
)
def test_it_finds_what_the_loader_refuses(spoil: Spoil) -> None:
    data = boat_conversation()
    spoil(data)
    assert list(Draft202012Validator(conversation_schema()).iter_errors(data))


def test_a_conversation_may_name_its_schema(tmp_path: Path) -> None:
    data = {"$schema": "../conversation.schema.json", **boat_conversation()}
    assert not list(Draft202012Validator(conversation_schema()).iter_errors(data))
    (conversation,) = load([str(written(tmp_path / "harbour-07.json", data))])
    assert conversation.id == "harbour-07"


def test_a_schema_in_a_folder_is_no_dataset(tmp_path: Path) -> None:
    written(tmp_path / "harbour-07.json", boat_conversation())
    written(tmp_path / "conversation.schema.json", conversation_schema())
    assert [conversation.id for conversation in load([str(tmp_path)])] == ["harbour-07"]
