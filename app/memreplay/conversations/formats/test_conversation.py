"""TestConversation files: a short conversation with an assistant, and recall questions about it.

Fields are camelCase in JSON and snake_case here. Unknown fields are rejected to catch misspellings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from memreplay.conversations.json_files import DatasetFile, read_json
from memreplay.conversations.models import (
    Conversation,
    InfoLocation,
    KeyInfo,
    KeyInfoType,
    Question,
    Role,
    Salience,
    Session,
    Turn,
)
from memreplay.conversations.validation_errors import LoadCallbacks, Place, validated
from memreplay.text import occurs_in

NAME = "TestConversation"
SIGNATURE = 'a TestConversation (an object with "turns" and "recallQuestions")'

BANDS: dict[InfoLocation, range] = {
    "early": range(1, 5),
    "middle": range(5, 9),
    "recent": range(9, 1_000_000_000),
}
"""The 1-based turn numbers of each location."""


def derived_evidence(turns: Sequence[Turn], location: InfoLocation, entities: Sequence[str]) -> tuple[str, ...]:
    """Ids of the evidence turns, in order; empty if no key turn at the location contains any of the entities."""
    held_by_turn: list[tuple[Turn, frozenset[str]]] = []
    for turn in turns:
        if turn.number in BANDS[location] and turn.key_info is not None and turn.key_info.contains_key_info:
            held = frozenset(entity for entity in entities if occurs_in(entity, turn.text))
            held_by_turn.append((turn, held))
    return tuple(turn.id for turn in _latest_minimal_cover(held_by_turn))


def _latest_minimal_cover(held_by_turn: Sequence[tuple[Turn, frozenset[str]]]) -> tuple[Turn, ...]:
    """The smallest set of turns that covers every entity found; among equally small sets, the latest.

    Dynamic programming over the sets of covered entities, from the last turn to the first: a cover found earlier
    has later turns, so only a strictly smaller one replaces it.
    """
    covers: dict[frozenset[str], tuple[Turn, ...]] = {frozenset(): ()}
    for turn, held in reversed(held_by_turn):
        for entities, cover in list(covers.items()):
            together = entities | held
            if together not in covers or len(cover) + 1 < len(covers[together]):
                covers[together] = (turn, *cover)
    return covers[max(covers, key=len)]


Text = Annotated[str, Field(min_length=1)]

_NUMBERED_ID = re.compile(r"(?P<category>.+)-\d+")


class _Field(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, use_attribute_docstrings=True)


class TurnMetadata(_Field):
    """Marks a turn with testable information. Other turns have no metadata."""

    contains_key_info: bool
    """Always true: omit the metadata on a turn without testable information."""
    key_info_type: KeyInfoType | None = None
    """The kind of information."""
    salience_level: Salience | None = None
    """How memorable it is; low means mentioned in passing."""


class WrittenTurn(_Field):
    """A message."""

    role: Role
    """The user speaks first, then the roles alternate."""
    content: Text
    """The message as plain text."""
    metadata: TurnMetadata | None = None
    """Only on turns with testable information."""


class RecallQuestion(_Field):
    """A question that is asked after the last turn."""

    question: Text
    """Must not give its answer away, nor be answerable by guessing."""
    expected_answer: Text
    """Short, and word for word as in the evidence turn."""
    expected_entities: list[Text]
    """Strings that a correct answer must contain; each occurs in the evidence turns."""
    info_location: InfoLocation
    """Where the answer was said (a corrected value: last said): turns 1-4, 5-8, or 9 and later."""
    salience_level: Salience
    """The salience of the evidence turn."""


class TestConversation(_Field):
    """A conversation with an assistant, and recall questions about it."""

    __test__ = False  # pytest would take the name for a test class

    json_schema: Annotated[str | None, Field(alias="$schema", exclude=True)] = None
    """The path of the JSON Schema, for editors."""
    id: Text
    """category-NN, the file name without its extension."""
    language: Text | None = None
    """BCP 47 tag: en, es, …"""
    tags: list[Text] = []
    """The traps it contains."""
    turns: Annotated[list[WrittenTurn], Field(min_length=1)]
    """12 to 20 messages."""
    recall_questions: list[RecallQuestion]
    """Five: two about early turns, two about middle ones, one about recent ones."""


def detect(file: DatasetFile) -> bool:
    """An object with turns or questions; written on one line it looks like JSON Lines."""
    return file.container != "array" and not file.fields.isdisjoint({"turns", "recallQuestions"})


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the one conversation of the file. Warns about questions whose entities occur in no key turn."""
    place = Place(file.path)
    conversation = conversation_of(validated(TestConversation, read_json(file.path), place), file.dataset)
    for index, question in enumerate(conversation.questions):
        if not question.evidence:
            pointer = place.at("recallQuestions", index).pointer
            callbacks.on_warning(
                f"{file.path}: {pointer}: has no evidence: no key turn at its location contains an expected entity"
            )
    yield conversation


def conversation_of(written: TestConversation, dataset: str) -> Conversation:
    """Convert the file's content: number the turns and derive the evidence."""
    turns = turns_of(written.turns)
    category = _NUMBERED_ID.fullmatch(written.id)
    return Conversation(
        id=written.id,
        dataset=dataset,
        sessions=(Session(number=1, id="1"),),
        turns=turns,
        questions=tuple(
            _question(f"{written.id}-q{number}", question, turns, category["category"] if category else None)
            for number, question in enumerate(written.recall_questions, start=1)
        ),
        language=written.language,
        tags=tuple(written.tags),
    )


def turns_of(written: Sequence[WrittenTurn]) -> tuple[Turn, ...]:
    return tuple(_turn(number, turn) for number, turn in enumerate(written, start=1))


def _turn(number: int, turn: WrittenTurn) -> Turn:
    metadata = turn.metadata
    return Turn(
        id=str(number),
        number=number,
        session=1,
        role=turn.role,
        speaker=None,
        text=turn.content,
        key_info=metadata
        and KeyInfo(
            contains_key_info=metadata.contains_key_info,
            key_info_type=metadata.key_info_type,
            salience=metadata.salience_level,
        ),
    )


def _question(
    question_id: str, question: RecallQuestion, turns: tuple[Turn, ...], category: str | None
) -> Question:
    entities = question.expected_entities or [question.expected_answer]
    evidence = derived_evidence(turns, question.info_location, entities)
    return Question(
        id=question_id,
        kind="recall",
        type=question.info_location,
        text=question.question,
        expected=question.expected_answer,
        expected_entities=tuple(question.expected_entities),
        info_location=question.info_location,
        salience=question.salience_level,
        category=category,
        evidence=evidence,
        evidence_role="supports" if evidence else None,
    )
