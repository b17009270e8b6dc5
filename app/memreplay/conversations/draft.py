"""The readable parts of a TestConversation file, for the design rules to check.

Finds every error in the file and keeps the valid parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memreplay.conversations.formats.test_conversation import checked
from memreplay.conversations.formats.test_conversation_fields import RecallQuestion, TestConversation, WrittenTurn
from memreplay.conversations.json_files import duplicate_keys, read_json
from memreplay.conversations.validation_errors import Place, individual_errors
from memreplay.errors import DatasetError

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Draft:
    """The parts of a file. Missing and invalid parts are None or left out.

    ``turns`` are all turns in order, whether they stand in sessions or not, and ``turn_places`` their places.
    ``written`` is the whole content, or None if the file has any error.
    """

    place: Place
    id: str | None
    language: str | None
    tags: tuple[str, ...]
    turns: tuple[WrittenTurn | None, ...]
    turn_places: tuple[Place, ...]
    questions: tuple[RecallQuestion | None, ...]
    written: TestConversation | None
    in_sessions: bool

    @property
    def path(self) -> Path:
        return self.place.path

    def turn_place(self, index: int) -> Place:
        return self.turn_places[index]

    def question_place(self, index: int) -> Place:
        return self.place.at("recallQuestions", index)

    def all_turns(self) -> tuple[WrittenTurn, ...] | None:
        """The turns, or None if any of them is invalid."""
        turns = tuple(turn for turn in self.turns if turn is not None)
        return turns if len(turns) == len(self.turns) else None

    def valid_turns(self) -> Iterator[tuple[int, WrittenTurn]]:
        """The valid turns with their indexes."""
        return ((index, turn) for index, turn in enumerate(self.turns) if turn is not None)

    def valid_questions(self) -> Iterator[tuple[int, RecallQuestion]]:
        """The valid questions with their indexes."""
        return ((index, question) for index, question in enumerate(self.questions) if question is not None)


def read_draft(path: Path) -> tuple[Draft, tuple[DatasetError, ...]]:
    """Read the valid parts of a file, and collect the errors of the rest.

    Raises:
        DatasetError: the file is not JSON.
    """
    place = Place(path)
    data = read_json(path)
    errors: tuple[DatasetError, ...] = tuple(duplicate_keys(path))
    written: TestConversation | None = None
    try:
        written = checked(data, place)
    except DatasetError as error:
        errors += individual_errors(error)
    fields: dict[str, Any] = data if isinstance(data, dict) else {}
    turns = list(_turns_with_places(fields, place))
    draft = Draft(
        place=place,
        id=_text(fields.get("id")),
        language=_text(fields.get("language")),
        tags=tuple(tag for tag in _entries(fields.get("tags")) if isinstance(tag, str)),
        turns=tuple(_part(WrittenTurn, entry) for entry, _ in turns),
        turn_places=tuple(where for _, where in turns),
        questions=tuple(_part(RecallQuestion, entry) for entry in _entries(fields.get("recallQuestions"))),
        written=written,
        in_sessions="sessions" in fields,
    )
    return draft, errors


def _turns_with_places(fields: dict[str, Any], place: Place) -> Iterator[tuple[Any, Place]]:
    if "sessions" not in fields:
        yield from ((turn, place.at("turns", index)) for index, turn in enumerate(_entries(fields.get("turns"))))
        return
    for number, session in enumerate(_entries(fields["sessions"])):
        turns = _entries(session.get("turns")) if isinstance(session, dict) else []
        inside = place.at("sessions", number, "turns")
        yield from ((turn, inside.at(index)) for index, turn in enumerate(turns))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _entries(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _part(model: type[M], data: object) -> M | None:
    try:
        return model.model_validate(data)
    except ValidationError:
        return None
