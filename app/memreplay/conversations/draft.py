"""A TestConversation file as far as it can be read: what the rules of design are checked on.

Every fault of the file is found, and those parts that are without fault are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memreplay.conversations.formats.test_conversation import RecallQuestion, TestConversation, WrittenTurn
from memreplay.conversations.json_files import read_json
from memreplay.conversations.validation_errors import Place, each_of, validated
from memreplay.errors import DatasetError

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Draft:
    """The parts of a file; None, or left out, are those that are not there or faulty."""

    place: Place
    id: str | None
    language: str | None
    tags: tuple[str, ...]
    turns: tuple[WrittenTurn | None, ...]
    questions: tuple[RecallQuestion | None, ...]

    @property
    def path(self) -> Path:
        """The file."""
        return self.place.path

    def turn_place(self, index: int) -> Place:
        """The place of the turn at this 0-based index."""
        return self.place.at("turns", index)

    def question_place(self, index: int) -> Place:
        """The place of the question at this 0-based index."""
        return self.place.at("recallQuestions", index)

    def all_turns(self) -> tuple[WrittenTurn, ...] | None:
        """The turns, if every one of them could be read."""
        turns = tuple(turn for turn in self.turns if turn is not None)
        return turns if len(turns) == len(self.turns) else None

    def sound_turns(self) -> Iterator[tuple[int, WrittenTurn]]:
        """The turns that could be read, with their indexes."""
        return ((index, turn) for index, turn in enumerate(self.turns) if turn is not None)

    def sound_questions(self) -> Iterator[tuple[int, RecallQuestion]]:
        """The questions that could be read, with their indexes."""
        return ((index, question) for index, question in enumerate(self.questions) if question is not None)


def read_draft(path: Path) -> tuple[Draft, tuple[DatasetError, ...]]:
    """What can be read of a file, and the faults of the rest.

    Raises:
        DatasetError: it is not JSON.
    """
    place = Place(path)
    data = read_json(path)
    faults: tuple[DatasetError, ...] = tuple(_repeated_keys(path))
    try:
        validated(TestConversation, data, place)
    except DatasetError as error:
        faults += each_of(error)
    fields: dict[str, Any] = data if isinstance(data, dict) else {}
    draft = Draft(
        place=place,
        id=_text(fields.get("id")),
        language=_text(fields.get("language")),
        tags=tuple(tag for tag in _entries(fields.get("tags")) if isinstance(tag, str)),
        turns=tuple(_part(WrittenTurn, entry) for entry in _entries(fields.get("turns"))),
        questions=tuple(_part(RecallQuestion, entry) for entry in _entries(fields.get("recallQuestions"))),
    )
    return draft, faults


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _entries(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _part(model: type[M], data: object) -> M | None:
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


class _Pairs(list[tuple[str, Any]]):
    """An object as it is written, with every key as often as it stands there."""


def _repeated_keys(path: Path) -> list[DatasetError]:
    """Of a key that stands twice in an object all values but the last are lost unseen."""
    text = path.read_text(encoding="utf-8-sig")
    try:
        # Numbers stay texts here: Python refuses to convert very long ones.
        written = json.loads(text, object_pairs_hook=_Pairs, parse_int=str)
        return list(_repeated_in(written, Place(path)))
    except RecursionError:
        return [Place(path).error("is nested too deeply", "a conversation of turns and questions")]


def _repeated_in(value: object, place: Place) -> Iterator[DatasetError]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, inside in value:
            if key in seen:
                yield place.at(key).error("stands twice in its object", "every field once")
            seen.add(key)
            yield from _repeated_in(inside, place.at(key))
    elif isinstance(value, list):
        for index, inside in enumerate(value):
            yield from _repeated_in(inside, place.at(index))
